// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/ndarray.h"

#include <new>

#include "shardwise/base/error.h"
#include "shardwise/base/strided_copy.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

constexpr std::align_val_t kAlignment{64};  // a cache line, and the widest vector register

// Returns null when the machine does not have that much memory.
std::shared_ptr<void> allocate(int64_t bytes) {
  // Null means "out of memory" here and "not yet there" to callers, so an empty array gets a byte, too.
  void* memory = ::operator new(static_cast<size_t>(bytes > 0 ? bytes : 1), kAlignment, std::nothrow);
  return {memory, [](void* p) { ::operator delete(p, kAlignment); }};
}

// Bytes of a dense array. Throws when they do not fit into 63 bits, because a wrapped product would look like a small
// size. A dim of size 0 does not exempt the others: their product is still computed as a stride.
int64_t dense_bytes(DType dtype, const Dims& shape) {
  int64_t bytes = item_size(dtype);
  bool is_empty = false;
  bool too_large = false;
  for (int64_t size : shape) {
    check_internal(size >= 0, "NdArray: no dim size is negative");
    if (size == 0) {
      is_empty = true;
      continue;
    }
    too_large |= __builtin_mul_overflow(bytes, size, &bytes);
  }
  if (too_large) {
    fail<ShapeError>("array", "the size in bytes must fit into 63 bits", str("shape ", shape, " of ", dtype),
                     "use a smaller shape");
  }
  return is_empty ? 0 : bytes;
}

}  // namespace

NdArray NdArray::empty(DType dtype, Dims shape) {
  const int64_t bytes = dense_bytes(dtype, shape);
  std::shared_ptr<void> memory = allocate(bytes);
  if (memory == nullptr) throw OutOfMemoryError("array", str(dtype, shape), bytes);
  auto* data = static_cast<std::byte*>(memory.get());
  Dims strides = row_major_strides(shape, item_size(dtype));
  return {dtype, std::move(shape), std::move(strides), data, std::move(memory)};
}

NdArray NdArray::full(DType dtype, Dims shape, Scalar value) {
  check_internal(value.dtype == dtype, "NdArray::full: the scalar has the array's dtype");
  dense_bytes(dtype, shape);  // checks the size
  std::shared_ptr<void> memory = allocate(item_size(dtype));
  if (memory == nullptr) throw OutOfMemoryError("array", str(dtype), item_size(dtype));
  auto* data = static_cast<std::byte*>(memory.get());
  store(value, data);
  Dims strides(shape.size(), 0);
  return {dtype, std::move(shape), std::move(strides), data, std::move(memory)};
}

bool NdArray::is_contiguous() const {
  bool dense = true;
  int64_t stride = item_size(dtype_);
  for (size_t d = shape_.size(); d-- > 0;) {
    // No early return for a wrong stride: a dim of size 0 further left still makes the array empty, hence contiguous.
    if (shape_[d] == 0) return true;
    if (shape_[d] == 1) continue;  // its stride is never used
    dense = dense && strides_[d] == stride;
    stride *= shape_[d];
  }
  return dense;
}

bool NdArray::is_splat() const {
  for (size_t d = 0; d < shape_.size(); ++d) {
    if (shape_[d] > 1 && strides_[d] != 0) return false;
  }
  return true;
}

NdArray NdArray::sliced(int64_t dim, int64_t start, int64_t size) const {
  check_internal(dim >= 0 && dim < ndim(), "NdArray::sliced: the dim exists");
  const auto d = static_cast<size_t>(dim);
  // Written as a difference, because start + size may overflow.
  check_internal(start >= 0 && size >= 0 && start <= shape_[d] - size, "NdArray::sliced: the slice lies inside");
  NdArray view = *this;
  view.shape_[d] = size;
  if (view.size() != 0) view.data_ += start * strides_[d];  // the address of an empty view might be out of range
  return view;
}

NdArray NdArray::contiguous() const {
  if (is_contiguous()) return *this;
  NdArray copy = empty(dtype_, shape_);
  copy.copy_from(*this);
  return copy;
}

void NdArray::copy_from(const NdArray& source) const {
  check_internal(source.dtype_ == dtype_ && source.shape_ == shape_, "NdArray::copy_from: same dtype and shape");
  copy_strided(item_size(dtype_), shape_, data_, strides_, source.data_, source.strides_);
}

Scalar NdArray::scalar_at(int64_t linear_index) const {
  check_internal(linear_index >= 0 && linear_index < size(), "NdArray::scalar_at: the index lies inside");
  int64_t offset = 0;
  for (size_t d = shape_.size(); d-- > 0;) {
    // Element 4 of shape {2, 3} is [1][1]: 4 % 3 = 1 in the last dim, and 4 / 3 = 1 in the one before.
    offset += linear_index % shape_[d] * strides_[d];
    linear_index /= shape_[d];
  }
  return load(dtype_, data_ + offset);
}

}  // namespace shardwise
