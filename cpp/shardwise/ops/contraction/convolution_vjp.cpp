// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/contraction/convolution.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

int64_t dilated(int64_t size, int64_t dilation) { return size == 0 ? 0 : (size - 1) * dilation + 1; }

// Dim `from` becomes the major part of dim `into`, which is counted without it.
ValueId merge_dim(Builder& builder, ValueId value, int64_t from, int64_t into) {
  Dims shape = builder.module().type(value).shape;
  const int64_t size = shape[static_cast<size_t>(from)];
  Dims permutation = other_dims(static_cast<int64_t>(shape.size()), Dims{from});
  permutation.insert(permutation.begin() + into, from);
  shape.erase(shape.begin() + from);
  shape[static_cast<size_t>(into)] *= size;
  return build_reshape(builder, build_transpose(builder, value, permutation), shape);
}

// Dim `from` becomes two, of which the major one has `size`.
ValueId split_dim(Builder& builder, ValueId value, int64_t from, int64_t size) {
  Dims shape = builder.module().type(value).shape;
  shape[static_cast<size_t>(from)] /= size;
  shape.insert(shape.begin() + from, size);
  return build_reshape(builder, value, shape);
}

ValueId build_convolution(Builder& builder, ValueId lhs, ValueId rhs, const Convolution& convolution,
                          const Attrs& others, DType dtype) {
  // The type of the result follows from the operands.
  const Dims &from = builder.module().type(lhs).shape, &kernel = builder.module().type(rhs).shape;
  const ConvolutionNumbers& numbers = convolution.numbers;
  Dims shape(from.size(), 0);
  const auto at = [](int64_t dim) { return static_cast<size_t>(dim); };
  shape[at(numbers.result.batch)] = from[at(numbers.lhs.batch)] / convolution.batch_groups;
  shape[at(numbers.result.feature)] = kernel[at(numbers.rhs.feature)];
  Window window = convolution.window;
  for (size_t i = 0; i < numbers.lhs.spatial.size(); ++i) {
    window.sizes[i] = kernel[at(numbers.rhs.spatial[i])];
    shape[at(numbers.result.spatial[i])] = window.result_size(i, from[at(numbers.lhs.spatial[i])]);
  }
  return builder.create("stablehlo.convolution", {lhs, rhs}, convolution.attrs(others),
                        {builder.context().tensor(dtype, shape)});
}

// The cotangent of a convolution whose kernel is not reversed.
class Cotangents {
 public:
  Cotangents(VjpContext& context, ValueId kernel)
      : context_(context),
        builder_(context.builder()),
        convolution_(Convolution::of(context.op())),
        kernel_(kernel),
        dtype_(builder_.module().type(kernel).dtype),
        cotangent_(build_convert(builder_, context.cotangent(), dtype_)),
        input_(sizes_at(builder_.module().type(context.operand(0)).shape, numbers().lhs.spatial)),
        output_(sizes_at(builder_.module().type(cotangent_).shape, numbers().result.spatial)) {}

  // y[o] = sum of x[s·o + d·t - low] · k[t] over t, so dx[p] = sum of y[(p + low - d·t) / s] · k[t]. These are windows
  // of stride 1 over the cotangent with holes s. With taps turned around, t -> T - 1 - t, they begin at
  // p + low - d·(T - 1).
  // Windows over the cotangent, by the kernel turned around with its features exchanged.
  ValueId of_input() {
    ValueId kernel = build_reverse(builder_, kernel_, numbers().rhs.spatial);
    const int64_t groups = convolution_.groups();
    if (groups > 1) {
      // Each group of outputs reads back into its own inputs: (i, G·o) becomes (G·i, o).
      kernel = split_dim(builder_, kernel, numbers().rhs.feature, groups);
      kernel = merge_dim(builder_, kernel, numbers().rhs.feature, numbers().rhs.batch);
    }
    Convolution back = convolution_;
    back.numbers = {numbers().result, numbers().rhs, numbers().lhs};
    std::swap(back.numbers.rhs.batch, back.numbers.rhs.feature);
    back.feature_groups = groups;
    back.batch_groups = 1;
    back.reversed.assign(back.reversed.size(), 0);
    const Window& window = convolution_.window;
    std::swap(back.window.strides, back.window.base_dilations);
    for (size_t i = 0; i < input_.size(); ++i) {
      back.window.low[i] = window.spanned(i) - window.low[i] - 1;
      // The high padding is what makes the result as large as the input, with rows that no window read.
      back.window.high[i] = dilated(input_[i], window.base_dilations[i]) + window.spanned(i) - 1 -
                            dilated(output_[i], window.strides[i]) - back.window.low[i];
    }
    ValueId found = build_convolution(builder_, cotangent_, kernel, back, context_.op().attrs(), dtype_);
    if (convolution_.batch_groups > 1) {
      // Groups of the batch come out as groups of features: back to the batch.
      found = split_dim(builder_, found, numbers().lhs.feature, groups);
      found = merge_dim(builder_, found, numbers().lhs.feature, numbers().lhs.batch);
    }
    return found;
  }

  // dk[t] = sum of x[s·o + d·t - low] · dy[o] over o and the batch: the batch is what is summed, in the place of input
  // features, and stride and dilation change their roles.
  // Windows over the input, by the cotangent.
  ValueId of_kernel() {
    Convolution back = convolution_;
    back.numbers = {numbers().lhs, numbers().result, numbers().rhs};
    std::swap(back.numbers.lhs.batch, back.numbers.lhs.feature);
    std::swap(back.feature_groups, back.batch_groups);
    back.reversed.assign(back.reversed.size(), 0);
    const Window& window = convolution_.window;
    std::swap(back.window.strides, back.window.dilations);
    for (size_t i = 0; i < input_.size(); ++i) {
      // Rows of the input that no window read must not make a further tap: `high` cuts them off, or pads up to T taps.
      const int64_t both =
          dilated(output_[i], window.strides[i]) + window.spanned(i) - dilated(input_[i], window.base_dilations[i]) - 1;
      back.window.high[i] = both - window.low[i];
    }
    return build_convolution(builder_, context_.operand(0), cotangent_, back, context_.op().attrs(), dtype_);
  }

 private:
  const ConvolutionNumbers& numbers() const { return convolution_.numbers; }

  VjpContext& context_;
  Builder& builder_;
  Convolution convolution_;
  ValueId kernel_;
  DType dtype_;
  ValueId cotangent_;
  Dims input_, output_;
};

ValueId reversed(Builder& builder, ValueId kernel, const Convolution& convolution) {
  Dims dims;
  for (size_t i = 0; i < convolution.reversed.size(); ++i) {
    if (convolution.reversed[i] != 0) dims.push_back(convolution.numbers.rhs.spatial[i]);
  }
  return build_reverse(builder, kernel, dims);
}

}  // namespace

void vjp_convolution(VjpContext& context) {
  Builder& builder = context.builder();
  const OpView op = context.op();
  // An empty dim has no windows to turn around; both cotangents are sums of nothing.
  if (op.result_type().size() == 0 || op.operand_type(0).size() == 0) {
    for (size_t i = 0; i < 2; ++i) {
      if (context.needs(i)) context.set(i, build_zeros(builder, op.operand_type(i)));
    }
    return;
  }
  const Convolution convolution = Convolution::of(op);
  // `Cotangents` knows no reversal: it gets the kernel as windows apply it, and the kernel's cotangent is turned back.
  Cotangents cotangents(context, reversed(builder, context.operand(1), convolution));
  if (context.needs(0)) context.set(0, cotangents.of_input());
  if (context.needs(1)) context.set(1, reversed(builder, cotangents.of_kernel(), convolution));
}

// The examples join the batch or, if each has a kernel of its own, the output features as groups.
void batch_convolution(BatchContext& context) {
  Builder& builder = context.builder();
  const OpView op = context.op();
  Convolution wide = Convolution::of(op);
  const ConvolutionNumbers& numbers = wide.numbers;
  ValueId lhs = context.operand(0), rhs = context.operand(1);
  int64_t split = numbers.result.feature;
  if (!context.is_batched(1) && wide.batch_groups == 1) {
    lhs = merge_dim(builder, lhs, 0, numbers.lhs.batch);
    split = numbers.result.batch;
  } else if (!context.is_batched(0) && wide.groups() == 1) {
    rhs = merge_dim(builder, rhs, 0, numbers.rhs.feature);
  } else {
    const bool in_batch = wide.batch_groups > 1;
    (in_batch ? wide.batch_groups : wide.feature_groups) *= context.size();
    lhs = merge_dim(builder, context.batched(0), 0, in_batch ? numbers.lhs.batch : numbers.lhs.feature);
    rhs = merge_dim(builder, context.batched(1), 0, numbers.rhs.feature);
  }
  const ValueId all = build_convolution(builder, lhs, rhs, wide, op.attrs(), op.result_type().dtype);
  context.set_result(0, build_move_to_front(builder, split_dim(builder, all, split, context.size()), split));
}

}  // namespace shardwise
