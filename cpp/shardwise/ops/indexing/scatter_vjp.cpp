// SPDX-License-Identifier: Apache-2.0
//
// With r = scatter(x, i, u), g the cotangent of r, and read(y) = what the windows hold of y (zero where they are cut):
//
//   add        x: g                          u: read(g)
//   replace    x: g, with zeros written      u: read(g), of the update that was written last
//   max, min   x: g / ties where x == r      u: read(g / ties) where u == read(r); none where NaN was updated
//   multiply   x: g · Π u                    u: read(g · x · Π others), with 1 for zeros and their number counted
#include "shardwise/base/error.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/indexing/index_values.h"
#include "shardwise/ops/indexing/indexing.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// One input of a scatter and its updates.
class ScatterVjp {
 public:
  ScatterVjp(VjpContext& context, size_t input)
      : context_(context),
        builder_(context.builder()),
        indexing_(scatter_indexing(context.op())),
        inputs_(context.op().result_count()),
        input_(input) {}

  void run(Combiner combiner) {
    if (combiner.replaces) return of_replace();
    switch (combiner.reducer) {
      case Reducer::kSum: return of_sum();
      case Reducer::kProd: return of_product();
      case Reducer::kMax:
      case Reducer::kMin: return of_extremum();
      default: return not_differentiable(context_);  // bits of integers
    }
  }

 private:
  bool needs_operand() const { return context_.needs(input_); }
  bool needs_updates() const { return context_.needs(inputs_ + 1 + input_); }
  void set_operand(ValueId value) { context_.set(input_, value); }
  void set_updates(ValueId value) { context_.set(inputs_ + 1 + input_, value); }
  ValueId operand() const { return context_.operand(input_); }
  ValueId indices() const { return context_.operand(inputs_); }
  ValueId updates() const { return context_.operand(inputs_ + 1 + input_); }
  const TensorType& type(ValueId value) const { return builder_.module().type(value); }

  ValueId create(std::string_view name, std::initializer_list<ValueId> operands) {
    return builder_.create(name, operands);
  }
  ValueId equal(ValueId lhs, ValueId rhs) { return build_compare(builder_, "EQ", lhs, rhs); }
  ValueId is_nan(ValueId value) { return build_compare(builder_, "NE", value, value); }
  ValueId zeros_like(ValueId value) { return build_zeros(builder_, TensorType(type(value))); }
  ValueId ones_like(ValueId value) {
    return build_splat(builder_, Dims(type(value).shape), scalar_of(type(value).dtype, 1));
  }
  ValueId as_number(ValueId condition, DType dtype) { return build_convert(builder_, condition, dtype); }

  bool is_unique() const { return is_set(context_.op().attrs(), "unique_indices"); }
  ValueId scatter(ValueId into, ValueId values, Combiner combiner) {
    return build_scatter(builder_, into, indices(), values, indexing_.dims, combiner, {.unique_indices = is_unique()});
  }

  // The elements of `value` (of the operand's shape) under the windows; zero for elements out of bounds. Windows that
  // may be clipped read from an array with a margin of zeros; windows of one row are masked.
  ValueId read(ValueId value) {
    Dims margin(indexing_.operand.size(), 0);
    bool has_margin = false;
    for (const int64_t dim : indexing_.window_dims()) {
      const auto d = static_cast<size_t>(dim);
      if (!indexing_.component(dim) || indexing_.slice[d] <= 1) continue;
      // A margin as large as the window holds all of a window that is partly inside. One that is outside is masked.
      margin[d] = indexing_.slice[d];
      has_margin = true;
    }
    const DType dtype = type(value).dtype;
    ValueId starts = indices();
    Dims limits;
    for (const int64_t dim : indexing_.dims.index_map) {
      limits.push_back(indexing_.operand[static_cast<size_t>(dim)] + margin[static_cast<size_t>(dim)] - 1);
    }
    if (has_margin) {
      const ValueId zero = build_scalar(builder_, scalar_of(dtype, 0));
      value = build_pad(builder_, value, zero, margin, margin);
      starts = shifted_by(margin);
    }
    const ValueId held = build_gather(builder_, value, starts, indexing_.dims, indexing_.slice);
    if (limits.empty()) return held;
    const ValueId inside = build_inside(builder_, starts, indexing_.dims, limits);
    const Dims out = type(held).shape;
    const ValueId mask = build_out_mask(builder_, inside, indexing_, out);
    return create("stablehlo.select", {mask, held, build_zeros(builder_, {dtype, out})});
  }

  ValueId shifted_by(DimSpan margin) {
    std::vector<ValueId> offsets;
    for (const int64_t dim : indexing_.dims.index_map) {
      offsets.push_back(build_scalar(builder_, scalar_of(DType::kI64, -margin[static_cast<size_t>(dim)])));
    }
    return build_shifted(builder_, build_convert(builder_, indices(), DType::kI64), indexing_.dims, offsets);
  }

  void of_sum() {
    if (needs_operand()) set_operand(context_.cotangent(input_));
    if (needs_updates()) set_updates(read(context_.cotangent(input_)));
  }

  // The last of several updates for an element determines the result. To find it, updates are numbered and the numbers
  // are scattered the same way. An update that reads its own number back is the last one.
  void of_replace() {
    const ValueId cotangent = context_.cotangent(input_);
    if (needs_operand()) set_operand(scatter(cotangent, zeros_like(updates()), {.replaces = true}));
    if (!needs_updates()) return;
    const ValueId held = read(cotangent);
    if (is_unique()) return set_updates(held);
    const Dims batch_dims = indexing_.batch_dims();
    const Dims batch = sizes_at(indexing_.out, batch_dims);
    const ValueId count = build_iota(builder_, DType::kI64, Dims{element_count(batch)}, 0);
    // Numbers from 1, because 0 marks elements without an update.
    const ValueId one = build_splat(builder_, Dims{element_count(batch)}, scalar_of(DType::kI64, 1));
    const ValueId numbers = build_broadcast(
        builder_, build_reshape(builder_, create("stablehlo.add", {count, one}), batch), indexing_.out, batch_dims);
    const ValueId none = build_zeros(builder_, {DType::kI64, indexing_.operand});
    const ValueId last = read(scatter(none, numbers, {.replaces = true}));
    set_updates(create("stablehlo.select", {equal(last, numbers), held, zeros_like(held)}));
  }

  // A NaN equals nothing. It counts as a tie, so that a NaN in the operand keeps the cotangent if there is no update.
  void of_extremum() {
    const ValueId result = context_.result(input_);
    const DType dtype = type(result).dtype;
    const ValueId held = read(result);
    const ValueId hit = equal(updates(), held);
    const ValueId operand_tie = as_number(create("stablehlo.or", {equal(operand(), result), is_nan(operand())}), dtype);
    const ValueId update_tie = as_number(create("stablehlo.or", {hit, is_nan(held)}), dtype);
    const ValueId ties = scatter(operand_tie, update_tie, {Reducer::kSum});
    const ValueId share = create("stablehlo.divide", {context_.cotangent(input_), ties});
    const ValueId several = build_compare(builder_, "NE", ties, ones_like(ties));
    const ValueId none = create("stablehlo.and", {is_nan(result), several});
    const ValueId safe = create("stablehlo.select", {none, zeros_like(share), share});
    if (needs_operand()) set_operand(create("stablehlo.multiply", {operand_tie, safe}));
    if (needs_updates()) set_updates(create("stablehlo.multiply", {as_number(hit, dtype), read(safe)}));
  }

  void of_product() {
    const ValueId cotangent = context_.cotangent(input_);
    const ValueId ones = ones_like(operand());
    if (needs_operand()) {
      set_operand(create("stablehlo.multiply", {cotangent, scatter(ones, updates(), {Reducer::kProd})}));
    }
    if (!needs_updates()) return;
    // Each element has one update at most: the operand is its only other factor.
    if (is_unique()) return set_updates(read(create("stablehlo.multiply", {cotangent, operand()})));
    const ValueId is_zero = equal(updates(), zeros_like(updates()));
    const ValueId factor = create("stablehlo.select", {is_zero, ones_like(updates()), updates()});
    const ValueId product = scatter(ones, factor, {Reducer::kProd});
    const ValueId zeros = as_number(is_zero, type(updates()).dtype);
    const ValueId others =  // zeros among the other updates of the element
        create("stablehlo.subtract", {read(scatter(zeros_like(operand()), zeros, {Reducer::kSum})), zeros});
    const ValueId outer = create("stablehlo.multiply", {cotangent, operand()});
    const ValueId whole = read(create("stablehlo.multiply", {outer, product}));
    const ValueId share = create("stablehlo.divide", {whole, factor});
    const ValueId alone = equal(others, zeros_like(others));
    set_updates(create("stablehlo.select", {alone, share, zeros_like(share)}));
  }

  VjpContext& context_;
  Builder& builder_;
  Indexing indexing_;
  size_t inputs_, input_;
};

}  // namespace

void vjp_scatter(VjpContext& context) {
  const OpView op = context.op();
  const Combiner combiner = scatter_combiner(op);
  if (!combiner.known()) {
    fail<ShapeError>(op.name(),
                     "only a region that adds, multiplies, replaces, or takes the maximum or minimum has a gradient",
                     "another region", "write it as several scatters by one of these");
  }
  for (size_t i = 0; i < op.result_count(); ++i) ScatterVjp(context, i).run(combiner);
}

}  // namespace shardwise
