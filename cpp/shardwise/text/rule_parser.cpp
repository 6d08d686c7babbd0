// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/rule_parser.h"

#include <limits>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rule/rule_attribute.h"

namespace shardwise {
namespace {

constexpr int64_t kPlainSymbols = 'z' - 'i' + 1;  // factors that are one letter

// Parses the number after `z_` in `word`, at `at`; `begin` is the position of `word` in the text.
int64_t parse_index(SdyCursor& cursor, std::string_view word, size_t& at, size_t begin) {
  const size_t start = at;
  while (at < word.size() && word[at] >= '0' && word[at] <= '9') ++at;
  const std::string_view digits = word.substr(start, at - start);
  if (digits.empty()) cursor.fail_at(begin + start, "a factor z_ must have a number, such as z_1", quote(word));
  if (digits[0] == '0') cursor.fail_at(begin + start, "the number of a factor z_ must begin with 1 to 9", digits);
  const auto index = number_of<int64_t>(digits);
  if (!index || *index > std::numeric_limits<int64_t>::max() - kPlainSymbols) {
    cursor.fail_at(begin + start, "the number of a factor z_ must fit in 64 bits", digits);
  }
  // z is factor 17, so z_1 is factor 18.
  return kPlainSymbols - 1 + *index;
}

// Factors in a row: `ij`, `zz_1`. None where no word follows.
Dims parse_factors(SdyCursor& cursor) {
  Dims factors;
  const size_t begin = cursor.token_start();
  const std::string_view word = cursor.take_word();
  for (size_t at = 0; at < word.size();) {
    const char symbol = word[at];
    if (symbol < 'i' || symbol > 'z') {
      cursor.fail_at(begin + at, "a factor must be a letter from i to z, or z_1, z_2, …", quote(word.substr(at, 1)));
    }
    ++at;
    if (symbol == 'z' && at < word.size() && word[at] == '_') {
      factors.push_back(parse_index(cursor, word, ++at, begin));
    } else {
      factors.push_back(symbol - 'i');
    }
  }
  return factors;
}

RuleAttr::Mapping parse_mapping(SdyCursor& cursor) {
  RuleAttr::Mapping dims;
  cursor.expect("[", "before the factors of a tensor");
  cursor.take_items("]", "after the factors of a dim", [&] { dims.push_back(parse_factors(cursor)); });
  return dims;
}

std::vector<RuleAttr::Mapping> parse_mappings(SdyCursor& cursor) {
  std::vector<RuleAttr::Mapping> tensors;
  cursor.expect("(", "before the tensors of a sharding rule");
  cursor.take_items(")", "after a tensor of a sharding rule", [&] { tensors.push_back(parse_mapping(cursor)); });
  return tensors;
}

Dims parse_sizes(SdyCursor& cursor) {
  Dims sizes;
  cursor.expect("{", "before the sizes of factors");
  cursor.take_items("}", "after the size of a factor", [&] {
    const size_t start = cursor.token_start();
    const Dims factors = parse_factors(cursor);
    const std::string expected = factor_symbol(sizes.size());
    if (factors.size() > 1) {
      cursor.fail_at(start, "a size must be of one factor", cursor.text.substr(start, cursor.pos - start),
                     "write a size for each");
    }
    // RuleAttr stores the sizes by factor number, so {i=4, j=8} must have them in that order.
    if (factors.empty() || factors[0] != static_cast<int64_t>(sizes.size())) {
      cursor.fail_at(start, "sizes must be given in the order of factors, next that of " + expected,
                     factors.empty() ? cursor.found() : std::string(cursor.text.substr(start, cursor.pos - start)));
    }
    cursor.expect("=", "after a factor");
    const size_t number = cursor.token_start();
    sizes.push_back(cursor.take_integer("the size of a factor"));
    if (sizes.back() < 0) {
      cursor.fail_at(number, "the size of a factor must be at least 0", std::to_string(sizes.back()));
    }
  });
  return sizes;
}

Dims parse_list(SdyCursor& cursor) {
  Dims list;
  cursor.expect("{", "before a list of factors");
  cursor.take_items("}", "after a factor", [&] {
    const Dims factors = parse_factors(cursor);
    if (factors.empty()) cursor.fail_here("expected a factor");
    list.insert(list.end(), factors.begin(), factors.end());
  });
  return list;
}

}  // namespace

RuleAttr parse_rule(SdyCursor& cursor) {
  RuleAttr rule;
  cursor.expect("<", "before a sharding rule");
  rule.operands = parse_mappings(cursor);
  cursor.expect("->", "between operands and results of a sharding rule");
  rule.results = parse_mappings(cursor);
  if (cursor.peek("{")) rule.sizes = parse_sizes(cursor);
  // Shardy prints each list only when it has factors, always in this order.
  for (const FactorList& list : kFactorLists) {
    if (!cursor.take_keyword(list.name)) continue;
    cursor.expect("=", str("after '", list.name, "'"));
    rule.*list.factors = parse_list(cursor);
  }
  rule.custom = cursor.take(",");
  if (rule.custom && !cursor.take_keyword("custom")) {
    cursor.fail_here("expected 'custom' after ',' in a sharding rule");
  }
  if (!cursor.take(">")) {
    cursor.fail_here("expected '>' after a sharding rule",
                     "lists are reduction, need_replication, permutation, blocked_propagation, in this order");
  }
  return rule;
}

RuleAttr parse_rule(std::string_view text) {
  SdyCursor cursor(text);
  cursor.subject = "sharding rule";
  cursor.expect("#sdy.op_sharding_rule", "before a sharding rule");
  RuleAttr rule = parse_rule(cursor);
  cursor.expect_end();
  return rule;
}

}  // namespace shardwise
