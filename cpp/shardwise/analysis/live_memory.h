// SPDX-License-Identifier: Apache-2.0
//
// Arrays of one device that take no memory: what is allocated and freed becomes events (memory_use.h).
//
//   LiveMemory memory(module);
//   NdArray a = memory.allocate(kF32, {1 << 20});     +4 MiB
//   NdArray b = permuted(a, …);                       a view: it has the owner of `a`
//   a = {}, b = {};                                   -4 MiB
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shardwise/analysis/memory_use.h"
#include "shardwise/base/ndarray.h"
#include "shardwise/ir/module.h"

namespace shardwise {

// Each of these arrays has such an owner.
struct Owner {
  int64_t bytes = 0;   // that it keeps alive
  uint32_t label = 0;  // of its buffer
  // Depending on the branch that ran, nothing else owns the memory.
  bool may_be_sole = false;
};

inline int64_t bytes_kept_by(const NdArray& array) { return static_cast<const Owner*>(array.owner().get())->bytes; }

// All arrays lie at one address, where nothing is written: reads give zeros. They are told apart by their owners.
class LiveMemory {
 public:
  // OutOfMemoryError where a value of the module is larger than the address space.
  explicit LiveMemory(const Module& module);
  ~LiveMemory();
  LiveMemory(const LiveMemory&) = delete;
  LiveMemory& operator=(const LiveMemory&) = delete;

  void set_label(ValueId value) { label_ = value.index; }  // of what is allocated next
  const std::vector<MemoryEvent>& events() const { return *events_; }
  int64_t bytes() const;  // that are alive

  NdArray allocate(DType dtype, Dims shape);
  NdArray allocate(const TensorType& type) { return allocate(type.dtype, type.shape); }
  // `order` has the dims from the outermost one in memory to the innermost.
  NdArray allocate_in_order(DType dtype, const Dims& shape, std::span<const size_t> order);
  // Memory that `owner` keeps.
  NdArray view(const TensorType& type, Dims strides, std::shared_ptr<Owner> owner) const;

  // An array that a kernel made elsewhere, such as a constant: the program keeps it, and nothing writes over it.
  NdArray of_program(const NdArray& array) const;
  bool is_here(const NdArray& array) const;

 private:
  size_t length_ = 0;
  void* untouched_ = nullptr;
  std::shared_ptr<std::vector<MemoryEvent>> events_;  // arrays may outlive this
  std::shared_ptr<Owner> program_ = std::make_shared<Owner>();
  uint32_t label_ = 0;
};

}  // namespace shardwise
