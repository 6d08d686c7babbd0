// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rule/rule_attribute.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rule/rule_builder.h"

namespace shardwise {
namespace {

// ShardingRule stores the end of each dim in 16 bits.
constexpr size_t kMaxMapped = std::numeric_limits<uint16_t>::max();

std::string symbols(DimSpan factors, std::string_view between) {
  return join(factors, between, [](int64_t factor) { return factor_symbol(static_cast<size_t>(factor)); });
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
    verify_tensors("operand", rule_.operands, op_.operands());
    verify_tensors("result", rule_.results, list_of_results(op_.module(), op_.id()));
    for (size_t factor = 0; factor < used_.size(); ++factor) {
      // A factor in no dim would never be sharded; it is a mistake in the text.
      if (!used_[factor]) refuse("must use every factor", str(factor_symbol(factor), " in no dim"), "drop its size");
    }
    for (const FactorList& list : kFactorLists) verify_list(list.name, rule_.*list.factors);
    verify_one_kind();
    verify_reductions();
  }

 private:
  [[noreturn]] void refuse(std::string_view must_hold, std::string_view got, std::string_view way_out = {}) const {
    fail<ShardingError>(op_.name(), str("its sharding rule ", must_hold), got, way_out);
  }

  void verify_tensors(std::string_view what, std::span<const RuleAttr::Mapping> tensors,
                      std::span<const ValueId> values) {
    if (tensors.size() != values.size()) {
      refuse(str("must have a mapping for each of the op's ", what, "s"), str(tensors.size(), " for ", values.size()));
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      verify_tensor(str(what, " ", i), tensors[i], op_.module().type(values[i]));
    }
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
    // A dim that shares no factor with another one has a factor of its own in Shardy's form.
    if (factors.empty()) refuse(str("must give ", dim, " a factor"), "none", "give it one of its own");
    for (int64_t factor : factors) {
      if (factor >= static_cast<int64_t>(rule_.sizes.size())) {
        refuse("must give the size of every factor",
               str(factor_symbol(static_cast<size_t>(factor)), " in ", dim, " without one"));
      }
      const auto index = static_cast<size_t>(factor);
      // As in Shardy: it changes no index of the dim, so that one sharding would have two forms.
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
    for (const FactorList& list : kFactorLists) {
      if (!list.kind) continue;
      for (int64_t factor : rule_.*list.factors) {
        std::string_view& kind = kinds[static_cast<size_t>(factor)];
        if (!kind.empty()) {
          refuse("must have a factor in one of reduction, need_replication and permutation",
                 str(factor_symbol(static_cast<size_t>(factor)), " in ", kind, " and ", list.name));
        }
        kind = list.name;
      }
    }
  }

  void verify_reductions() const {
    for (int64_t factor : rule_.reduction) {
      for (size_t i = 0; i < rule_.results.size(); ++i) {
        const auto has = [&](const Dims& dim) { return std::ranges::find(dim, factor) != dim.end(); };
        if (std::ranges::none_of(rule_.results[i], has)) continue;
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

std::vector<Dims> shapes_in_attribute(const RuleAttr& rule) {
  std::vector<Dims> shapes;
  for (const auto* tensors : {&rule.operands, &rule.results}) {
    for (const RuleAttr::Mapping& dims : *tensors) shapes.emplace_back(dims.size());
  }
  return shapes;
}

}  // namespace

std::string text(const RuleAttr& rule) {
  std::string out = str(mappings_text(rule.operands), "->", mappings_text(rule.results));
  for (size_t factor = 0; factor < rule.sizes.size(); ++factor) {
    out += str(factor == 0 ? " {" : ", ", factor_symbol(factor), "=", rule.sizes[factor]);
  }
  if (!rule.sizes.empty()) out += "}";
  for (const FactorList& list : kFactorLists) {
    const Dims& factors = rule.*list.factors;
    if (!factors.empty()) out += str(" ", list.name, "={", symbols(factors, ", "), "}");
  }
  return rule.custom ? out + ", custom" : out;
}

std::string text(const ShardingRule& rule) { return text(to_attribute(rule, false)); }

void verify(const RuleAttr& rule, const OpView& op) { RuleVerifier(rule, op).run(); }

ShardingRule to_rule(const RuleAttr& rule) {
  RuleBuilder builder(shapes_in_attribute(rule), rule.operands.size());
  for (size_t factor = 0; factor < rule.sizes.size(); ++factor) {
    // Verified to be sorted.
    const auto has = [&](const FactorList& list) {
      return std::ranges::binary_search(rule.*list.factors, static_cast<int64_t>(factor));
    };
    FactorKind kind = FactorKind::kPassThrough;
    for (const FactorList& list : kFactorLists) {
      if (list.kind && has(list)) kind = *list.kind;
    }
    const int64_t size = rule.sizes[factor];
    const bool blocked = std::ranges::binary_search(rule.blocked, static_cast<int64_t>(factor));
    // The text names no reducer: a reduction of a custom call is a sum, and propagation does not read it.
    if (kind == FactorKind::kReduction) {
      builder.reduction(size, Reducer::kSum, blocked);
    } else {
      builder.factor(size, kind, blocked);
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
    for (const FactorList& list : kFactorLists) {
      if (list.kind ? factor.kind == *list.kind : factor.blocked) (attribute.*list.factors).push_back(id);
    }
  }
  return attribute;
}

}  // namespace shardwise
