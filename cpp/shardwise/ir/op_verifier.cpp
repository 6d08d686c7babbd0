// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/op_verifier.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/attribute_printer.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/propagation_edges.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/rule/rule_attribute.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/mesh/sharding_text.h"

namespace shardwise {
namespace {

void verify_attribute(const OpView& op, std::string_view name, const Attribute& value) {
  if (name == text_words::kShardingRule) {
    const auto* rule = std::get_if<RuleAttr>(&value.base());
    if (rule == nullptr) {
      fail<ShardingError>(op.name(), "its sharding rule must be #sdy.op_sharding_rule<…>", attribute_text(value));
    }
    verify(*rule, op);
  } else if (name == text_words::kPropagationEdges) {
    verify_propagation_edges(op, value);
  } else if (name == text_words::kSharding) {
    const auto* shardings = std::get_if<ShardingPerValue>(&value.base());
    check_internal(shardings != nullptr && op.result_count() == 0,
                   "only an op without results has its shardings as an attribute");
    verify_without_results(op.name(), *shardings);
  }
}

bool is_unconstrained(const TensorSharding& sharding) {
  return sharding.dims.empty() && sharding.replicated.empty() && sharding.unreduced.empty();
}

// A text may claim a stage that its program has not reached.
void verify_stage(const OpView& op) {
  const Traits& traits = op.def().traits;
  const Stage stage = op.module().stage;
  Stage first = Stage::kGlobal, last = Stage::kLocal;
  // Choosing placements consumes the constraints, and planning consumes the reshards.
  if (traits.constraint) last = Stage::kPropagated;
  if (traits.reshard) last = Stage::kAssigned;
  if (traits.collective != CollectiveKind::kNone) {
    // Local collectives need local shapes; Shardy's have global ones.
    is_local_collective(op) ? first = Stage::kLocal : last = Stage::kResharded;
  }
  if (stage >= first && stage <= last) return;
  fail<ShardingError>(op.name(), str("must not be in a program at stage ", stage_name(stage)), {},
                      str("correct the attribute ", text_words::kStage, " of the module"));
}

}  // namespace

bool needs_verification(const OpView& op) {
  const Traits& traits = op.def().traits;
  return op.def().verify != nullptr || traits.data_flow_edge || traits.annotates() ||
         traits.collective != CollectiveKind::kNone ||
         std::ranges::any_of(op.attrs().entries(), [](const auto& entry) { return entry.first.starts_with("sdy."); });
}

void verify_op(const OpView& op) {
  verify_stage(op);
  for (const auto& [name, value] : op.attrs().entries()) {
    if (name.starts_with("sdy.")) verify_attribute(op, name, value);
  }
  if (op.def().verify != nullptr) op.def().verify(op);
}

void verify_sharding(const TensorSharding& sharding, const TensorType& type) {
  if (type.dtype == DType::kToken && !is_unconstrained(sharding)) {
    fail<ShardingError>("sharding", "that of a token must be of no dims and no axes", short_text(sharding), "write []");
  }
  verify(sharding, type.shape);
}

void verify_part(const Module& module, ValueId value) {
  const GlobalPart& part = module.part(value);
  if (!part.placement) return;
  const TensorType& global = module.global_type(value);
  const Placement& placement = module.context().placement(part.placement);
  verify(placement, global.shape);
  const TensorType block{global.dtype, placement.local_shape()};
  // A part without a type belongs to a global value, whose type is not that of a block.
  if (part.type && block != module.type(value)) {
    fail<ShardingError>("placement", str("a local value must have the type of a block, ", block.text()),
                        module.type(value).text());
  }
}

void verify_without_results(std::string_view op, const ShardingPerValue& shardings) {
  if (shardings.empty()) return;
  if (shardings.size() > 1) {
    fail<ShardingError>(op, "an op without results must have at most one sharding", std::to_string(shardings.size()));
  }
  const TensorSharding& sharding = shardings[0];
  if (is_unconstrained(sharding)) return;
  fail<ShardingError>(op, "the sharding of an op without results must be of no dims and no axes", short_text(sharding),
                      "write []");
}

// Finds all uses at once, and only in the rare program that has a data_flow_edge.
DataFlowEdgeUses::DataFlowEdgeUses(const Module& module) : module_(module) {
  if (any_op(module, [](const OpDef& def) { return def.traits.data_flow_edge; })) uses_.emplace(module);
}

void DataFlowEdgeUses::verify(OpId id) const {
  if (!uses_ || !module_.op(id).def->traits.data_flow_edge) return;
  const OpView op(module_, id);
  // As Shardy verifies: the edge is the only reader, so that all other users take the sharding that it propagates.
  if (const auto uses = std::ranges::distance(UseRange(module_, *uses_, op.operand(0))); uses != 1) {
    fail<ShardingError>(op.name(), "its operand must have no other user", str(uses - 1, " more"),
                        "let them use the result");
  }
  const OpId source = module_.value(op.operand(0)).op;
  if (!source || module_.op(source).def->flow != nullptr || !module_.op(source).def->name.starts_with("sdy.")) return;
  fail<ShardingError>(op.name(), "its operand must not be the result of an annotation", module_.op(source).def->name,
                      "let the annotation use the result");
}

}  // namespace shardwise
