// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/untouched_memory.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include <sys/mman.h>

#include "shardwise/base/error.h"

namespace shardwise {

UntouchedMemory::UntouchedMemory(const Module& module) {
  constexpr int64_t kPage = 4096;
  int64_t most = kPage;
  std::string largest;
  for (uint32_t i = 0; i < module.value_count(); ++i) {
    const TensorType& type = module.type(ValueId{i});
    const int64_t bytes = type.byte_quantity();
    if (bytes <= most) continue;
    most = bytes;
    largest = type.text();
  }
  length_ = static_cast<size_t>(most);
  memory_ = mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED) throw OutOfMemoryError("live_bytes", largest, most);
}

UntouchedMemory::~UntouchedMemory() { munmap(memory_, length_); }

}  // namespace shardwise
