// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/window/select_and_scatter.h"

#include "shardwise/base/text.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/propagation_only.h"
#include "shardwise/ops/shared/windows.h"

namespace shardwise {
namespace {

void expect_region(const InferContext& op, size_t index, DType result) {
  const Region& region = op.module().region(op.regions()[index]);
  const TensorType scalar{op.operand(0).dtype, {}};
  bool fits = region.arguments.size() == 2 && region.results.size() == 1;
  for (ValueId argument : region.arguments) fits = fits && op.module().type(argument) == scalar;
  fits = fits && op.module().type(region.results[0]) == TensorType{result, {}};
  if (fits) return;
  op.fail_dtype(index == 0 ? "the first region must compare two scalars of the operand"
                           : "the second region must combine two scalars of the operand into one",
                op.operand_types_text());
}

void infer_select_and_scatter(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(3);
  op.expect_regions(2);
  const DType dtype = op.operand(0).dtype;
  if (op.operand(1).dtype != dtype) {
    op.fail_dtype("operand and source must have the same dtype", op.operand_types_text(), "convert one of them first");
  }
  expect_scalar(op, 2, dtype);
  expect_region(op, 0, DType::kBool);
  expect_region(op, 1, dtype);
  const Attrs window = op.attrs().find("window_dimensions") != nullptr
                           ? op.attrs()
                           : Attrs{{"window_dimensions", Dims(op.operand(0).shape.size(), 1)}};
  const Dims windows = infer_windows(op, window, op.operand(0).shape);
  if (windows != op.operand(1).shape) {
    op.fail_shape("the source must have one element per window",
                  str(op.operand(1).text(), " for windows ", dims_text(windows)), "correct its shape");
  }
  results.push_back(result_or_declared(op, op.operand(0)));
}

ShardingRule rule_select_and_scatter(const OpView& op) {
  RuleBuilder rule(op);
  const Window window = Window::of(op);
  const Dims& from = op.operand_type(0).shape;
  const Dims& source = op.operand_type(1).shape;
  const size_t result = rule.result_tensor(0);
  for (size_t dim = 0; dim < from.size(); ++dim) {
    if (window.is_trivial(dim)) {
      const FactorId factor = rule.factor(from[dim]);
      rule.map(0, dim, factor).map(1, dim, factor).map(result, dim, factor);
      continue;
    }
    // A window may select an element on another device, so the source must be whole along windowed dims.
    const FactorId of_source = rule.need_replication(source[dim]);
    rule.map(1, dim, of_source);
    const FactorId factor = rule.permutation(from[dim]);
    rule.map(0, dim, factor).map(result, dim, factor);
  }
  return rule.build();
}

constexpr OpDef kSelectAndScatterOps[] = {
    propagation_only_op("stablehlo.select_and_scatter", infer_select_and_scatter, rule_select_and_scatter, {},
                        "Adds to the place that each window selects (StableHLO select_and_scatter)."),
};
static_assert(all_complete(kSelectAndScatterOps));

}  // namespace

std::span<const OpDef> select_and_scatter_ops() { return kSelectAndScatterOps; }

}  // namespace shardwise
