// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/memory/allocation_log.h"

#include <algorithm>
#include <new>

#include <sys/mman.h>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

// Per thread, so that runs on other threads go on computing.
thread_local AllocationLog* t_log = nullptr;

}  // namespace

AllocationLog::AllocationLog() : state_(std::make_shared<State>()) {
  check_internal(t_log == nullptr, "AllocationLog: one for a thread");
  t_log = this;
}

AllocationLog::~AllocationLog() { t_log = nullptr; }

AllocationLog* AllocationLog::current() { return t_log; }

const AllocationLog::Buffer* AllocationLog::find(const void* memory) const {
  const auto found = state_->buffers.find(memory);
  return found == state_->buffers.end() ? nullptr : &found->second;
}

std::shared_ptr<void> AllocationLog::allocate(int64_t bytes) {
  // An address of its own even without bytes: arrays are told apart by it.
  const auto length = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  // Untouched pages take no memory, so a rehearsal of terabytes costs address space only.
  void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  state_->buffers[memory] = {label_, bytes, state_->events.size()};
  state_->events.push_back({label_, bytes});
  return {memory, [state = state_, label = label_, bytes, length](void* p) {
            state->buffers.erase(p);
            munmap(p, length);
            state->events.push_back({label, -bytes});
          }};
}

}  // namespace shardwise
