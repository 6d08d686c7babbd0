// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/window.h"

#include <algorithm>
#include <limits>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ops/create.h"
#include "shardwise/ops/cumulative.h"
#include "shardwise/ops/dim_checks.h"
#include "shardwise/ops/layout.h"
#include "shardwise/ops/reduce.h"
#include "shardwise/ops/reduce_regions.h"
#include "shardwise/ops/region_tiles.h"
#include "shardwise/ops/slicing.h"

namespace shardwise {
namespace {

// ---- infer ---------------------------------------------------------------------------------------------------------

void expect_positive(const InferContext& op, std::string_view name, const Dims& list) {
  if (std::all_of(list.begin(), list.end(), [](int64_t entry) { return entry > 0; })) return;
  op.fail_shape(str(name, " must be positive"), str(name, " = ", list, " for ", op.operand_types_text()),
                "1 leaves a dim as it is");
}

template <class T>
const T& expect_kind(const InferContext& op, const Attrs& attrs, std::string_view name) {
  const T* value = attrs.find<T>(name);
  return value != nullptr ? *value : op.attr<T>(name);  // which throws
}

void check_window(const InferContext& op, const Attrs& attrs, int64_t ndim) {
  const IntArray& sizes = expect_kind<IntArray>(op, attrs, "window_dimensions");
  expect_length(op, "window_dimensions", sizes, ndim);
  expect_positive(op, "window_dimensions", sizes);
  for (std::string_view name : {"window_strides", "base_dilations", "window_dilations"}) {
    if (attrs.find(name) == nullptr) continue;
    const IntArray& list = expect_kind<IntArray>(op, attrs, name);
    expect_length(op, name, list, ndim);
    expect_positive(op, name, list);
  }
  if (attrs.find("padding") == nullptr) return;
  const NdArray& padding = expect_kind<DenseAttr>(op, attrs, "padding").data;
  if (padding.dtype() != DType::kI64 || !equal(padding.shape(), Dims{ndim, 2})) {
    op.fail_shape("padding must be a low and a high count per dim",
                  str(TensorType{padding.dtype(), padding.shape()}.text(), " for ", op.operand_types_text()),
                  str("give a tensor<", ndim, "x2xi64>"));
  }
}

// In double, which rounds where integers would overflow. No valid tensor is that large.
bool is_reasonable(const Window& window, size_t dim, int64_t size) {
  constexpr double kLimit = 4503599627370496.0;  // 2^52
  const auto of = [](int64_t value) { return static_cast<double>(value); };
  const double dilated = of(size) * of(window.base_dilations[dim]);
  const double spanned = of(window.sizes[dim]) * of(window.dilations[dim]);
  const double pads = std::abs(of(window.low[dim])) + std::abs(of(window.high[dim]));
  return dilated + spanned + pads + of(window.strides[dim]) < kLimit;
}

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
  const Dims& from = op.operand_type(0).shape;
  const Dims& to = op.result_type().shape;
  const bool known = op_reducer(op).has_value();
  for (size_t dim = 0; dim < to.size(); ++dim) {
    const FactorId factor = window.is_trivial(dim) ? rule.factor(to[dim]) : rule.permutation(to[dim]);
    // A base dilation alone does not count, because Shardy ignores it.
    const bool moves =
        window.sizes[dim] != 1 || window.strides[dim] != 1 || window.low[dim] != 0 || window.high[dim] != 0;
    if (moves) rule.caution(factor, Caution::kBlock);
    // partition_cumulative exchanges the totals of the shards, so the dim may stay sharded.
    if (known && window.prefix(dim, from[dim]) != Prefix::kNone) rule.exchanged(factor);
    for (size_t i = 0; i < op.result_count(); ++i) rule.map(i, dim, factor).map(rule.result_tensor(i), dim, factor);
  }
  return rule.build();
}

void partition_reduce_window(PartitionContext& context) {
  const Window window = Window::of(context.op());
  const LocalLayout& layout = context.result_layout(0);
  for (size_t dim = 0; dim < layout.dims.size(); ++dim) {
    if (!window.is_trivial(dim) && !layout.dims[dim].axes.empty()) return partition_cumulative(context, window);
  }
  partition_by_rule(context);
}

OpCost cost_reduce_window(const OpView& op) {
  OpCost cost = cost_by_rule(op);
  const Window window = Window::of(op);
  cost.flops = static_cast<double>(op.result_count()) * static_cast<double>(op.result_type().size());
  for (size_t dim = 0; dim < window.sizes.size(); ++dim) {
    // A cumulative op reuses the previous window, so its cost does not grow with the window.
    const bool linear = window.prefix(dim, op.operand_type(0).shape[dim]) != Prefix::kNone && op_reducer(op);
    if (!linear) cost.flops *= static_cast<double>(window.sizes[dim]);
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

Attrs window_attrs(const Window& window) {
  const auto ndim = static_cast<int64_t>(window.sizes.size());
  const NdArray padding = NdArray::empty(DType::kI64, {ndim, 2});
  auto* entries = reinterpret_cast<int64_t*>(padding.data());
  for (size_t dim = 0; dim < window.sizes.size(); ++dim) {
    *entries++ = window.low[dim];
    *entries++ = window.high[dim];
  }
  return Attrs{{"base_dilations", window.base_dilations},
               {"padding", DenseAttr{padding}},
               {"window_dilations", window.dilations},
               {"window_dimensions", window.sizes},
               {"window_strides", window.strides}};
}

// A batched init value cannot be the op's scalar. Its contribution is computed from the number of times that it counts
// (for a sum, the number times the value), with ops that vmap batches like any others.
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
  const RegionId region = GraphCopy(op.module(), builder.module()).region(op.regions()[0]);
  const OpId batched =
      builder.create_op(op.def(), operands, builder.context().intern(window_attrs(window)), {}, {&region, 1});
  for (size_t i = 0; i < inputs; ++i) {
    context.set_result(i, builder.module().result(batched, static_cast<uint32_t>(i)));
  }
}

// ---- the family ----------------------------------------------------------------------------------------------------

constexpr OpDef kReduceWindow{
    .name = "stablehlo.reduce_window",
    .infer = infer_reduce_window,
    .rule = rule_reduce_window,
    .partition = partition_reduce_window,
    .prepare = prepare_reduce_window,
    .cost = cost_reduce_window,
    .vjp = vjp_reduce_window,
    .batch = batch_reduce_window,
    .doc =
        "Combines the elements under a moving window; cumulative sums are its prefix form (StableHLO reduce_window).",
};
static_assert(kReduceWindow.complete());

constexpr OpDef kWindowOps[] = {kReduceWindow};

Dims list_or_ones(const Attrs& attrs, std::string_view name, int64_t ndim) {
  const IntArray* list = attrs.find<IntArray>(name);
  return list != nullptr ? *list : Dims(static_cast<size_t>(ndim), 1);
}

}  // namespace

std::span<const OpDef> window_ops() { return kWindowOps; }

Dims infer_windows(const InferContext& op, const Attrs& attrs, const Dims& shape) {
  const auto ndim = static_cast<int64_t>(shape.size());
  check_window(op, attrs, ndim);
  const Window window = Window::of(attrs, ndim);
  Dims sizes;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (!is_reasonable(window, dim, shape[dim])) {
      op.fail_shape("windows, dilations and padding must be far below 2^52",
                    str("a window over dim ", dim, " of ", op.operand(0).text()), "make them smaller");
    }
    sizes.push_back(window.result_size(dim, shape[dim]));
  }
  return sizes;
}

Window Window::trivial(int64_t ndim) {
  const Dims ones(static_cast<size_t>(ndim), 1), zeros(static_cast<size_t>(ndim), 0);
  return {ones, ones, ones, ones, zeros, zeros};
}

Window Window::of(const OpView& op) { return of(op.attrs(), op.operand_type(0).ndim()); }

Window Window::of(const Attrs& attrs, int64_t ndim) {
  Window window = trivial(ndim);
  window.sizes = list_or_ones(attrs, "window_dimensions", ndim);
  window.strides = list_or_ones(attrs, "window_strides", ndim);
  window.base_dilations = list_or_ones(attrs, "base_dilations", ndim);
  window.dilations = list_or_ones(attrs, "window_dilations", ndim);
  if (const DenseAttr* padding = attrs.find<DenseAttr>("padding")) {
    for (int64_t dim = 0; dim < ndim; ++dim) {
      window.low[static_cast<size_t>(dim)] = padding->data.scalar_at(2 * dim).integer;
      window.high[static_cast<size_t>(dim)] = padding->data.scalar_at(2 * dim + 1).integer;
    }
  }
  return window;
}

int64_t Window::padded_size(size_t dim, int64_t size) const {
  const int64_t dilated = size == 0 ? 0 : (size - 1) * base_dilations[dim] + 1;
  return low[dim] + dilated + high[dim];
}

int64_t Window::result_size(size_t dim, int64_t size) const {
  const int64_t padded = padded_size(dim, size), spanned = (sizes[dim] - 1) * dilations[dim] + 1;
  return padded < spanned ? 0 : (padded - spanned) / strides[dim] + 1;
}

bool Window::is_trivial(size_t dim) const { return sizes[dim] == 1 && strides[dim] == 1 && !is_padded(dim); }

Prefix Window::prefix(size_t dim, int64_t size) const {
  const bool plain = strides[dim] == 1 && base_dilations[dim] == 1 && dilations[dim] == 1;
  if (!plain || size < 2 || sizes[dim] != size) return Prefix::kNone;
  if (low[dim] == size - 1 && high[dim] == 0) return Prefix::kForward;
  if (low[dim] == 0 && high[dim] == size - 1) return Prefix::kReverse;
  return Prefix::kNone;
}

void Window::set_prefix(size_t dim, int64_t size, Prefix prefix) {
  sizes[dim] = size;
  strides[dim] = base_dilations[dim] = dilations[dim] = 1;
  low[dim] = prefix == Prefix::kForward ? size - 1 : 0;
  high[dim] = prefix == Prefix::kForward ? 0 : size - 1;
}

Window Window::only(size_t dim) const {
  Window window = trivial(static_cast<int64_t>(sizes.size()));
  window.sizes[dim] = sizes[dim];
  window.strides[dim] = strides[dim];
  window.base_dilations[dim] = base_dilations[dim];
  window.dilations[dim] = dilations[dim];
  window.low[dim] = low[dim];
  window.high[dim] = high[dim];
  return window;
}

Dims Window::interior() const { return shifted(base_dilations, -1); }

ValueId build_reduce_window(Builder& builder, ValueId operand, ValueId init, Reducer reducer, const Window& window) {
  bool nothing = !init;
  for (size_t dim = 0; dim < window.sizes.size(); ++dim) nothing = nothing && window.is_trivial(dim);
  if (nothing) return operand;
  const DType dtype = builder.module().type(operand).dtype;
  if (!init) init = build_scalar(builder, neutral_element(reducer, dtype));
  const RegionId region = build_reducer_region(builder, reducer, dtype);
  const ValueId operands[] = {operand, init};
  const AttrsId attrs = builder.context().intern(window_attrs(window));
  return builder.module().result(builder.create_op(kWindowOps[0], operands, attrs, {}, {&region, 1}));
}

ValueId build_prefix(Builder& builder, ValueId operand, Reducer reducer, int64_t dim, Prefix prefix) {
  const Dims shape = builder.module().type(operand).shape;
  Window window = Window::trivial(static_cast<int64_t>(shape.size()));
  window.set_prefix(static_cast<size_t>(dim), shape[static_cast<size_t>(dim)], prefix);
  return build_reduce_window(builder, operand, {}, reducer, window);
}

ValueId build_init_share(Builder& builder, ValueId init, Reducer reducer, const Window& window, DimSpan shape) {
  const DType dtype = builder.module().type(init).dtype;
  const ValueId neutral = build_splat(builder, shape, neutral_element(reducer, dtype));
  return build_reduce_window(builder, neutral, init, reducer, window);
}

}  // namespace shardwise
