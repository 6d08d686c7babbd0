// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/reduce/reduce_kernels.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "shardwise/base/nested_dims.h"
#include "shardwise/ops/reduce/reduce.h"
#include "shardwise/ops/shared/combiner_regions.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {
namespace reduce_loops {

namespace {

template <int64_t LoopDim::* kStride>
int64_t place_of(std::span<const LoopDim> dims, int64_t index) {
  int64_t place = 0;
  for (size_t dim = dims.size(); dim-- > 0;) {
    // The outermost dim takes the rest of the index, which saves the division for the usual plan of one dim.
    if (dim == 0) return place + index * dims[0].*kStride;
    place += index % dims[dim].size * dims[dim].*kStride;
    index /= dims[dim].size;
  }
  return place;
}

}  // namespace

int64_t offset_of(std::span<const LoopDim> dims, int64_t index) { return place_of<&LoopDim::stride>(dims, index); }
int64_t position_of(const Plan& plan, int64_t index) { return place_of<&LoopDim::position>(plan.kept, index); }

// Few kept elements side by side do not fill the vector units: then each is reduced on its own.
bool Plan::along() const {
  if (kept.empty() || kept.back().size < 4) return true;
  return !reduced.empty() && std::abs(reduced.back().stride) <= std::abs(kept.back().stride);
}

}  // namespace reduce_loops

namespace {

using reduce_loops::LoopDim, reduce_loops::Plan;

// Sorted by stride, so that inner loops walk through memory; merged only where the result nests, too.
void normalize(std::vector<LoopDim>& dims) {
  std::erase_if(dims, [](const LoopDim& dim) { return dim.size == 1; });
  const auto stride = [](const LoopDim& dim) { return dim.stride; };
  const auto nests = [](const LoopDim& outer, const LoopDim& inner) {
    return outer.stride == inner.stride * inner.size && outer.position == inner.position * inner.size;
  };
  sort_and_merge(dims, stride, nests);
}

Plan make_plan(const NdArray& operand, DimSpan reduced_dims) {
  Plan plan{operand.data(), {}, {}, 1, 1};
  plan.kept.reserve(operand.shape().size());
  plan.reduced.reserve(reduced_dims.size());
  for (size_t dim = operand.shape().size(); dim-- > 0;) {
    if (std::ranges::find(reduced_dims, static_cast<int64_t>(dim)) != reduced_dims.end()) continue;
    // The product of the sizes after a dim is its row-major stride in the result.
    plan.kept.push_back({operand.shape()[dim], operand.strides()[dim], plan.kept_count});
    plan.kept_count *= operand.shape()[dim];
  }
  std::ranges::reverse(plan.kept);
  for (int64_t entry : reduced_dims) {
    const auto dim = static_cast<size_t>(entry);
    plan.reduced.push_back({operand.shape()[dim], operand.strides()[dim], 0});
    plan.reduced_count *= operand.shape()[dim];
  }
  normalize(plan.kept);
  normalize(plan.reduced);
  return plan;
}

void reduce(KernelContext& context, Reducer reducer, DimSpan dims) {
  // Narrow floats are combined in float32, and each result is rounded once.
  const DType dtype = context.operand(0).dtype(), wide = computed_in(dtype);
  const auto reduce_into = [&](const NdArray& operand, const NdArray& init, const NdArray& target) {
    const auto reduce_items = is_float(wide) ? reduce_loops::reduce_floats : reduce_loops::reduce_integers;
    reduce_items(make_plan(operand, dims), reducer, wide, init.data(), target.data(), pool_of(context));
  };
  const NdArray result = context.allocate_result();
  if (wide == dtype) return reduce_into(context.operand(0), context.operand(1), result);
  const NdArray target = NdArray::empty(wide, result.shape());
  reduce_into(converted(context, context.operand(0), wide), converted(context, context.operand(1), wide), target);
  convert_into(context, result, target);
}

// The parts are summed as the elements of one more dim.
void sum_complex(KernelContext& context, DimSpan dims) {
  // The loops take an init value of one item, so the complex one is added to the sums. The parts are the last dim:
  // the other dims keep their numbers.
  const NdArray parts = parts_of_complex(context.operand(0));
  const NdArray neutral = NdArray::full(parts.dtype(), {}, exact_neutral(Reducer::kSum, parts.dtype()));
  const NdArray result = context.allocate_result();
  const ParallelFor run = pool_of(context);
  reduce_loops::reduce_floats(make_plan(parts, dims), Reducer::kSum, parts.dtype(), neutral.data(), result.data(), run);
  TileBuilder tiles;
  const uint32_t init = tiles.input(result.dtype()), sum = tiles.input(result.dtype());
  tiles.output(tiles.emit(TileCode::kAdd, {init, sum}, result.dtype()));
  const NdArray inits = broadcast_scalar(context.operand(1), result.shape());
  run_tiles(std::move(tiles).build(), std::array{inits, result}, std::array{result}, run);
}

}  // namespace

std::optional<Kernel> prepare_reduce(const OpView& op, const KernelTypes& types) {
  const Module& module = op.module();
  const RegionId region = op.regions()[0];
  const Dims& dims = op.attrs().get<IntArray>("dimensions");
  const std::optional<Reducer> reducer = region_reducer(module, region);
  if (is_complex(types.operands[0].dtype)) {
    // The product of complex numbers mixes their parts.
    if (reducer != Reducer::kSum) return prepare_reduce_region(op, types);
    return [dims](KernelContext& context) { sum_complex(context, dims); };
  }
  if (types.results.size() == 1) {
    if (reducer) {
      return [reducer = *reducer, dims](KernelContext& context) { reduce(context, reducer, dims); };
    }
  }
  const std::optional<Reducer> pairs = region_argument_reducer(module, region);
  const bool known = pairs && has_argument_kernel(types.operands[1].dtype);
  return known && !dims.empty() ? prepare_reduce_arguments(op, types, *pairs) : prepare_reduce_region(op, types);
}

}  // namespace shardwise
