// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/dry_run.h"

#include "shardwise/analysis/collective_price.h"
#include "shardwise/analysis/fuse.h"
#include "shardwise/analysis/group_time.h"
#include "shardwise/base/size_error.h"
#include "shardwise/emission/local_partition_context.h"
#include "shardwise/emission/working_mesh.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {
namespace {

// The constant that a value is made of only by movement; none for other values.
OpId constant_behind(const Module& module, ValueId value) {
  OpId id = module.value(value).op;
  while (id && module.op(id).def->traits.movement && module.op(id).operand_count == 1) {
    id = module.value(module.operands(id)[0]).op;
  }
  return id && module.op(id).def->traits.constant_like ? id : OpId{};
}

}  // namespace

std::vector<std::pair<size_t, AttrsId>> constant_operands(const OpView& op) {
  std::vector<std::pair<size_t, AttrsId>> constants;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const OpId made = constant_behind(op.module(), op.operand(i));
    if (made) constants.emplace_back(i, op.module().op(made).attrs);
  }
  return constants;
}

const MethodCost& DryRuns::cost(const OpView& op, const ShardingRule& rule, const Method& method,
                                const std::vector<PlacementId>& placements, const std::vector<bool>& is_used) {
  const auto [found, is_new] =
      known_.try_emplace(Key{&rule, &method, placements, is_used, constant_operands(op)}, MethodCost{});
  MethodCost& cost = found->second;
  if (!is_new) return cost;
  try {
    add_cost(emitted(op, rule, method, placements, is_used), cost);
  } catch (const SizeError&) {
    cost.is_possible = false;
  }
  return cost;
}

void DryRuns::add_cost(const Module& program, MethodCost& cost) const {
  // Methods emit no loops: each collective runs once.
  walk(program, [&](OpId id) {
    const LocalCollective collective = read_collective(OpView(program, id));
    cost.bytes += collective.bytes;
    cost.is_chain = cost.is_chain || collective.is_chain;
  });
  cost.price = price_of(program);
}

Price DryRuns::price_of(const Module& program) const {
  Price price;
  walk(program, [&](OpId id) { price += collective_price(read_collective(OpView(program, id)), hardware_); });
  for (const FusionGroup& group : fuse(program, {.fused_attention = hardware_.fused_attention}).groups) {
    const OpTime time = group_time(program, group, hardware_);
    price += {.ps = time.ps_without_launch(), .work = time.flops};
  }
  return price;
}

Module DryRuns::emitted(const OpView& op, const ShardingRule& rule, const Method& method,
                        const std::vector<PlacementId>& placements, const std::vector<bool>& is_used) const {
  // It shares the context, so that types and placements have the same ids.
  Module scratch = empty_copy(source_);
  Context& context = scratch.context();
  Builder builder(scratch, scratch.main().body);
  std::vector<LocalValue> operands, results;
  for (size_t t = 0; t < placements.size(); ++t) {
    const bool is_operand = t < op.operand_count();
    const ValueId global = is_operand ? op.operand(t) : op.result(t - op.operand_count());
    LocalValue local = local_value(context, {op.module().value(global).type, placements[t]});
    if (is_operand) local.value = scratch.add_argument(builder.region(), local_type(context, local.part.placed()));
    (is_operand ? operands : results).push_back(local);
  }
  LocalEmitter emitter(builder, working_mesh(context, placements));
  LocalPartitionContext partition(emitter, op, rule, &method, std::move(operands), std::move(results));
  const std::vector<LocalValue> made = partition.run();
  for (size_t i = 0; i < made.size(); ++i) {
    if (is_used[i]) scratch.region(builder.region()).results.push_back(made[i].value);
  }
  // A method may emit collectives for results that nothing uses.
  dce(scratch);
  return scratch;
}

}  // namespace shardwise
