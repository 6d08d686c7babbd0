// SPDX-License-Identifier: Apache-2.0
//
// NdArray: a strided view of refcounted bytes. Strides are in bytes; they may be 0 (broadcast) or negative.
//
//   NdArray a = NdArray::empty(DType::kF32, {4, 6});      // own 64-byte-aligned buffer, row-major
//   NdArray b = a.sliced(1, 2, 3);                         // columns 2..4: same buffer, shape {4, 3}, strides {24, 4}
//   b.is_contiguous()                                      // false
#pragma once

#include <cstddef>
#include <memory>

#include "shardwise/base/dims.h"
#include "shardwise/base/dtype.h"

namespace shardwise {

class NdArray {
 public:
  NdArray() = default;
  // A view of memory that `owner` keeps alive.
  NdArray(DType dtype, Dims shape, Dims strides, std::byte* data, std::shared_ptr<void> owner)
      : dtype_(dtype), shape_(std::move(shape)), strides_(std::move(strides)), data_(data), owner_(std::move(owner)) {}

  static NdArray empty(DType dtype, Dims shape);               // uninitialised
  static NdArray full(DType dtype, Dims shape, Scalar value);  // all strides 0: one element in memory

  DType dtype() const { return dtype_; }
  const Dims& shape() const { return shape_; }
  const Dims& strides() const { return strides_; }
  int64_t ndim() const { return static_cast<int64_t>(shape_.size()); }
  int64_t size() const { return element_count(shape_); }
  int64_t nbytes() const { return size() * item_size(dtype_); }
  std::byte* data() const { return data_; }
  const std::shared_ptr<void>& owner() const { return owner_; }
  bool is_contiguous() const;  // row-major without gaps (always true for size 0 or 1)
  bool is_splat() const;       // every stride of a dim larger than 1 is 0

  NdArray sliced(int64_t dim, int64_t start, int64_t size) const;  // view
  NdArray contiguous() const;                                      // itself, or a row-major copy
  void copy_from(const NdArray& source) const;                     // same shape and dtype; any strides
  Scalar scalar_at(int64_t linear_index = 0) const;                // row-major element index

 private:
  DType dtype_ = DType::kF32;
  Dims shape_;
  Dims strides_;
  std::byte* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

}  // namespace shardwise
