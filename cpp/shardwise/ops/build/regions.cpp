// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/regions.h"

#include <array>
#include <unordered_map>

#include "shardwise/base/error.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/decomposition.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// A composed op of whole tensors, as the ops that it consists of. Regions of their own hold what is replaced.
ValueId build_decomposed(Builder& builder, OpId id, GraphCopy& copy) {
  Module& module = builder.module();
  // The decomposition is made in a region that nothing owns, so that parts of it that are composed again can be
  // replaced before they get into the program.
  Builder scratch(module, module.add_region(), builder.loc());
  const std::vector<ValueId> results = append_decomposition(scratch, OpView(module, id));
  if (results.empty()) refuse_to_decompose(OpView(module, id), "run in a region");
  const std::vector<OpId> ops = module.region(scratch.region()).ops;
  for (const OpId op : ops) {
    if (is_composed(*module.op(op).def)) {
      copy.map(module.result(op), build_decomposed(builder, op, copy));
    } else {
      copy.op(op, builder.region());
    }
  }
  return copy(results[0]);
}

}  // namespace

std::vector<ValueId> apply_region(Builder& builder, const Module& module, RegionId id,
                                  std::span<const ValueId> operands) {
  const Region region = module.region(id);  // a copy: if the module is the builder's, its arrays move as they grow
  const Dims shape = builder.module().type(operands[0]).shape;
  std::unordered_map<ValueId, ValueId> images;
  for (size_t i = 0; i < operands.size(); ++i) images[region.arguments[i]] = operands[i];
  const auto image = [&](ValueId value) {
    // A value from around the region is a scalar of the program; here it is needed once for each element.
    const auto [found, is_captured] = images.try_emplace(value);
    if (is_captured) found->second = build_broadcast(builder, value, shape, {});
    return found->second;
  };
  for (const OpId inner : region.ops) {
    const OpView op(module, inner);
    const ValueId result = op.result();
    if (op.operand_count() == 0) {
      const std::optional<Scalar> splat = splat_value(module, result);
      // A constant cannot be copied as it is: its attribute has the shape of a scalar.
      check_internal(splat.has_value(), "an op without operands in a region of scalars is a constant");
      images[result] = build_splat(builder, shape, *splat);
      continue;
    }
    std::vector<ValueId> mapped;
    for (const ValueId operand : op.operands()) mapped.push_back(image(operand));
    // Ops such as convert do not imply their result type.
    const std::array declared{builder.context().tensor(op.result_type().dtype, shape)};
    Module& target = builder.module();
    const bool composed = is_composed(op.def());
    Builder into(target, composed ? target.add_region() : builder.region(), builder.loc());
    const OpId made = into.create_op(op.def(), mapped, module.op(inner).attrs, declared);
    GraphCopy copy(target, target);
    images[result] = composed ? build_decomposed(builder, made, copy) : target.result(made);
  }
  std::vector<ValueId> results;
  for (const ValueId result : region.results) results.push_back(image(result));
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
    // The flag is the last argument of each side.
    counts[side] = target.add_argument(id, flag);
    operands.insert(operands.end(), rows[side].begin(), rows[side].end());
  }
  Builder inner(target, id, builder.loc());
  const std::vector<ValueId> combined = apply_region(inner, module, region, operands);
  const ValueId both = inner.create("stablehlo.and", {counts[0], counts[1]});
  std::vector<ValueId> results;
  for (size_t i = 0; i < count; ++i) {
    // counts (1, 0): the left row; (0, 1): the right one; (1, 1): both combined. For (0, 0) the row means nothing.
    const ValueId one = inner.create("stablehlo.select", {counts[0], rows[0][i], rows[1][i]});
    results.push_back(inner.create("stablehlo.select", {both, combined[i], one}));
  }
  results.push_back(inner.create("stablehlo.or", {counts[0], counts[1]}));
  target.region(id).results = std::move(results);
  return id;
}

std::vector<ValueId> build_region_reduce(Builder& builder, const Module& module, RegionId source,
                                         std::span<const ValueId> operands, const Dims& dims, bool counted) {
  const RegionId region =
      counted ? counted_region(builder, module, source) : GraphCopy(module, builder.module()).region(source);
  const OpId made = builder.create_op("stablehlo.reduce", operands, Attrs{{"dimensions", dims}}, {}, {&region, 1});
  return list_of_results(builder.module(), made);
}

}  // namespace shardwise
