// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rule_attribute.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

constexpr int64_t kPlainSymbols = 'z' - 'i' + 1;  // factors that are one letter
constexpr size_t kMaxMapped = std::numeric_limits<uint16_t>::max();

using List = Dims RuleAttr::*;
constexpr std::array<std::pair<std::string_view, List>, 4> kLists{{{"reduction", &RuleAttr::reduction},
                                                                   {"need_replication", &RuleAttr::need_replication},
                                                                   {"permutation", &RuleAttr::permutation},
                                                                   {"blocked_propagation", &RuleAttr::blocked}}};

// ---- parsing -------------------------------------------------------------------------------------------------------

// What follows `z_` in `word` at `at`; `begin` is the position of `word` in the text.
int64_t parse_index(SdyCursor& cursor, std::string_view word, size_t& at, size_t begin) {
  const size_t start = at;
  while (at < word.size() && word[at] >= '0' && word[at] <= '9') ++at;
  const std::string_view digits = word.substr(start, at - start);
  if (digits.empty()) cursor.fail_at(begin + start, "a factor z_ must have a number, such as z_1", quote(word));
  if (digits[0] == '0') cursor.fail_at(begin + start, "the number of a factor z_ must begin with 1 to 9", digits);
  int64_t index = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (result.ec != std::errc{} || index > std::numeric_limits<int64_t>::max() - kPlainSymbols) {
    cursor.fail_at(begin + start, "the number of a factor z_ must fit in 64 bits", digits);
  }
  return kPlainSymbols - 1 + index;
}

// Factors in a row: `ij`, `zz_1`. None where no word follows.
Dims parse_factors(SdyCursor& cursor) {
  Dims factors;
  cursor.skip_space();
  const size_t begin = cursor.pos;
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
  if (cursor.take("]")) return dims;
  while (true) {
    dims.push_back(parse_factors(cursor));
    if (cursor.take("]")) return dims;
    if (!cursor.take(",")) cursor.fail_here("expected ',' or ']' after the factors of a dim");
  }
}

std::vector<RuleAttr::Mapping> parse_mappings(SdyCursor& cursor) {
  std::vector<RuleAttr::Mapping> tensors;
  cursor.expect("(", "before the tensors of a sharding rule");
  if (cursor.take(")")) return tensors;
  while (true) {
    tensors.push_back(parse_mapping(cursor));
    if (cursor.take(")")) return tensors;
    if (!cursor.take(",")) cursor.fail_here("expected ',' or ')' after a tensor of a sharding rule");
  }
}

Dims parse_sizes(SdyCursor& cursor) {
  Dims sizes;
  cursor.expect("{", "before the sizes of factors");
  if (cursor.take("}")) return sizes;
  while (true) {
    cursor.skip_space();
    const size_t start = cursor.pos;
    const Dims factors = parse_factors(cursor);
    const std::string expected = factor_symbol(sizes.size());
    if (factors.size() > 1) {
      cursor.fail_at(start, "a size must be of one factor", cursor.text.substr(start, cursor.pos - start),
                     "write a size for each");
    }
    if (factors.empty() || factors[0] != static_cast<int64_t>(sizes.size())) {
      cursor.fail_at(start, "sizes must be given in the order of factors, next that of " + expected,
                     factors.empty() ? cursor.found() : std::string(cursor.text.substr(start, cursor.pos - start)));
    }
    cursor.expect("=", "after a factor");
    cursor.skip_space();
    const size_t number = cursor.pos;
    sizes.push_back(cursor.take_integer("the size of a factor"));
    if (sizes.back() < 0) {
      cursor.fail_at(number, "the size of a factor must be at least 0", std::to_string(sizes.back()));
    }
    if (cursor.take("}")) return sizes;
    if (!cursor.take(",")) cursor.fail_here("expected ',' or '}' after the size of a factor");
  }
}

Dims parse_list(SdyCursor& cursor) {
  Dims list;
  cursor.expect("{", "before a list of factors");
  if (cursor.take("}")) return list;
  while (true) {
    const Dims factors = parse_factors(cursor);
    if (factors.empty()) cursor.fail_here("expected a factor");
    list.insert(list.end(), factors.begin(), factors.end());
    if (cursor.take("}")) return list;
    if (!cursor.take(",")) cursor.fail_here("expected ',' or '}' after a factor");
  }
}

// ---- printing ------------------------------------------------------------------------------------------------------

std::string symbols(DimSpan factors, std::string_view between) {
  std::string text;
  for (int64_t factor : factors) {
    if (!text.empty()) text += between;
    text += factor_symbol(static_cast<size_t>(factor));
  }
  return text;
}

std::string mappings_text(const std::vector<RuleAttr::Mapping>& tensors) {
  return str("(",
             join(tensors, ", ",
                  [](const RuleAttr::Mapping& dims) {
                    return str("[", join(dims, ", ", [](const Dims& dim) { return symbols(dim, ""); }), "]");
                  }),
             ")");
}

// ---- verification --------------------------------------------------------------------------------------------------

class RuleVerifier {
 public:
  RuleVerifier(const RuleAttr& rule, const OpView& op) : rule_(rule), op_(op), used_(rule.sizes.size(), false) {}

  void run() {
    if (rule_.operands.empty() && rule_.results.empty()) refuse("must map an operand or a result", "none");
    verify_count("operands", rule_.operands.size(), op_.operand_count());
    for (size_t i = 0; i < rule_.operands.size(); ++i) {
      verify_tensor(str("operand ", i), rule_.operands[i], op_.operand_type(i));
    }
    verify_count("results", rule_.results.size(), op_.result_count());
    for (size_t i = 0; i < rule_.results.size(); ++i) {
      verify_tensor(str("result ", i), rule_.results[i], op_.result_type(i));
    }
    for (size_t factor = 0; factor < used_.size(); ++factor) {
      if (!used_[factor]) refuse("must use every factor", str(factor_symbol(factor), " in no dim"), "drop its size");
    }
    for (const auto& [name, list] : kLists) verify_list(name, rule_.*list);
    verify_one_kind();
    verify_reductions();
  }

 private:
  [[noreturn]] void refuse(std::string_view must_hold, std::string_view got, std::string_view way_out = {}) const {
    fail<ShardingError>(op_.name(), str("its sharding rule ", must_hold), got, way_out);
  }

  void verify_count(std::string_view what, size_t mapped, size_t count) const {
    if (mapped == count) return;
    refuse(str("must have a mapping for each of the op's ", what), str(mapped, " for ", count));
  }

  void verify_tensor(const std::string& tensor, const RuleAttr::Mapping& dims, const TensorType& type) {
    if (dims.size() != type.shape.size()) {
      refuse(str("must have an entry for each dim of ", tensor), str(dims.size(), " for ", type.text()),
             "write [] for a scalar");
    }
    Dims seen;
    for (size_t d = 0; d < dims.size(); ++d) verify_dim(str(tensor, " dim ", d), dims[d], seen);
    mapped_ += seen.size();
    if (mapped_ > kMaxMapped) refuse(str("must have at most ", kMaxMapped, " factors in all dims"), "more");
  }

  void verify_dim(const std::string& dim, const Dims& factors, Dims& seen) {
    if (factors.empty()) refuse(str("must give ", dim, " a factor"), "none", "give it one of its own");
    for (int64_t factor : factors) {
      if (factor >= static_cast<int64_t>(rule_.sizes.size())) {
        refuse("must give the size of every factor",
               str(factor_symbol(static_cast<size_t>(factor)), " in ", dim, " without one"));
      }
      const auto index = static_cast<size_t>(factor);
      if (rule_.sizes[index] == 1 && factors.size() > 1) {
        refuse(str("must not have a factor of size 1 beside others in ", dim), factor_symbol(index), "leave it out");
      }
      if (std::find(seen.begin(), seen.end(), factor) != seen.end()) {
        refuse("must use a factor once in a tensor", str(factor_symbol(index), " again in ", dim));
      }
      seen.push_back(factor);
      used_[index] = true;
    }
  }

  void verify_list(std::string_view name, const Dims& list) const {
    const auto listed = [&] { return str(name, "={", symbols(list, ", "), "}"); };
    if (!std::is_sorted(list.begin(), list.end())) refuse("must list factors in their order", listed(), "sort them");
    if (std::adjacent_find(list.begin(), list.end()) != list.end()) refuse("must list a factor once", listed());
    if (!list.empty() && list.back() >= static_cast<int64_t>(rule_.sizes.size())) {
      refuse("must list factors that it has", listed());
    }
  }

  void verify_one_kind() const {
    std::vector<std::string_view> kinds(rule_.sizes.size());
    for (size_t i = 0; i < 3; ++i) {
      const auto& [name, list] = kLists[i];
      for (int64_t factor : rule_.*list) {
        std::string_view& kind = kinds[static_cast<size_t>(factor)];
        if (!kind.empty()) {
          refuse("must have a factor in one of reduction, need_replication and permutation",
                 str(factor_symbol(static_cast<size_t>(factor)), " in ", kind, " and ", name));
        }
        kind = name;
      }
    }
  }

  void verify_reductions() const {
    for (int64_t factor : rule_.reduction) {
      for (size_t i = 0; i < rule_.results.size(); ++i) {
        const auto has = [&](const Dims& dim) { return std::find(dim.begin(), dim.end(), factor) != dim.end(); };
        if (std::none_of(rule_.results[i].begin(), rule_.results[i].end(), has)) continue;
        refuse("must not have a factor that is reduced in a result",
               str(factor_symbol(static_cast<size_t>(factor)), " in result ", i));
      }
    }
  }

  const RuleAttr& rule_;
  const OpView& op_;
  std::vector<bool> used_;  // by factor
  size_t mapped_ = 0;
};

std::vector<Dims> shapes_of(const RuleAttr& rule) {
  std::vector<Dims> shapes;
  for (const auto* tensors : {&rule.operands, &rule.results}) {
    for (const RuleAttr::Mapping& dims : *tensors) shapes.emplace_back(dims.size());
  }
  return shapes;
}

}  // namespace

RuleAttr parse_rule(SdyCursor& cursor) {
  RuleAttr rule;
  cursor.expect("<", "before a sharding rule");
  rule.operands = parse_mappings(cursor);
  cursor.expect("->", "between operands and results of a sharding rule");
  rule.results = parse_mappings(cursor);
  if (cursor.peek("{")) rule.sizes = parse_sizes(cursor);
  for (const auto& [name, list] : kLists) {
    cursor.skip_space();
    const size_t start = cursor.pos;
    if (cursor.take_word() != name) {
      cursor.pos = start;
      continue;
    }
    cursor.expect("=", str("after '", name, "'"));
    rule.*list = parse_list(cursor);
  }
  if (cursor.take(",")) {
    cursor.skip_space();
    const size_t start = cursor.pos;
    if (cursor.take_word() != "custom") {
      cursor.pos = start;
      cursor.fail_here("expected 'custom' after ',' in a sharding rule");
    }
    rule.custom = true;
  }
  if (!cursor.take(">")) {
    cursor.fail_here("expected '>' after a sharding rule",
                     "lists are reduction, need_replication, permutation, blocked_propagation, in this order");
  }
  return rule;
}

std::string text(const RuleAttr& rule) {
  std::string out = str(mappings_text(rule.operands), "->", mappings_text(rule.results));
  for (size_t factor = 0; factor < rule.sizes.size(); ++factor) {
    out += str(factor == 0 ? " {" : ", ", factor_symbol(factor), "=", rule.sizes[factor]);
  }
  if (!rule.sizes.empty()) out += "}";
  for (const auto& [name, list] : kLists) {
    if (!(rule.*list).empty()) out += str(" ", name, "={", symbols(rule.*list, ", "), "}");
  }
  return rule.custom ? out + ", custom" : out;
}

void verify(const RuleAttr& rule, const OpView& op) { RuleVerifier(rule, op).run(); }

ShardingRule to_rule(const RuleAttr& rule) {
  RuleBuilder builder(shapes_of(rule), rule.operands.size());
  const auto has = [](const Dims& list, size_t factor) {
    return std::binary_search(list.begin(), list.end(), static_cast<int64_t>(factor));
  };
  for (size_t factor = 0; factor < rule.sizes.size(); ++factor) {
    const int64_t size = rule.sizes[factor];
    const bool blocked = has(rule.blocked, factor);
    if (has(rule.reduction, factor)) {
      builder.reduction(size, Reducer::kSum, blocked);
    } else if (has(rule.need_replication, factor)) {
      builder.need_replication(size, blocked);
    } else if (has(rule.permutation, factor)) {
      builder.permutation(size, blocked);
    } else {
      builder.factor(size, FactorKind::kPassThrough, blocked);
    }
  }
  size_t tensor = 0;
  for (const auto* tensors : {&rule.operands, &rule.results}) {
    for (const RuleAttr::Mapping& dims : *tensors) {
      for (size_t d = 0; d < dims.size(); ++d) {
        for (int64_t factor : dims[d]) builder.map(tensor, d, static_cast<FactorId>(factor));
      }
      ++tensor;
    }
  }
  return builder.build();
}

RuleAttr to_attribute(const ShardingRule& rule, bool custom) {
  RuleAttr attribute;
  attribute.custom = custom;
  for (size_t t = 0; t < rule.tensor_count(); ++t) {
    RuleAttr::Mapping dims;
    for (size_t d = 0; d < rule.ndim(t); ++d) dims.emplace_back(rule.dim(t, d).begin(), rule.dim(t, d).end());
    (t < rule.operand_count() ? attribute.operands : attribute.results).push_back(std::move(dims));
  }
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const Factor& factor = rule.factors()[f];
    attribute.sizes.push_back(factor.size);
    const auto id = static_cast<int64_t>(f);
    if (factor.kind == FactorKind::kReduction) attribute.reduction.push_back(id);
    if (factor.kind == FactorKind::kNeedReplication) attribute.need_replication.push_back(id);
    if (factor.kind == FactorKind::kPermutation) attribute.permutation.push_back(id);
    if (factor.blocked) attribute.blocked.push_back(id);
  }
  return attribute;
}

}  // namespace shardwise
