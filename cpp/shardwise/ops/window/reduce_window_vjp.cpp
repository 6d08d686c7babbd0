// SPDX-License-Identifier: Apache-2.0
//
// A windowed sum is linear: its cotangent is summed under the mirrored window, which for a cumulative sum is the one
// from the other end. Pooling by extrema is select_and_scatter. Products and other extrema go back dim by dim. A prefix
// needs only linear recurrences, which take log2(n) steps; any other window takes its elements apart, one slice per
// place.
#include <array>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/product_tree.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/reduce_window.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/ops/shared/windows.h"
#include "shardwise/ops/window/reduce_window.h"

namespace shardwise {
namespace {

Dims shape_of(const Builder& builder, ValueId value) { return builder.module().type(value).shape; }

ValueId multiply(Builder& builder, ValueId lhs, ValueId rhs) {
  return builder.create("stablehlo.multiply", {lhs, rhs});
}

ValueId add(Builder& builder, ValueId lhs, ValueId rhs) { return builder.create("stablehlo.add", {lhs, rhs}); }

ValueId divide(Builder& builder, ValueId lhs, ValueId rhs) { return builder.create("stablehlo.divide", {lhs, rhs}); }

// Divides a cotangent among `count` equal elements. A NaN equals nothing: its count of 0 must not turn other windows'
// shares into NaN.
ValueId share_of(Builder& builder, ValueId cotangent, ValueId count) {
  const TensorType type = builder.module().type(count);
  const ValueId one = build_splat(builder, type.shape, scalar_of(type.dtype, 1));
  return divide(builder, cotangent, builder.create("stablehlo.maximum", {count, one}));
}

// ---- sums ----------------------------------------------------------------------------------------------------------

// The window under which operand element j meets every result that it contributed to.
Window mirrored(const Window& window, DimSpan from, DimSpan to) {
  Window back = window;
  back.strides = window.base_dilations;
  back.base_dilations = window.strides;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    const int64_t reach = (window.sizes[dim] - 1) * window.dilations[dim];
    const int64_t dilated = to[dim] == 0 ? 0 : (to[dim] - 1) * window.strides[dim] + 1;
    const int64_t wanted = (from[dim] - 1) * window.base_dilations[dim] + 1 + reach;
    back.low[dim] = reach - window.low[dim];
    back.high[dim] = wanted - back.low[dim] - dilated;
  }
  return back;
}

void vjp_sum(VjpContext& context, const Window& window) {
  Builder& builder = context.builder();
  const TensorType from = context.op().operand_type(0), to = context.op().result_type();
  if (context.needs(0)) {
    context.set(0, from.size() == 0 ? build_zeros(builder, from)
                                    : build_reduce_window(builder, context.cotangent(), {}, Reducer::kSum,
                                                          mirrored(window, from.shape, to.shape)));
  }
  if (context.needs(1)) {
    const ValueId one = build_scalar(builder, scalar_of(from.dtype, 1));
    const ValueId count = build_init_share(builder, one, Reducer::kSum, window, from.shape);
    context.set(1, build_sum_of_all(builder, multiply(builder, context.cotangent(), count)));
  }
}

// ---- prefixes ------------------------------------------------------------------------------------------------------

// Shifts elements by `by` positions in the direction of `prefix`, and fills with 0.
ValueId shifted_along(Builder& builder, ValueId value, size_t dim, int64_t by, Prefix prefix) {
  return prefix == Prefix::kForward ? build_pad_along(builder, value, 0, dim, by, -by)
                                    : build_pad_along(builder, value, 0, dim, -by, by);
}

// The product of `a` with `b` shifted. It is 0 where nothing was shifted in, even if `a` is infinite there.
ValueId multiply_shifted(Builder& builder, ValueId a, ValueId b, size_t dim, int64_t by, Prefix prefix) {
  const TensorType type = builder.module().type(a);
  const int64_t size = type.shape[dim];
  const bool forward = prefix == Prefix::kForward;
  const ValueId places = build_iota(builder, DType::kI64, type.shape, static_cast<int64_t>(dim));
  const ValueId border = build_splat(builder, type.shape, scalar_of(DType::kI64, forward ? by : size - by));
  const ValueId inside = build_compare(builder, forward ? "GE" : "LT", places, border);
  const ValueId product = multiply(builder, a, shifted_along(builder, b, dim, by, prefix));
  return builder.create("stablehlo.select", {inside, product, build_zeros(builder, type)});
}

// Solves y[i] = b[i] + a[i] * y[i - 1] (forward; backward with y[i + 1]). Each step doubles the reach.
ValueId recurrence(Builder& builder, ValueId a, ValueId b, size_t dim, Prefix prefix) {
  const int64_t size = shape_of(builder, a)[dim];
  for (int64_t reach = 1; reach < size; reach *= 2) {
    b = add(builder, b, multiply_shifted(builder, a, b, dim, reach, prefix));
    if (2 * reach < size) a = multiply_shifted(builder, a, a, dim, reach, prefix);
  }
  return b;
}

Prefix opposite(Prefix prefix) { return prefix == Prefix::kForward ? Prefix::kReverse : Prefix::kForward; }

// Result i depends on element j through the product of the elements before j, and the product of those after j, up to
// i:
//   dx[j] = result[j - 1] * s[j],   s[j] = cotangent[j] + x[j + 1] * s[j + 1]
ValueId product_back(Builder& builder, ValueId x, ValueId result, ValueId cotangent, size_t dim, Prefix prefix) {
  const Prefix back = opposite(prefix);
  const ValueId after = recurrence(builder, shifted_along(builder, x, dim, 1, back), cotangent, dim, back);
  const bool forward = prefix == Prefix::kForward;
  const ValueId before = build_pad_along(builder, result, 1, dim, forward ? 1 : -1, forward ? -1 : 1);
  return multiply(builder, before, after);
}

// The elements so far that equal a result share its cotangent. Cumulative extrema are steps, and all these elements are
// in one step. So counts and shares accumulate while a result equals the previous one.
ValueId extremum_back(Builder& builder, ValueId x, ValueId result, ValueId cotangent, size_t dim, Prefix prefix) {
  const bool forward = prefix == Prefix::kForward;
  const int64_t size = shape_of(builder, x)[dim];
  const ValueId hit = build_equal_as_number(builder, x, result);
  const ValueId same = build_equal_as_number(builder, build_slice_along(builder, result, dim, 1, size),
                                             build_slice_along(builder, result, dim, 0, size - 1));
  const ValueId at_second = build_pad_along(builder, same, 0, dim, 1, 0);
  const ValueId at_first = build_pad_along(builder, same, 0, dim, 0, 1);
  const ValueId count = recurrence(builder, forward ? at_second : at_first, hit, dim, prefix);
  const ValueId share = share_of(builder, cotangent, count);
  return multiply(builder, hit, recurrence(builder, forward ? at_first : at_second, share, dim, opposite(prefix)));
}

// ---- other windows -------------------------------------------------------------------------------------------------

// Splits the windows of one dim: the elements of each window become a leading dim.
class Places {
 public:
  Places(Builder& builder, const Window& window, size_t dim, int64_t results)
      : builder_(builder), window_(window), dim_(dim), span_((results - 1) * window.strides[dim] + 1) {}

  ValueId apart(ValueId operand, Scalar neutral) {
    const ValueId value = build_scalar(builder_, neutral);
    const Window window = window_.only(dim_);
    whole_ = build_pad(builder_, operand, value, window.low, window.high, window.interior());
    std::vector<ValueId> places;
    for (int64_t place = 0; place < window_.sizes[dim_]; ++place) {
      const int64_t start = place * window_.dilations[dim_];
      const ValueId view = build_slice_along(builder_, whole_, dim_, start, start + span_, window_.strides[dim_]);
      places.push_back(build_reshape(builder_, view, with_leading(1, shape_of(builder_, view))));
    }
    return build_concatenate(builder_, places, 0);
  }

  // The adjoint of `apart`.
  ValueId together(ValueId places) {
    const int64_t size = shape_of(builder_, whole_)[dim_];
    ValueId total;
    for (int64_t place = 0; place < window_.sizes[dim_]; ++place) {
      const int64_t start = place * window_.dilations[dim_];
      const ValueId row = build_row(builder_, places, place);
      const int64_t rest = size - start - span_;
      const ValueId spread = build_pad_along(builder_, row, 0, dim_, start, rest, window_.strides[dim_] - 1);
      total = total ? add(builder_, total, spread) : spread;
    }
    const Window window = window_.only(dim_);
    return build_unpad(builder_, total, window.low, window.high, window.interior());
  }

 private:
  Builder& builder_;
  const Window& window_;
  size_t dim_;
  int64_t span_;  // elements from the first to the last window's start
  ValueId whole_;
};

ValueId extremum_of_places(Builder& builder, ValueId places, ValueId result, ValueId cotangent) {
  const Dims shape = shape_of(builder, places);
  const Dims kept = identity_dims(static_cast<int64_t>(shape.size()) - 1, 1);
  const ValueId hit = build_equal_as_number(builder, places, build_broadcast(builder, result, shape, kept));
  const ValueId count = build_reduce(builder, hit, {}, Reducer::kSum, Dims{0});
  return multiply(builder, hit, build_broadcast(builder, share_of(builder, cotangent, count), shape, kept));
}

ValueId windows_back(Builder& builder, ValueId x, ValueId result, ValueId cotangent, Reducer reducer,
                     const Window& window, size_t dim) {
  const Dims to = shape_of(builder, result);
  Places places(builder, window, dim, to[dim]);
  const ValueId apart = places.apart(x, neutral_element(reducer, builder.module().type(x).dtype));
  return places.together(reducer == Reducer::kProd
                             ? product_cotangent(builder, apart, build_reshape(builder, cotangent, with_leading(1, to)))
                             : extremum_of_places(builder, apart, result, cotangent));
}

// ---- all of it -----------------------------------------------------------------------------------------------------

// reduce_window as one step per dim. Ties of extrema share the cotangent at each step.
class Steps {
 public:
  Steps(Builder& builder, Reducer reducer, Window window)
      : builder_(builder), reducer_(reducer), window_(std::move(window)) {}

  ValueId forward(ValueId value) {
    values_ = {value};
    for (size_t dim = 0; dim < window_.sizes.size(); ++dim) {
      if (window_.is_trivial(dim)) continue;
      values_.push_back(build_reduce_window(builder_, values_.back(), {}, reducer_, window_.only(dim)));
      dims_.push_back(dim);
    }
    return values_.back();
  }

  ValueId backward(ValueId cotangent) {
    for (size_t i = dims_.size(); i-- > 0;) {
      const size_t dim = dims_[i];
      const ValueId x = values_[i], result = values_[i + 1];
      const Prefix prefix = window_.prefix(dim, shape_of(builder_, x)[dim]);
      if (prefix == Prefix::kNone) {
        cotangent = windows_back(builder_, x, result, cotangent, reducer_, window_, dim);
      } else if (reducer_ == Reducer::kProd) {
        cotangent = product_back(builder_, x, result, cotangent, dim, prefix);
      } else {
        cotangent = extremum_back(builder_, x, result, cotangent, dim, prefix);
      }
    }
    return cotangent;
  }

 private:
  Builder& builder_;
  Reducer reducer_;
  Window window_;
  std::vector<ValueId> values_;
  std::vector<size_t> dims_;
};

// result = init combined with value: the cotangents of both.
struct Halves {
  ValueId init, value;
};
Halves split_cotangent(Builder& builder, Reducer reducer, ValueId init, ValueId value, ValueId cotangent) {
  const ValueId repeated = build_broadcast(builder, init, shape_of(builder, value), {});
  if (reducer == Reducer::kProd) {
    return {multiply(builder, cotangent, value), multiply(builder, cotangent, repeated)};
  }
  const ValueId result = builder.create(reducer_op_name(reducer), {repeated, value});
  const ValueId init_hit = build_equal_as_number(builder, repeated, result),
                hit = build_equal_as_number(builder, value, result);
  const ValueId share = divide(builder, cotangent, add(builder, init_hit, hit));
  return {multiply(builder, init_hit, share), multiply(builder, hit, share)};
}

// The gradient treats init values as elements: pad turns them into elements, and one more is combined at the end.
void vjp_with_init(VjpContext& context, Builder& builder, Reducer reducer, Window window, ValueId x, ValueId init,
                   ValueId cotangent) {
  const Window padding = window;
  const Dims interior = padding.interior();
  const Dims shape = shape_of(builder, x);
  const ValueId whole = build_pad(builder, x, init, padding.low, padding.high, interior);
  window.low = window.high = Dims(shape.size(), 0);
  window.base_dilations = Dims(shape.size(), 1);
  Steps steps(builder, reducer, window);
  const ValueId value = steps.forward(whole);
  const Halves halves = split_cotangent(builder, reducer, init, value, cotangent);
  const ValueId back = steps.backward(halves.value);
  const DType dtype = context.op().operand_type(0).dtype;
  if (context.needs(0)) {
    const ValueId own = build_unpad(builder, back, padding.low, padding.high, interior);
    context.set(0, build_convert(builder, own, dtype));
  }
  if (!context.needs(1)) return;
  const ValueId zero = build_scalar(builder, scalar_of(builder.module().type(init).dtype, 0));
  const ValueId one = build_scalar(builder, scalar_of(builder.module().type(init).dtype, 1));
  const ValueId inside = build_broadcast(builder, zero, shape, {});
  const ValueId is_padding = build_pad(builder, inside, one, padding.low, padding.high, interior);
  const ValueId total = add(builder, build_sum_of_all(builder, halves.init),
                            build_sum_of_all(builder, multiply(builder, back, is_padding)));
  context.set(1, build_convert(builder, total, dtype));
}

// ---- pooling -------------------------------------------------------------------------------------------------------

// Whether the op is a pooling by extrema, in which each window selects one element of its own; not a cumulative op.
bool is_pooling(Reducer reducer, const Window& window, DimSpan shape) {
  bool found = reducer == Reducer::kMax || reducer == Reducer::kMin;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    found = found && window.base_dilations[dim] == 1 && window.dilations[dim] == 1 &&
            window.prefix(dim, shape[dim]) == Prefix::kNone;
  }
  return found;
}

// A new region: whether the first of two scalars stays selected.
RegionId build_selection(Builder& builder, Reducer reducer, DType dtype) {
  Module& module = builder.module();
  const RegionId id = module.add_region();
  const TypeId scalar = builder.context().tensor(dtype, {});
  const ValueId lhs = module.add_argument(id, scalar);
  const ValueId rhs = module.add_argument(id, scalar);
  Builder inner(module, id, builder.loc());
  const ValueId stays = build_compare(inner, reducer == Reducer::kMax ? "GE" : "LE", lhs, rhs);
  module.region(id).results = {stays};
  return id;
}

// The first extremum of a window gets its cotangent, as in JAX.
ValueId pooling_back(Builder& builder, ValueId x, ValueId cotangent, Reducer reducer, const Window& window) {
  const DType dtype = builder.module().type(x).dtype;
  const std::array regions{build_selection(builder, reducer, dtype),
                           build_reducer_region(builder, Reducer::kSum, dtype)};
  const ValueId zero = build_scalar(builder, scalar_of(dtype, 0));
  const Attrs whole = window_attrs(window);
  Attrs attrs;
  for (const std::string_view name : {"window_dimensions", "window_strides", "padding"}) {
    attrs.set(name, *whole.find(name));
  }
  return builder.create("stablehlo.select_and_scatter", std::array{x, cotangent, zero}, attrs, {}, regions);
}

void vjp_by_steps(VjpContext& context, Reducer reducer, const Window& window) {
  Builder& builder = context.builder();
  const OpView op = context.op();
  const DType dtype = op.operand_type(0).dtype;
  // 16-bit floats would lose the counts and partial products.
  const DType wide = computed_in(dtype);
  const TensorType operand = op.operand_type(0);
  if (op.result_type().size() == 0) {
    for (size_t i = 0; i < 2; ++i) {
      if (context.needs(i)) context.set(i, build_zeros(builder, op.operand_type(i)));
    }
    return;
  }
  const ValueId cotangent = build_convert(builder, context.cotangent(), wide);
  const ValueId x = build_convert(builder, context.operand(0), wide);
  const std::optional<Scalar> init = splat_value(op.module(), op.operand(1));
  if (context.needs(1) || !init || !is_neutral(reducer, *init)) {
    const ValueId start = build_convert(builder, context.operand(1), wide);
    return vjp_with_init(context, builder, reducer, window, x, start, cotangent);
  }
  if (operand.size() == 0) return context.set(0, build_zeros(builder, operand));
  if (is_pooling(reducer, window, operand.shape)) {
    return context.set(0, build_convert(builder, pooling_back(builder, x, cotangent, reducer, window), dtype));
  }
  Steps steps(builder, reducer, window);
  steps.forward(x);
  context.set(0, build_convert(builder, steps.backward(cotangent), dtype));
}

}  // namespace

void vjp_reduce_window(VjpContext& context) {
  const Reducer reducer = required_reducer(context.op());
  const Window window = Window::of(context.op());
  switch (reducer) {
    case Reducer::kSum: return vjp_sum(context, window);
    case Reducer::kProd:
    case Reducer::kMax:
    case Reducer::kMin: return vjp_by_steps(context, reducer, window);
    default: return not_differentiable(context);  // and, or: of integers
  }
}

}  // namespace shardwise
