// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/reduce_regions.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/create.h"
#include "shardwise/ops/elementwise.h"
#include "shardwise/ops/region_tiles.h"

namespace shardwise {
namespace {

// ---- what stands in a region ---------------------------------------------------------------------------------------

bool is_inside(const Module& module, RegionId region, ValueId id) {
  const Value& value = module.value(id);
  return value.op ? module.op(value.op).parent == region : value.region == region;
}

ValueId compare(Builder& builder, std::string_view direction, ValueId lhs, ValueId rhs) {
  const DType dtype = builder.module().type(lhs).dtype;
  return build_compare(builder, direction, lhs, rhs,
                       is_float(dtype)            ? "FLOAT"
                       : is_signed_integer(dtype) ? "SIGNED"
                                                  : "UNSIGNED");
}

// ---- the canonical form of argmax ----------------------------------------------------------------------------------

// Matches a region of (%a, %i, %b, %j), starting from its results.
class ArgumentPattern {
 public:
  ArgumentPattern(const Module& module, const Region& region) : module_(module), region_(region) {}

  std::optional<Reducer> reducer() const {
    const ValueId a = region_.arguments[0], i = region_.arguments[1];
    const ValueId b = region_.arguments[2], j = region_.arguments[3];
    const std::optional<OpView> value = made_by(region_.results[0], "stablehlo.select");
    const std::optional<OpView> index = made_by(region_.results[1], "stablehlo.select");
    if (!value || !index || value->operand(1) != a || value->operand(2) != b) return std::nullopt;
    if (index->operand(1) != i || index->operand(2) != j) return std::nullopt;
    const std::optional<Reducer> found = wins(value->operand(0), a, b);
    if (!found) return std::nullopt;
    const auto smaller_of_equal = [&](ValueId id) {
      return both(id, "stablehlo.and", [&](ValueId lhs, ValueId rhs) {
        return (compares(lhs, "EQ", a, b) || compares(lhs, "EQ", b, a)) && is_less(rhs, i, j);
      });
    };
    const bool fits = both(index->operand(0), "stablehlo.or",
                           [&](ValueId lhs, ValueId rhs) { return wins(lhs, a, b) == found && smaller_of_equal(rhs); });
    return fits ? found : std::nullopt;
  }

 private:
  std::optional<OpView> made_by(ValueId value, std::string_view name) const {
    const OpId id = module_.value(value).op;
    if (!id || module_.op(id).def->name != name) return std::nullopt;
    return OpView(module_, id);
  }

  // Matches an op whose two operands fit in either order.
  template <class Fits>
  bool both(ValueId value, std::string_view name, const Fits& fits) const {
    const std::optional<OpView> op = made_by(value, name);
    return op && (fits(op->operand(0), op->operand(1)) || fits(op->operand(1), op->operand(0)));
  }

  bool compares(ValueId value, std::string_view direction, ValueId lhs, ValueId rhs) const {
    const std::optional<OpView> op = made_by(value, "stablehlo.compare");
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
      const ValueId low = reducer == Reducer::kMax ? b : a, high = reducer == Reducer::kMax ? a : b;
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

}  // namespace

void expect_elementwise_region(const InferContext& op) {
  const Module& module = op.module();
  const RegionId id = op.regions()[0];
  const Region& region = module.region(id);
  const std::string_view other = not_in_tiles(module, id);
  if (!other.empty()) {
    op.fail_shape("the region must be elementwise ops and constants", other,
                  "compute the rest outside, on whole tensors");
  }
  const auto expect_inside = [&](ValueId value) {
    if (is_inside(module, id, value)) return;
    op.fail_shape("the region must use its own arguments and constants alone", "a value from around it",
                  "pass the value as one more tensor");
  };
  for (const OpId inner : region.ops) {
    const OpView view(module, inner);
    for (const ValueId operand : view.operands()) expect_inside(operand);
    if (view.result_type().ndim() != 0) {
      op.fail_shape("the region must compute with scalars", str(view.name(), " of ", view.result_type().text()),
                    "combine one row with another, not whole tensors");
    }
  }
  for (const ValueId result : region.results) expect_inside(result);
}

std::optional<Reducer> region_argument_reducer(const Module& module, RegionId id) {
  const Region& region = module.region(id);
  if (region.arguments.size() != 4 || region.results.size() != 2) return std::nullopt;
  if (!is_integer(module.type(region.arguments[1]).dtype)) return std::nullopt;
  return ArgumentPattern(module, region).reducer();
}

RegionId build_argument_region(Builder& builder, Reducer reducer, DType value, DType index) {
  Module& module = builder.module();
  const RegionId id = module.add_region();
  std::array<ValueId, 4> arguments;
  for (size_t i = 0; i < 4; ++i) {
    arguments[i] = module.add_argument(id, builder.context().tensor(i % 2 == 0 ? value : index, {}));
  }
  const auto [a, i, b, j] = arguments;
  Builder inner(module, id, builder.loc());
  const ValueId better = compare(inner, reducer == Reducer::kMax ? "GT" : "LT", a, b);
  const ValueId wins = inner.create("stablehlo.or", {better, compare(inner, "NE", a, a)});
  const ValueId equal = compare(inner, "EQ", a, b);
  const ValueId first = inner.create("stablehlo.and", {equal, compare(inner, "LT", i, j)});
  const ValueId wins_index = inner.create("stablehlo.or", {wins, first});
  const ValueId best = inner.create("stablehlo.select", {wins, a, b});
  const ValueId best_index = inner.create("stablehlo.select", {wins_index, i, j});
  module.region(id).results = {best, best_index};
  return id;
}

std::vector<ValueId> apply_region(Builder& builder, const Module& module, RegionId id,
                                  std::span<const ValueId> operands) {
  const Region region = module.region(id);  // a copy: the arrays of the builder's module move when they grow
  const Dims shape = builder.module().type(operands[0]).shape;
  std::unordered_map<ValueId, ValueId> images;
  for (size_t i = 0; i < operands.size(); ++i) images[region.arguments[i]] = operands[i];
  for (const OpId inner : region.ops) {
    const OpView op(module, inner);
    const ValueId result = op.result();
    if (op.operand_count() == 0) {
      images[result] = build_splat(builder, shape, *splat_value(module, result));
      continue;
    }
    std::vector<ValueId> mapped;
    for (const ValueId operand : op.operands()) mapped.push_back(images.at(operand));
    const std::array declared{builder.context().tensor(op.result_type().dtype, shape)};
    const OpId made = builder.create_op(op.def(), mapped, module.op(inner).attrs, declared);
    images[result] = builder.module().result(made);
  }
  std::vector<ValueId> results;
  for (const ValueId result : region.results) results.push_back(images.at(result));
  return results;
}

RegionId counted_region(Builder& builder, const Module& module, RegionId region) {
  Module& target = builder.module();
  const RegionId id = target.add_region();
  const std::vector<ValueId> originals = module.region(region).arguments;
  const size_t count = originals.size() / 2;
  const TypeId flag = builder.context().tensor(DType::kBool, {});
  std::array<std::vector<ValueId>, 2> rows;
  std::array<ValueId, 2> counts;
  std::vector<ValueId> operands;
  for (size_t side = 0; side < 2; ++side) {
    for (size_t i = 0; i < count; ++i) {
      rows[side].push_back(target.add_argument(id, module.value(originals[side * count + i]).type));
    }
    counts[side] = target.add_argument(id, flag);
    operands.insert(operands.end(), rows[side].begin(), rows[side].end());
  }
  Builder inner(target, id, builder.loc());
  const std::vector<ValueId> combined = apply_region(inner, module, region, operands);
  const ValueId both = inner.create("stablehlo.and", {counts[0], counts[1]});
  std::vector<ValueId> results;
  for (size_t i = 0; i < count; ++i) {
    const ValueId one = inner.create("stablehlo.select", {counts[0], rows[0][i], rows[1][i]});
    results.push_back(inner.create("stablehlo.select", {both, combined[i], one}));
  }
  results.push_back(inner.create("stablehlo.or", {counts[0], counts[1]}));
  target.region(id).results = std::move(results);
  return id;
}

}  // namespace shardwise
