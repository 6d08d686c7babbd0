// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/combiner_regions.h"

#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/region_tiles.h"

namespace shardwise {
namespace {

// ---- the canonical form of argmax ----------------------------------------------------------------------------------

// Matches a region of (%a, %i, %b, %j), starting from its results.
class ArgumentPattern {
 public:
  ArgumentPattern(const Module& module, const Region& region) : module_(module), region_(region) {}

  std::optional<Reducer> reducer() const {
    const ValueId a = region_.arguments[0], i = region_.arguments[1];
    const ValueId b = region_.arguments[2], j = region_.arguments[3];
    const std::optional<OpView> value = made_by(module_, region_.results[0], "stablehlo.select");
    const std::optional<OpView> index = made_by(module_, region_.results[1], "stablehlo.select");
    // The form is that of build_argument_region and of JAX's argmax: two selects between the sides, (a, b) and (i, j).
    if (!value || !index || value->operand(1) != a || value->operand(2) != b) return std::nullopt;
    if (index->operand(1) != i || index->operand(2) != j) return std::nullopt;
    const std::optional<Reducer> found = wins(value->operand(0), a, b);
    if (!found) return std::nullopt;
    const auto smaller_of_equal = [&](ValueId id) {
      // Equality is symmetric, so its operands may stand in either order.
      return both(id, "stablehlo.and", [&](ValueId lhs, ValueId rhs) {
        return (compares(lhs, "EQ", a, b) || compares(lhs, "EQ", b, a)) && is_less(rhs, i, j);
      });
    };
    const bool fits = both(index->operand(0), "stablehlo.or",
                           [&](ValueId lhs, ValueId rhs) { return wins(lhs, a, b) == found && smaller_of_equal(rhs); });
    return fits ? found : std::nullopt;
  }

 private:
  // Matches an op whose two operands fit in either order.
  template <class Fits>
  bool both(ValueId value, std::string_view name, const Fits& fits) const {
    const std::optional<OpView> op = made_by(module_, value, name);
    return op && (fits(op->operand(0), op->operand(1)) || fits(op->operand(1), op->operand(0)));
  }

  bool compares(ValueId value, std::string_view direction, ValueId lhs, ValueId rhs) const {
    const std::optional<OpView> op = made_by(module_, value, "stablehlo.compare");
    if (!op || op->operand(0) != lhs || op->operand(1) != rhs) return false;
    const EnumAttr* type = op->attrs().find<EnumAttr>("compare_type");
    return op->attrs().get<EnumAttr>("comparison_direction").value == direction &&
           (type == nullptr || type->value != "TOTALORDER");
  }
  bool is_less(ValueId value, ValueId lhs, ValueId rhs) const {
    return compares(value, "LT", lhs, rhs) || compares(value, "GT", rhs, lhs);
  }

  // Matches `a > b or a is NaN`. For dtypes without NaN, `a > b` suffices.
  std::optional<Reducer> wins(ValueId value, ValueId a, ValueId b) const {
    for (const Reducer reducer : {Reducer::kMax, Reducer::kMin}) {
      // An argmin is an argmax with the sides of the comparison exchanged.
      const ValueId low = reducer == Reducer::kMax ? b : a, high = reducer == Reducer::kMax ? a : b;
      // No integer differs from itself.
      if (!is_float(module_.type(a).dtype) && is_less(value, low, high)) return reducer;
      const bool fits = both(value, "stablehlo.or", [&](ValueId lhs, ValueId rhs) {
        return is_less(lhs, low, high) && compares(rhs, "NE", a, a);
      });
      if (fits) return reducer;
    }
    return std::nullopt;
  }

  const Module& module_;
  const Region& region_;
};

void check_region(const InferContext& op, size_t inputs) {
  op.expect_regions(1);
  const Region& region = op.module().region(op.regions()[0]);
  if (region.arguments.size() != 2 * inputs || region.results.size() != inputs) {
    op.fail_shape(str("the region must take ", 2 * inputs, " arguments and return ", inputs),
                  str(region.arguments.size(), " arguments and ", region.results.size(), " results"),
                  "give it one scalar per operand for each side");
  }
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    const TensorType& type = op.module().type(region.arguments[i]);
    // All arguments of the left side come first, then those of the right side: argument i is of operand i % inputs.
    if (type != TensorType{op.operand(i % inputs).dtype, {}}) {
      op.fail_dtype("the region's arguments must be scalars of the operands' dtypes",
                    str("argument ", i, " of ", type.text(), " for ", op.operand_types_text()), "correct its type");
    }
  }
  for (size_t i = 0; i < inputs; ++i) {
    const TensorType& type = op.module().type(region.results[i]);
    if (type != TensorType{op.operand(i).dtype, {}}) {
      op.fail_dtype("the region must return scalars of the operands' dtypes",
                    str("result ", i, " of ", type.text(), " for ", op.operand_types_text()), "convert it back");
    }
  }
}

}  // namespace

size_t expect_reduction(const InferContext& op) {
  const size_t inputs = op.operand_count() / 2;
  expect_shape(op, inputs > 0 && op.operand_count() % 2 == 0,
               "operands must be one or more tensors and as many init values", "give one scalar per tensor");
  for (size_t i = 0; i < inputs; ++i) {
    expect_shape(op, op.operand(i).shape == op.operand(0).shape, "all tensors must have the same shape",
                 "broadcast them first");
    expect_scalar(op, inputs + i, op.operand(i).dtype);
  }
  check_region(op, inputs);
  return inputs;
}

void expect_elementwise_region(const InferContext& op) {
  const Module& module = op.module();
  const RegionId id = op.regions()[0];
  const std::string_view other = never_in_tiles(module, id);
  if (!other.empty()) {
    op.fail_shape("the region must be elementwise ops and constants", other,
                  "compute the rest outside, on whole tensors");
  }
  // Builder has made scalar constants from around the region its own, so any other capture is left.
  if (!captures_of(module, id).empty()) {
    op.fail_shape("the region must use its own arguments and constants alone", "a value from around it",
                  "pass the value as one more tensor");
  }
  walk(module, id, [&](OpId inner) {
    const OpView view(module, inner);
    for (size_t i = 0; i < view.result_count(); ++i) {
      // The evaluator computes a tile of scalars at once; a tensor inside has no lane.
      const TensorType& type = view.result_type(i);
      if (type.ndim() == 0) continue;
      op.fail_shape("the region must compute with scalars", str(view.name(), " of ", type.text()),
                    "combine one row with another, not whole tensors");
    }
  });
}

std::optional<Reducer> region_argument_reducer(const Module& module, RegionId id) {
  const Region& region = module.region(id);
  if (region.arguments.size() != 4 || region.results.size() != 2) return std::nullopt;
  // The second value must be an index: only then is "the smaller index of equal values" what the region means.
  if (!is_integer(module.type(region.arguments[1]).dtype)) return std::nullopt;
  return ArgumentPattern(module, region).reducer();
}

}  // namespace shardwise
