// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/live_memory.h"

#include <string>
#include <utility>

#include <sys/mman.h>

#include "shardwise/base/array_view.h"
#include "shardwise/base/error.h"

namespace shardwise {
namespace {

constexpr int64_t kPage = 4096;

// Memory that was allocated and not freed yet.
class Buffer : public Owner {
 public:
  Buffer(std::shared_ptr<std::vector<MemoryEvent>> events, MemoryEvent made)
      : Owner{made.bytes, made.label}, events_(std::move(events)) {
    events_->push_back(made);
  }
  ~Buffer() { events_->push_back({label, -bytes}); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

 private:
  std::shared_ptr<std::vector<MemoryEvent>> events_;
};

}  // namespace

// Address space for any value: untouched pages take no memory.
LiveMemory::LiveMemory(const Module& module) : events_(std::make_shared<std::vector<MemoryEvent>>()) {
  int64_t most = kPage;
  std::string largest;
  for (uint32_t i = 0; i < module.value_count(); ++i) {
    const TensorType& type = module.type(ValueId{i});
    if (type.byte_quantity() <= most) continue;
    most = type.byte_quantity();
    largest = type.text();
  }
  length_ = static_cast<size_t>(most);
  untouched_ = mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (untouched_ == MAP_FAILED) throw OutOfMemoryError("live_bytes", largest, most);
}

LiveMemory::~LiveMemory() { munmap(untouched_, length_); }

int64_t LiveMemory::bytes() const {
  int64_t sum = 0;
  for (const MemoryEvent& event : *events_) sum += event.bytes;
  return sum;
}

NdArray LiveMemory::allocate(DType dtype, Dims shape) {
  const int64_t item = item_size(dtype), bytes = element_count(shape) * item;
  Dims strides = row_major_strides(shape, item);
  std::shared_ptr<Owner> owner = std::make_shared<Buffer>(events_, MemoryEvent{label_, bytes});
  return view({dtype, std::move(shape)}, std::move(strides), std::move(owner));
}

NdArray LiveMemory::allocate_in_order(DType dtype, const Dims& shape, std::span<const size_t> order) {
  Dims in_memory;
  for (const size_t dim : order) in_memory.push_back(shape[dim]);
  return in_shape_order(allocate(dtype, std::move(in_memory)), order);
}

NdArray LiveMemory::view(const TensorType& type, Dims strides, std::shared_ptr<Owner> owner) const {
  auto* data = static_cast<std::byte*>(untouched_);
  for (size_t d = 0; d < strides.size(); ++d) {
    // A reversed dim begins at its last element.
    if (type.shape[d] > 0 && strides[d] < 0) data -= (type.shape[d] - 1) * strides[d];
  }
  return {type.dtype, type.shape, std::move(strides), data, std::move(owner)};
}

NdArray LiveMemory::of_program(const NdArray& array) const {
  return view({array.dtype(), array.shape()}, array.strides(), program_);
}

bool LiveMemory::is_here(const NdArray& array) const {
  const auto* const begin = static_cast<const std::byte*>(untouched_);
  return array.data() >= begin && array.data() <= begin + length_;
}

}  // namespace shardwise
