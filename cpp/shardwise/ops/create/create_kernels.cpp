// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/create/create.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {
namespace {

constexpr int64_t kIotaGrain = 1 << 16;

template <class T>
void fill(KernelContext& context, const NdArray& indices) {
  auto* items = reinterpret_cast<T*>(indices.data());
  context.parallel_for(indices.size(), kIotaGrain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) items[index] = static_cast<T>(index);
  });
}

// One row in memory, repeated along the other dims by strides of 0.
void iota(KernelContext& context, const TensorType& type, size_t dim) {
  const int64_t size = type.shape[dim];
  // Counting in a narrow float would stop at its largest exact integer, so the indices
  // are counted in int64 and rounded once.
  const bool is_converted = computed_in(type.dtype) != type.dtype || is_complex(type.dtype);
  const NdArray indices = NdArray::empty(is_converted ? DType::kI64 : type.dtype, {size});
  dispatch(indices.dtype(), [&]<class T>() {
    // The classes are complex numbers and 16-bit floats, which are converted.
    if constexpr (!std::is_class_v<T>) fill<T>(context, indices);
  });
  const NdArray row = converted(context, indices, type.dtype);
  Dims strides(type.shape.size(), 0);
  strides[dim] = row.strides()[0];
  context.set_result(0, restrided(row, type.shape, std::move(strides)));
}

}  // namespace

std::optional<Kernel> prepare_constant(const OpView& op, const KernelTypes& types) {
  const NdArray& data = op.attrs().get<DenseAttr>("value").data;
  // Shards merged into one call would need a larger constant.
  if (data.shape() != types.results[0].shape) return std::nullopt;
  return [data](KernelContext& context) { context.set_result(0, data); };
}

std::optional<Kernel> prepare_iota(const OpView& op, const KernelTypes& types) {
  return [type = types.results[0], dim = static_cast<size_t>(op.attrs().get_int("iota_dimension"))](
             KernelContext& context) { iota(context, type, dim); };
}

}  // namespace shardwise
