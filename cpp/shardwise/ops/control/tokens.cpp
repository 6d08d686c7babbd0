// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/tokens.h"

#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

const TensorType kToken{DType::kToken, {}};

void expect_token(const InferContext& op, size_t operand) {
  // Also if there is no operand at all: the index of a caller has wrapped around then.
  expect_dtype(op, operand < op.operand_count() && op.operand(operand) == kToken, "the last operand must be a token");
}

void infer_after_all(const InferContext& op, std::vector<TypeId>& results) {
  op.accept_tokens();
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (op.operand(i) != kToken) op.fail_dtype("operands must be tokens", op.operand_types_text());
  }
  results.push_back(result_or_declared(op, kToken));
}

void infer_create_token(const InferContext& op, std::vector<TypeId>& results) {
  op.accept_tokens();
  op.expect_operands(0);
  results.push_back(result_or_declared(op, kToken));
}

// Values and a token go in, a token comes out.
void infer_sender(const InferContext& op, std::vector<TypeId>& results) {
  op.accept_tokens();
  // StableHLO puts the token last, after any number of values.
  expect_token(op, op.operand_count() - 1);
  results.push_back(result_or_declared(op, kToken));
}

// A token goes in, values and a token come out.
void infer_receiver(const InferContext& op, std::vector<TypeId>& results) {
  op.accept_tokens();
  op.expect_operands(1);
  expect_token(op, 0);
  infer_declared(op, results);
  // The token may be the only result: an infeed of an empty tuple.
  if (results.empty() || op.context().type(results.back()) != kToken) {
    op.fail_dtype("the last result must be a token",
                  results.empty() ? "none" : op.context().type(results.back()).text());
  }
}

// A token orders effects, and none of those that run needs that: it becomes an empty array, a value like others.
void decompose_token(DecomposeContext& context) {
  const TensorType& type = context.op().result_type();
  if (type.dtype != DType::kToken) context.set_result(0, build_zeros(context.builder(), type));
}

// Its effect is on the host, which a program cannot reach.
constexpr OpDef effect(std::string_view name, InferFn infer, std::string_view doc) {
  return OpDef{
      .name = name, .infer = infer, .rule = no_rule, .runs = Runs::kNot, .doc = doc, .traits = {.side_effect = true}};
}

constexpr OpDef kTokenOps[] = {
    composed_op("stablehlo.after_all", infer_after_all, no_rule, decompose_token, "operands attr-dict `:` result-type",
                "A token after several others (StableHLO after_all)."),
    composed_op("stablehlo.create_token", infer_create_token, no_rule, decompose_token, "attr-dict `:` result-type",
                "A token that nothing precedes (StableHLO create_token)."),
    effect("stablehlo.infeed", infer_receiver, "Reads from the host (StableHLO infeed)."),
    effect("stablehlo.outfeed", infer_sender, "Writes to the host (StableHLO outfeed)."),
    effect("stablehlo.send", infer_sender, "Sends over a channel (StableHLO send)."),
    effect("stablehlo.recv", infer_receiver, "Receives from a channel (StableHLO recv)."),
};
static_assert(all_complete(kTokenOps));

}  // namespace

std::span<const OpDef> token_ops() { return kTokenOps; }

bool makes_token(const OpDef& def) { return def.decompose == decompose_token; }

}  // namespace shardwise
