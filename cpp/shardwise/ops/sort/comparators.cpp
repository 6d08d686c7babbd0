// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sort/comparators.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

using Keys = std::optional<std::vector<SortKey>>;

class LexicographicPattern {
 public:
  LexicographicPattern(const Module& module, const Region& region) : module_(module), region_(region) {}

  Keys keys(ValueId less) const {
    // less = lt(first key) or (eq(first key) and less of the other keys), as JAX writes a sort by several keys.
    if (const std::optional<SortKey> key = comparison(less, true)) return std::vector<SortKey>{*key};
    const std::optional<OpView> either = made_by(module_, less, "stablehlo.or");
    // `or` and `and` are commutative, so each may have its operands in either order.
    for (size_t first = 0; either && first < 2; ++first) {
      const std::optional<SortKey> key = comparison(either->operand(first), true);
      if (!key) continue;
      const std::optional<OpView> tie = made_by(module_, either->operand(1 - first), "stablehlo.and");
      for (size_t equal = 0; tie && equal < 2; ++equal) {
        std::optional<SortKey> same = comparison(tie->operand(equal), false);
        if (!same) continue;
        same->descending = key->descending;
        // Equality must be that of the same key: with other zeros or NaNs the ties
        // would not be those of the comparison.
        Keys rest = *same == *key ? keys(tie->operand(1 - equal)) : std::nullopt;
        if (!rest) continue;
        rest->insert(rest->begin(), *key);
        return rest;
      }
    }
    return std::nullopt;
  }

 private:
  // One argument of the region, perhaps with 0 for -0 and one NaN for all.
  struct Side {
    size_t argument = 0;
    bool equal_zeros = false, equal_nans = false;
  };

  static std::string_view text(const OpView& compare, std::string_view attribute) {
    const auto* value = compare.attrs().find<EnumAttr>(attribute);
    return value == nullptr ? std::string_view() : std::string_view(value->value);
  }
  static std::string_view direction(const OpView& compare) { return text(compare, "comparison_direction"); }
  static bool is_total(const OpView& compare) { return text(compare, "compare_type") == "TOTALORDER"; }

  bool is_zero(ValueId value) const {
    const std::optional<Scalar> number = splat_value(module_, value);
    return number && is_float(number->dtype) && number->real == 0;
  }

  std::optional<Side> side(ValueId value) const {
    const auto found = std::ranges::find(region_.arguments, value);
    if (found != region_.arguments.end()) return Side{static_cast<size_t>(found - region_.arguments.begin())};
    const std::optional<OpView> choice = made_by(module_, value, "stablehlo.select");
    if (!choice) return std::nullopt;
    std::optional<Side> inner = side(choice->operand(2));
    const std::optional<OpView> test = made_by(module_, choice->operand(0), "stablehlo.compare");
    const std::optional<Scalar> constant = splat_value(module_, choice->operand(1));
    if (!inner || !test || is_total(*test) || !constant || !is_float(constant->dtype)) return std::nullopt;
    const ValueId argument = region_.arguments[inner->argument];
    if (test->operand(0) != argument) return std::nullopt;
    // select(x != x, NaN, x): all NaNs become one. A NaN with a sign would be ordered before all numbers.
    if (direction(*test) == "NE" && test->operand(1) == argument && std::isnan(constant->real) &&
        !std::signbit(constant->real)) {
      inner->equal_nans = true;
    } else if (direction(*test) == "EQ" && is_zero(test->operand(1)) && constant->real == 0) {
      // select(x == 0, 0, x): -0 becomes 0.
      inner->equal_zeros = true;
    } else {
      return std::nullopt;
    }
    return inner;
  }

  // Recognises a comparison of both arguments of one operand: the left one comes before, or (not strict) both are
  // equal.
  std::optional<SortKey> comparison(ValueId value, bool strict) const {
    const std::optional<OpView> op = made_by(module_, value, "stablehlo.compare");
    if (!op) return std::nullopt;
    const std::string_view direction = LexicographicPattern::direction(*op);
    const bool fits = strict ? direction == "LT" || direction == "GT" : direction == "EQ";
    const std::optional<Side> lhs = side(op->operand(0)), rhs = side(op->operand(1));
    if (!fits || !lhs || !rhs || lhs->argument / 2 != rhs->argument / 2 || lhs->argument == rhs->argument) {
      return std::nullopt;
    }
    if (lhs->equal_zeros != rhs->equal_zeros || lhs->equal_nans != rhs->equal_nans) return std::nullopt;
    const DType dtype = module_.type(region_.arguments[lhs->argument]).dtype;
    // The key transform is for these formats; a sort of another dtype evaluates its region.
    const bool is_ieee = dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 || dtype == DType::kF64;
    const bool is_number = is_integer(dtype) && bit_width(dtype) >= 8;
    if (!is_ieee && !is_number && dtype != DType::kBool) return std::nullopt;
    // A FLOAT comparison takes -0 and 0 as equal. It orders no NaN, so that any place will do for them.
    const bool merges = is_float(dtype) && !is_total(*op);
    const bool swapped = lhs->argument > rhs->argument;
    return SortKey{.operand = lhs->argument / 2,
                   // a > b is descending, and b > a is ascending.
                   .descending = strict && (direction == "GT") != swapped,
                   .equal_zeros = lhs->equal_zeros || merges,
                   .equal_nans = lhs->equal_nans || merges};
  }

  const Module& module_;
  const Region& region_;
};

}  // namespace

std::optional<std::vector<SortKey>> lexicographic_keys(const Module& module, RegionId comparator) {
  const Region& region = module.region(comparator);
  if (region.results.size() != 1) return std::nullopt;
  return LexicographicPattern(module, region).keys(region.results[0]);
}

}  // namespace shardwise
