// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/window/reduce_window.h"

#include "shardwise/base/quantity.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/reduce_window.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/partitioning/exchange_partition.h"
#include "shardwise/ops/partitioning/local_ranges.h"
#include "shardwise/ops/partitioning/moved_axes.h"
#include "shardwise/ops/shared/combiner_regions.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/region_tiles.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/ops/shared/windows.h"
#include "shardwise/ops/window/cumulative_rows.h"

namespace shardwise {
namespace {

// ---- infer ---------------------------------------------------------------------------------------------------------

void infer_reduce_window(const InferContext& op, std::vector<TypeId>& results) {
  const size_t inputs = expect_reduction(op);
  if (!region_reducer(op.module(), op.regions()[0])) expect_elementwise_region(op);
  const Dims sizes = infer_windows(op, op.attrs(), op.operand(0).shape);
  for (size_t i = 0; i < inputs; ++i) results.push_back(result_or_declared(op, {op.operand(i).dtype, sizes}, i));
}

// ---- rule and partition --------------------------------------------------------------------------------------------

ShardingRule rule_reduce_window(const OpView& op) {
  RuleBuilder rule(op);
  const Window window = Window::of(op);
  const Dims& to = op.result_type().shape;
  for (size_t dim = 0; dim < to.size(); ++dim) {
    const FactorId factor = window.is_trivial(dim) ? rule.factor(to[dim]) : rule.permutation(to[dim]);
    // Several operands share their windows, and so one factor and one range per dim.
    for (size_t i = 0; i < op.result_count(); ++i) {
      rule.map(i, dim, factor).map(rule.result_tensor(i), dim, factor);
      if (!window.is_trivial(dim)) rule.range(i, dim, window.range(dim));
    }
  }
  return rule.build();
}

// The init value of an input. Of a pending sum, one device counts it.
ValueId init_value(PartitionContext& context, size_t input) {
  const OpView op = context.op();
  const size_t operand = op.result_count() + input;
  const std::optional<Reducer> reducer = op_reducer(op);
  return reducer ? counted_once(context, operand, context.result_layout(input).unreduced(), *reducer)
                 : context.operand(operand);
}

// The op on the local inputs.
void set_local_windows(PartitionContext& context, std::vector<ValueId> operands, AttrsId attrs) {
  for (size_t i = 0; i < context.op().result_count(); ++i) operands.push_back(init_value(context, i));
  set_results(context, create_again(context.builder(), context.op(), operands, attrs, local_result_types(context)));
}

// A sharded dim ends past the last window of the block.
void partition_reduce_window(PartitionContext& context) {
  Window window = Window::of(context.op());
  const LayoutView from = context.operand_layout(0);
  const LayoutView to = context.result_layout(0);
  bool moves = false;
  for (size_t dim = 0; dim < to.ndim(); ++dim) {
    if (window.is_trivial(dim) || to.axes(dim).empty()) continue;
    window.high[dim] = padding_after(window.range(dim), to.block(dim), from.block(dim));
    moves = true;
  }
  const OpView op = context.op();
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < op.result_count(); ++i) inputs.push_back(context.operand(i));
  const AttrsId attrs = moves ? context.builder().context().intern(window_attrs(window)) : attrs_of(op);
  set_local_windows(context, std::move(inputs), attrs);
}

// A shard combines its own rows, and the totals of the shards before it.
std::vector<FactorId> cumulative_factors(const OpView& op, const ShardingRule& rule) {
  std::vector<FactorId> factors;
  const Window window = Window::of(op);
  const Dims& shape = op.operand_type(0).shape;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (window.prefix(dim, shape[dim]) != Prefix::kNone) factors.push_back(rule.dim(0, dim)[0]);
  }
  const bool scans = factors.empty() || op_reducer(op) || !neutral_inits(op).empty();
  return scans ? factors : std::vector<FactorId>{};
}

std::vector<FactorId> chain_factors(const OpView& op, const ShardingRule& rule) {
  return op_reducer(op) ? cumulative_factors(op, rule) : std::vector<FactorId>{};
}

// Windows along another sharded dim are no part of it.
void placements_of_totals(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                          std::vector<OpPlacement>& found) {
  const Window window = Window::of(op);
  const Dims& shape = op.operand_type(0).shape;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const bool is_other = !window.is_trivial(dim) && window.prefix(dim, shape[dim]) == Prefix::kNone;
    if (is_other && !axes[rule.dim(0, dim)[0]].empty()) return;
  }
  placements_by_rule(op, rule, axes, found);
}

void placements_of_cumulative(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                              std::vector<OpPlacement>& found) {
  placements_along_other_dims(rule, cumulative_factors(op, rule), axes, found);
}

// ---- windows over rows of other shards -----------------------------------------------------------------------------

// A cumulative op of a known reducer has cheaper methods.
std::vector<FactorId> window_factors(const OpView& op, const ShardingRule& rule) {
  return cumulative_factors(op, rule).empty() ? moved_factors(op, rule) : std::vector<FactorId>{};
}

bool is_whole(const PartitionContext& context, size_t dim) {
  bool whole = context.result_layout(0).axes(dim).empty();
  for (size_t i = 0; i < context.op().result_count(); ++i) {
    whole = whole && context.operand_layout(i).axes(dim).empty();
  }
  return whole;
}

// Each shard receives what its windows read, holes and padding included, so that no padding is left in `window`.
ExchangeMap window_map(const PartitionContext& context, size_t operand, Window& window) {
  ExchangeMap map{.to = {}, .from = {{}}};
  const std::vector<DimLayout> from = context.operand_layout(operand).dims();
  const std::vector<DimLayout> to = context.result_layout(0).dims();
  for (size_t dim = 0; dim < to.size(); ++dim) {
    ExchangeTarget target = exchange_target(context, dim);
    ExchangeSource source = source_of(from[dim]);
    if (!window.is_trivial(dim) && is_whole(context, dim)) {
      target.rows = target.step = target.size = from[dim].size;  // the window op does it all
    } else if (!window.is_trivial(dim)) {
      const auto read = [range = window.range(dim)](int64_t windows) {
        return places_read(range, windows).end - range.offset;
      };
      target = {.axes = to[dim].axes,
                .rows = read(to[dim].block),
                .step = to[dim].block * window.strides[dim],
                .size = read(to[dim].size)};
      source.offset = -window.low[dim];
      source.holes = window.base_dilations[dim];
      window.low[dim] = window.high[dim] = 0;
      window.base_dilations[dim] = 1;
    }
    map.to.push_back(target);
    map.from[0].push_back(source);
  }
  return map;
}

void partition_by_windows(PartitionContext& context) {
  const OpView op = context.op();
  Window window;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < op.result_count(); ++i) {
    window = Window::of(op);
    const ValueId operand = context.operand(i);
    const ExchangeMap map = window_map(context, i, window);
    inputs.push_back(emit_exchange(context, {&operand, 1}, init_value(context, i), map));
  }
  set_local_windows(context, std::move(inputs), context.builder().context().intern(window_attrs(window)));
}

OpCost cost_reduce_window(const OpView& op, const LocalTypes& types) {
  OpCost cost = cost_by_rule(op, types);
  const Window window = Window::of(op);
  cost.vector = saturated_product(static_cast<int64_t>(op.result_count()), types.result().element_quantity());
  for (size_t dim = 0; dim < window.sizes.size(); ++dim) {
    // A cumulative op reuses the previous window, so its cost does not grow with the window.
    const bool linear = window.prefix(dim, op.operand_type(0).shape[dim]) != Prefix::kNone && op_reducer(op);
    if (!linear) cost.vector = saturated_product(cost.vector, window.sizes[dim]);
  }
  return cost;
}

// ---- batch ---------------------------------------------------------------------------------------------------------

Window with_leading_dim(Window window) {
  for (Dims* list : {&window.sizes, &window.strides, &window.base_dilations, &window.dilations}) {
    list->insert(list->begin(), 1);
  }
  for (Dims* list : {&window.low, &window.high}) list->insert(list->begin(), 0);
  return window;
}

// An init value per example cannot be the op's scalar: its share is computed from ones of it (of a sum, how often it
// is counted times the value), which vmap batches like any other ops.
void batch_init(BatchContext& context, Reducer reducer, const Window& window) {
  Builder& builder = context.builder();
  const TensorType result = context.op().result_type();
  const Dims shape = with_leading(context.size(), result.shape);
  const ValueId neutral = build_reduce_window(builder, context.batched(0), {}, reducer, window);
  const ValueId value = build_broadcast(builder, context.operand(1), shape, Dims{0});
  ValueId share = value;
  if (!is_idempotent(reducer)) {
    const ValueId one = build_scalar(builder, scalar_of(result.dtype, 1));
    const Dims from = context.op().operand_type(0).shape;
    const ValueId count = build_init_share(builder, one, Reducer::kSum, Window::of(context.op()), from);
    const ValueId counts = build_broadcast(builder, count, shape, identity_dims(result.ndim(), 1));
    share = builder.create(reducer == Reducer::kSum ? "stablehlo.multiply" : "stablehlo.power", {value, counts});
  }
  context.set_result(0, builder.create(reducer_op_name(reducer), {neutral, share}));
}

void batch_reduce_window(BatchContext& context) {
  const OpView op = context.op();
  Builder& builder = context.builder();
  const Window window = with_leading_dim(Window::of(op));
  const size_t inputs = op.result_count();
  std::vector<ValueId> operands;
  for (size_t i = 0; i < inputs; ++i) operands.push_back(context.batched(i));
  for (size_t i = inputs; i < 2 * inputs; ++i) {
    if (context.is_batched(i)) return batch_init(context, required_reducer(op), window);
    operands.push_back(context.operand(i));
  }
  set_results(context, create_again(builder, op, operands, builder.context().intern(window_attrs(window))));
}

// ---- the family ----------------------------------------------------------------------------------------------------

constexpr Method kReduceWindowMethods[] = {
    {"gathered totals", cumulative_factors, placements_of_totals, partition_by_gathered_totals},
    {"totals", cumulative_factors, placements_of_totals, partition_by_totals},
    {"chain", chain_factors, placements_of_totals, partition_by_chain},
    {"another dim", cumulative_factors, placements_of_cumulative, nullptr},
    {kExchange, window_factors, nullptr, partition_by_windows},
};

constexpr OpDef kWindowOps[] = {
    {.name = "stablehlo.reduce_window",
     .infer = infer_reduce_window,
     .rule = rule_reduce_window,
     .partition = partition_reduce_window,
     .methods = kReduceWindowMethods,
     .prepare = prepare_reduce_window,
     .cost = cost_reduce_window,
     .vjp = vjp_reduce_window,
     .batch = batch_reduce_window,
     .linear = {Linear::kFirst, kAllReducers},
     .regions = Regions::kCombiner,
     .addends = Addends::kWideOperands,
     .verify_runnable = verify_region_tiles,
     .doc =
         "Combines the elements under a moving window; cumulative sums are its prefix form (StableHLO reduce_window)."},
};
static_assert(all_complete(kWindowOps));

}  // namespace

std::span<const OpDef> reduce_window_ops() { return kWindowOps; }

}  // namespace shardwise
