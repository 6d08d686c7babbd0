// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/localize.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/shared/padding.h"
#include "shardwise/partition/localize_collectives.h"
#include "shardwise/partition/partition_context.h"
#include "shardwise/propagation/program_shardings.h"
#include "shardwise/transforms/rewriter.h"

namespace shardwise {
namespace {

// What a device sums up is a part where others have the rest: the result has to say so, or it would be taken for whole.
void check_left_unreduced(const PartitionContext& context) {
  const ShardingRule& rule = context.rule();
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    if (rule.factors()[f].kind != FactorKind::kReduction || rule.factors()[f].exchanged) continue;
    const auto factor = static_cast<FactorId>(f);
    for (size_t i = 0; i < context.op().operand_count(); ++i) {
      const LocalLayout& operand = context.operand_layout(i);
      for (size_t d = 0; d < operand.dims.size(); ++d) {
        const auto factors = rule.dim(i, d);
        if (factors.size() != 1 || factors[0] != factor) continue;
        for (const AxisRef& axis : operand.dims[d].axes) {
          const auto has = [&](const AxisRef& left) { return contains(left, axis); };
          if (context.op().result_count() == 0 || std::ranges::any_of(context.result_layout(0).unreduced, has))
            continue;
          fail<ShardingError>(context.op().name(), "what it sums up must be whole, or its result left unreduced",
                              str("dim ", d, " of operand ", i, " over ", axis_text(context.mesh(), axis)));
        }
      }
    }
  }
}

class Localization {
 public:
  explicit Localization(const Module& source)
      : rewriter_(source), emitter_(rewriter_.builder(), main_mesh(source)), values_(source.value_count()) {}

  void run(Program& program) {
    for (const ValueId argument : rewriter_.source_body().arguments) add_argument(argument);
    for (const OpId id : rewriter_.source_body().ops) add_op(OpView(rewriter_.source(), id));
    Function& main = rewriter_.target().main();
    for (const ValueId result : rewriter_.source_body().results) {
      rewriter_.target().region(main.body).results.push_back(values_[result.index].value);
    }
    main.result_shardings.assign(main.result_shardings.size(), ShardingId{});
    layouts_.resize(rewriter_.target().value_count());
    program.layouts = std::move(layouts_);
    program.module = rewriter_.finish();
  }

 private:
  void add_argument(ValueId argument) {
    LocalValue local{.value = {}, .layout = layout_of(rewriter_.source(), argument)};
    const TensorType& type = rewriter_.source().type(argument);
    local.value = rewriter_.add_argument(argument, context().tensor(type.dtype, local.layout.local_shape()));
    keep(argument, std::move(local));
  }

  void add_op(const OpView& op) {
    rewriter_.builder().set_loc(op.loc());
    const Traits& traits = op.def().traits;
    if (traits.collective != CollectiveKind::kNone) {
      const LocalValue& operand = values_[op.operand(0).index];
      LocalValue result{.value = {}, .layout = layout_of(rewriter_.source(), op.result())};
      result.value = localize_collective(emitter_, op, operand.value, operand.layout, result.layout);
      keep(op.result(), std::move(result));
      return;
    }
    check_internal(!traits.reshard && !traits.constraint, "a program that is made local has collectives alone");
    std::vector<const LocalValue*> operands;
    for (const ValueId operand : op.operands()) operands.push_back(&values_[operand.index]);
    std::vector<LocalValue> results;
    for (size_t i = 0; i < op.result_count(); ++i) results.push_back({{}, layout_of(rewriter_.source(), op.result(i))});
    LocalPartitionContext partition(emitter_, op, context().sharding_rule(op), std::move(operands), std::move(results));
    check_left_unreduced(partition);
    std::vector<LocalValue> made = partition.run();
    for (size_t i = 0; i < made.size(); ++i) keep(op.result(i), std::move(made[i]));
  }

  void keep(ValueId global, LocalValue local) {
    // A value that an op hands through keeps the layout it was made with.
    if (layouts_.size() <= local.value.index) layouts_.resize(local.value.index + 1);
    LocalLayout& layout = layouts_[local.value.index];
    if (!layout.global_value) layout = local.layout;
    values_[global.index] = std::move(local);
  }

  Context& context() { return rewriter_.target().context(); }

  Rewriter rewriter_;
  LocalEmitter emitter_;
  std::vector<LocalValue> values_;    // by global value
  std::vector<LocalLayout> layouts_;  // by local value
};

}  // namespace

LocalLayout layout_of(const Module& module, ValueId value) {
  const Value& source = module.value(value);
  const Dims& shape = module.type(value).shape;
  LocalLayout layout{.global_value = value, .global_type = source.type, .dims = {}, .unreduced = {}, .padding = {}};
  const TensorSharding* sharding = source.sharding ? &module.context().sharding(source.sharding) : nullptr;
  const Dims* blocks = module.blocks(value);
  for (size_t d = 0; d < shape.size(); ++d) {
    DimLayout dim{.size = shape[d], .axes = {}, .shards = 1, .block = shape[d]};
    if (sharding != nullptr && d < sharding->dims.size()) {
      dim.axes = sharding->dims[d].axes;
      dim.shards = product(dim.axes);
      dim.block = blocks != nullptr ? (*blocks)[d] : ceil_div(dim.size, dim.shards);
    }
    layout.dims.push_back(std::move(dim));
  }
  if (sharding != nullptr && !sharding->unreduced.empty()) {
    layout.unreduced = sharding->unreduced;
    layout.reducer = sharding->pending_reducer();
  }
  layout.padding = result_padding(layout);
  return layout;
}

void localize(Program& program) { Localization(program.module).run(program); }

}  // namespace shardwise
