// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/reduce/reduce_kernels.h"

#include <array>
#include <cstdlib>

#include "shardwise/ops/reduce/reduce.h"
#include "shardwise/ops/reduce/reduce_region_kernels.h"
#include "shardwise/ops/shared/combiner_regions.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {
namespace reduce_loops {

int64_t offset_of(std::span<const LoopDim> dims, int64_t index) {
  int64_t offset = 0;
  for (size_t dim = dims.size(); dim-- > 0;) {
    // The outermost dim takes the rest of the index, which saves the division for the usual plan of one dim.
    if (dim == 0) return offset + index * dims[0].stride;
    offset += index % dims[dim].size * dims[dim].stride;
    index /= dims[dim].size;
  }
  return offset;
}

int64_t position_of(const Plan& plan, int64_t index) {
  int64_t position = 0;
  for (size_t dim = plan.kept.size(); dim-- > 0;) {
    if (dim == 0) return position + index * plan.kept_position[0];  // as above
    position += index % plan.kept[dim].size * plan.kept_position[dim];
    index /= plan.kept[dim].size;
  }
  return position;
}

// Few kept elements side by side do not fill the vector units: then each is reduced on its own.
bool Plan::along() const {
  if (kept.empty() || kept.back().size < 4) return true;
  return !reduced.empty() && std::abs(reduced.back().stride) <= std::abs(kept.back().stride);
}

}  // namespace reduce_loops

namespace {

using reduce_loops::LoopDim;
using reduce_loops::Plan;

struct PlannedDim {
  LoopDim loop;
  int64_t position;
};

bool nests(const PlannedDim& outer, const PlannedDim& inner) {
  return outer.loop.stride == inner.loop.stride * inner.loop.size && outer.position == inner.position * inner.loop.size;
}

// Sorted by stride, so that inner loops walk through memory; merged only where the result nests, too.
std::vector<PlannedDim> normalised(std::vector<PlannedDim> dims) {
  std::erase_if(dims, [](const PlannedDim& dim) { return dim.loop.size == 1; });
  std::stable_sort(dims.begin(), dims.end(), [](const PlannedDim& a, const PlannedDim& b) {
    return std::abs(a.loop.stride) > std::abs(b.loop.stride);
  });
  std::vector<PlannedDim> merged;
  for (const PlannedDim& dim : dims) {
    if (!merged.empty() && nests(merged.back(), dim)) {
      merged.back() = {{merged.back().loop.size * dim.loop.size, dim.loop.stride}, dim.position};
    } else {
      merged.push_back(dim);
    }
  }
  return merged;
}

Plan make_plan(const NdArray& operand, DimSpan reduced_dims) {
  const Dims kept_dims = other_dims(operand.ndim(), reduced_dims);
  Plan plan{operand.data(), {}, {}, {}, 1, 1};
  std::vector<PlannedDim> kept, reduced;
  for (size_t i = kept_dims.size(); i-- > 0;) {
    const auto dim = static_cast<size_t>(kept_dims[i]);
    // The product of the sizes after a dim is its row-major stride in the result.
    kept.insert(kept.begin(), {{operand.shape()[dim], operand.strides()[dim]}, plan.kept_count});
    plan.kept_count *= operand.shape()[dim];
  }
  for (int64_t entry : reduced_dims) {
    const auto dim = static_cast<size_t>(entry);
    reduced.push_back({{operand.shape()[dim], operand.strides()[dim]}, 0});
    plan.reduced_count *= operand.shape()[dim];
  }
  for (const PlannedDim& dim : normalised(std::move(kept))) {
    plan.kept.push_back(dim.loop);
    plan.kept_position.push_back(dim.position);
  }
  for (const PlannedDim& dim : normalised(std::move(reduced))) plan.reduced.push_back(dim.loop);
  return plan;
}

void reduce(KernelContext& context, Reducer reducer, DimSpan dims) {
  // Narrow floats are combined in float32, and each result is rounded once.
  const DType dtype = context.operand(0).dtype(), wide = computed_in(dtype);
  const NdArray operand = converted(context, context.operand(0), wide);
  const NdArray init = converted(context, context.operand(1), wide);
  const NdArray result = context.allocate_result();
  const NdArray target = wide == dtype ? result : NdArray::empty(wide, result.shape());
  const Plan plan = make_plan(operand, dims);
  const auto reduce_items = is_float(wide) ? reduce_loops::reduce_floats : reduce_loops::reduce_integers;
  reduce_items(plan, reducer, wide, init.data(), target.data(),
               [&](int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
                 context.parallel_for(count, grain, body);
               });
  if (wide != dtype) convert_into(context, result, target);
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
