// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "shardwise/base/nested_dims.h"
#include "shardwise/ops/reduce/reduce.h"
#include "shardwise/ops/reduce/reduce_argument_loops.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {
namespace reduce_loops {

// Few results side by side do not fill the vector units: then each is found on its own. Many results of few values each
// are found together, by copies of their first values, then of their second ones, ….
bool ArgumentPlan::along() const {
  if (kept.empty() || kept.back().size < 4) return true;
  if (reduced.size < kShortLine) return false;
  return std::abs(reduced.value_stride) <= std::abs(kept.back().value_stride);
}

}  // namespace reduce_loops

namespace {

using reduce_loops::ArgumentDim;
using reduce_loops::ArgumentPlan;

ArgumentPlan make_argument_plan(const NdArray& values, const NdArray& indices, size_t reduced) {
  ArgumentPlan plan{values.data(), indices.data(), {}, {}, 1};
  for (size_t d = static_cast<size_t>(values.ndim()); d-- > 0;) {
    // The product of the sizes after a dim is its row-major stride in the result.
    const ArgumentDim dim{values.shape()[d], values.strides()[d], indices.strides()[d], plan.kept_count};
    if (d == reduced) {
      plan.reduced = dim;
      continue;
    }
    plan.kept_count *= dim.size;
    if (dim.size != 1) plan.kept.insert(plan.kept.begin(), dim);
  }
  // Inner loops then walk through memory, also in a transposed view.
  const auto stride = [](const ArgumentDim& dim) { return dim.value_stride; };
  // One loop over two dims needs one stride in each of the three arrays.
  const auto nests = [](const ArgumentDim& outer, const ArgumentDim& inner) {
    return outer.value_stride == inner.value_stride * inner.size &&
           outer.index_stride == inner.index_stride * inner.size &&
           outer.result_stride == inner.result_stride * inner.size;
  };
  sort_and_merge(plan.kept, stride, nests);
  return plan;
}

DType compared_in(DType dtype) { return dtype == DType::kBool ? DType::kU8 : computed_in(dtype); }

NdArray without_dim(const NdArray& array, size_t dim) {
  Dims shape = array.shape(), strides = array.strides();
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(dim));
  return restrided(array, std::move(shape), std::move(strides));
}

// A prepared reduction of (value, index) pairs.
struct PreparedArguments {
  Reducer reducer;
  Dims dims;  // descending
};

// Counting the init values once per dim is counting them once: a pair combined with itself is itself.
void reduce_arguments(KernelContext& context, const PreparedArguments& prepared) {
  const Dims& dims = prepared.dims;
  const DType dtype = context.operand(0).dtype(), wide = compared_in(dtype), index = context.operand(1).dtype();
  NdArray values = converted(context, context.operand(0), wide);
  NdArray indices = context.operand(1);
  const NdArray init = converted(context, context.operand(2), wide);
  const NdArray value_result = context.allocate_result(0), index_result = context.allocate_result(1);
  const ParallelFor run = pool_of(context);
  // The last dim first: the numbers of the dims before it stay, and elements are combined in row-major order.
  for (const int64_t dim : dims) {
    const auto d = static_cast<size_t>(dim);
    const bool last = dim == dims.back();
    const Dims shape = without_dim(values, d).shape();
    const NdArray next_values = last && wide == dtype ? value_result : NdArray::empty(wide, shape);
    const NdArray next_indices = last ? index_result : NdArray::empty(index, shape);
    const ArgumentPlan plan = make_argument_plan(values, indices, d);
    const reduce_loops::ArgumentResults results{init.data(), context.operand(3).data(), next_values.data(),
                                                next_indices.data()};
    const auto reduce = is_float(wide) ? reduce_loops::reduce_float_arguments : reduce_loops::reduce_integer_arguments;
    if (plan.kept_count > 0) reduce(plan, prepared.reducer, wide, index, results, run);
    values = next_values;
    indices = next_indices;
  }
  if (dims.empty() || wide != dtype) convert_into(context, value_result, values);
  if (dims.empty()) copy_array(context, index_result, indices);
}

}  // namespace

bool has_argument_kernel(DType index) { return index == DType::kI32 || index == DType::kI64 || index == DType::kU32; }

std::optional<Kernel> prepare_reduce_arguments(const OpView& op, const KernelTypes&, Reducer reducer) {
  Dims dims = op.attrs().get<IntArray>("dimensions");
  std::sort(dims.begin(), dims.end(), std::greater<>());
  return [prepared = PreparedArguments{reducer, std::move(dims)}](KernelContext& context) {
    reduce_arguments(context, prepared);
  };
}

}  // namespace shardwise
