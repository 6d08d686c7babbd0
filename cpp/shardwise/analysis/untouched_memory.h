// SPDX-License-Identifier: Apache-2.0
//
// Address space for any value of a module, which takes no memory: reads give zeros, and nothing writes.
#pragma once

#include <cstddef>

#include "shardwise/ir/module.h"

namespace shardwise {

class UntouchedMemory {
 public:
  // OutOfMemoryError where a value is larger than the address space.
  explicit UntouchedMemory(const Module& module);
  ~UntouchedMemory();
  UntouchedMemory(const UntouchedMemory&) = delete;
  UntouchedMemory& operator=(const UntouchedMemory&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  size_t length_ = 0;
  void* memory_ = nullptr;
};

}  // namespace shardwise
