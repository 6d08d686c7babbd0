// SPDX-License-Identifier: Apache-2.0
//
// reduce by (value, index) pairs, and by any other region. Both combine one dim after another, the last dim first, each
// from its first row to its last. So elements are combined in order, whatever the region:
//
//   5 rows by a region      0·1  2·3  4      0·1·2·3  4      0·1·2·3·4      init·0·1·2·3·4
//
// Each step runs the region's tile program on slabs of rows.
#include <algorithm>

#include "shardwise/ops/reduce/reduce.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/region_tiles.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {
namespace {

using Arrays = std::vector<NdArray>;

// Rows start, start + step, … of a dim.
NdArray rows_of(const NdArray& array, size_t dim, int64_t start, int64_t count, int64_t step) {
  Dims shape = array.shape(), strides = array.strides();
  const int64_t offset = start * strides[dim];
  shape[dim] = count;
  strides[dim] *= step;
  return restrided(array, std::move(shape), std::move(strides), offset);
}

class RegionReduction {
 public:
  RegionReduction(KernelContext& context, const TileProgram& program) : context_(context), program_(program) {}

  // Leaves one row of each array along `dim`.
  void reduce(Arrays& arrays, size_t dim) {
    while (arrays[0].shape()[dim] > 1) {
      const int64_t rows = arrays[0].shape()[dim], pairs = rows / 2, rest = rows % 2;
      // Left operands are the rows 0, 2, 4, …, right ones 1, 3, 5, …: neighbors combine, so that the order stays.
      // An odd last row goes on to the next round.
      Arrays inputs, outputs, next;
      for (const NdArray& array : arrays) inputs.push_back(rows_of(array, dim, 0, pairs, 2));
      for (const NdArray& array : arrays) inputs.push_back(rows_of(array, dim, 1, pairs, 2));
      for (const NdArray& array : arrays) {
        Dims shape = array.shape();
        shape[dim] = pairs + rest;
        next.push_back(NdArray::empty(array.dtype(), std::move(shape)));
        outputs.push_back(rows_of(next.back(), dim, 0, pairs, 1));
        if (rest == 0) continue;
        copy_array(context_, rows_of(next.back(), dim, pairs, 1, 1), rows_of(array, dim, rows - 1, 1, 1));
      }
      run(inputs, outputs);
      arrays = std::move(next);
    }
  }

  void run(const Arrays& inputs, const Arrays& outputs) { run_tiles(program_, inputs, outputs, pool_of(context_)); }

 private:
  KernelContext& context_;
  const TileProgram& program_;
};

// `dims` are ascending; `count` tensors and as many init values.
void reduce_region(KernelContext& context, const TileProgram& program, const Dims& dims, size_t count) {
  RegionReduction reduction(context, program);
  Arrays arrays, inits, results;
  for (size_t i = 0; i < count; ++i) {
    arrays.push_back(context.operand(i));
    results.push_back(context.allocate_result(i));
    inits.push_back(broadcast_scalar(context.operand(count + i), results[i].shape()));
  }
  const bool nothing = std::any_of(dims.begin(), dims.end(),
                                   [&](int64_t dim) { return arrays[0].shape()[static_cast<size_t>(dim)] == 0; });
  // A reduction of no rows gives the init values.
  if (nothing) {
    for (size_t i = 0; i < count; ++i) copy_array(context, results[i], inits[i]);
    return;
  }
  if (results[0].size() == 0) return;
  // The last dim first, so that elements combine in row-major order; the init value is to the left of all.
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) reduction.reduce(arrays, static_cast<size_t>(*dim));
  const Dims kept = other_dims(arrays[0].ndim(), dims);
  Arrays inputs = std::move(inits);
  for (const NdArray& array : arrays) inputs.push_back(permuted(array, kept));
  reduction.run(inputs, results);
}

}  // namespace

std::optional<Kernel> prepare_reduce_region(const OpView& op, const KernelTypes& types) {
  return [program = region_tiles(op.module(), op.regions()[0]), dims = ascending(dims_attr(op, "dimensions")),
          count = types.results.size()](KernelContext& context) { reduce_region(context, program, dims, count); };
}

}  // namespace shardwise
