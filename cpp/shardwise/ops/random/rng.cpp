// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/random/rng.h"

#include "shardwise/base/text.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/propagation_only.h"

namespace shardwise {
namespace {

void infer_rng(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(3);
  const std::string& distribution = op.attr<EnumAttr>("rng_distribution").value;
  if (distribution != "UNIFORM" && distribution != "NORMAL") {
    op.fail_shape("rng_distribution must be UNIFORM or NORMAL", distribution);
  }
  const DType dtype = op.operand(0).dtype;
  for (size_t i = 0; i < 2; ++i) expect_scalar(op, i, dtype);
  const TensorType& result = op.declared_result();
  const TensorType& shape = op.operand(2);
  if (shape.ndim() != 1 || !is_signed_integer(shape.dtype) || shape.shape[0] != result.ndim() ||
      result.dtype != dtype) {
    op.fail_shape("the last operand must have the size of each dim of the result, whose dtype is that of the others",
                  str(op.operand_types_text(), " -> ", result.text()));
  }
  results.push_back(op.declared()[0]);
}

void infer_rng_bit_generator(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const std::string& algorithm = op.attr<EnumAttr>("rng_algorithm").value;
  if (algorithm != "DEFAULT" && algorithm != "THREE_FRY" && algorithm != "PHILOX") {
    op.fail_shape("rng_algorithm must be DEFAULT, THREE_FRY or PHILOX", algorithm);
  }
  if (op.operand(0).ndim() != 1 || !is_unsigned_integer(op.operand(0).dtype)) {
    op.fail_shape("the state must be a list of unsigned integers", op.operand(0).text());
  }
  const TensorType& output = op.declared_result(1);
  if (!is_integer(output.dtype) && !is_float(output.dtype)) op.fail_dtype("the output must be numbers", output.text());
  results.push_back(result_or_declared(op, op.operand(0)));
  results.push_back(op.declared()[1]);
}

ShardingRule rule_rng_bit_generator(const OpView& op) {
  RuleBuilder rule(op);
  // Every device needs the whole state, and its sharding must not propagate.
  const FactorId state = rule.need_replication(op.operand_type(0).shape[0], true);
  rule.map(0, 0, state).map(rule.result_tensor(0), 0, state);
  const Dims& output = op.result_type(1).shape;
  for (size_t dim = 0; dim < output.size(); ++dim) rule.map(rule.result_tensor(1), dim, rule.factor(output[dim]));
  return rule.build();
}

constexpr OpDef kRngOps[] = {
    propagation_only_op("stablehlo.rng", infer_rng, no_rule,
                        "operands `,` `distribution` `=` $rng_distribution attr-dict `:` functional-type",
                        "Random numbers from a hidden state (StableHLO rng).", {.side_effect = true}),
    propagation_only_op("stablehlo.rng_bit_generator", infer_rng_bit_generator, rule_rng_bit_generator,
                        "operands `,` `algorithm` `=` $rng_algorithm attr-dict `:` functional-type",
                        "Random bits, and the state behind them (StableHLO rng_bit_generator)."),
};
static_assert(all_complete(kRngOps));

}  // namespace

std::span<const OpDef> rng_ops() { return kRngOps; }

}  // namespace shardwise
