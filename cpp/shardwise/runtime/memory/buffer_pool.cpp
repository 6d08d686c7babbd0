// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/memory/buffer_pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <pthread.h>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/runtime/memory/allocation_log.h"

namespace shardwise {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr uint64_t kSmallest = 64;
constexpr int kClassCount = 4 * 63 + 1;  // sizes are below 2^63

// A recycled buffer would hide a use after free from the sanitizer.
#if defined(__SANITIZE_ADDRESS__)
constexpr int64_t kDefaultCapacity = 0;
#else
constexpr int64_t kDefaultCapacity = int64_t{1} << 30;
#endif

// Four classes per power of two: at most a quarter of a buffer is wasted.
struct SizeClass {
  int index;
  uint64_t bytes;
};

SizeClass size_class(uint64_t bytes) {
  bytes = std::max(bytes, kSmallest);
  const int exponent = 63 - std::countl_zero(bytes);
  // 100 bytes: 64 + 3 * 16 = 112, class 4 * 6 + 3 = 27. Four quarters are the next power, whose class is 4 * 7.
  const uint64_t step = (uint64_t{1} << exponent) / 4;
  const uint64_t quarters = (bytes - (uint64_t{1} << exponent) + step - 1) / step;  // 0 … 4
  return {4 * exponent + static_cast<int>(quarters), (uint64_t{1} << exponent) + quarters * step};
}

// Loops over large arrays spend much of their time on the translation of addresses, which pages of 2 MiB save; NumPy
// asks for them from 4 MiB on, too.
constexpr uint64_t kHugePage = uint64_t{1} << 21, kHuge = uint64_t{1} << 22;

std::align_val_t alignment(uint64_t bytes) { return bytes >= kHuge ? std::align_val_t{kHugePage} : kAlignment; }

void* new_buffer(uint64_t bytes) {
  void* const memory = ::operator new(bytes, alignment(bytes));
  // A system that has no such pages refuses, and small pages do as well.
  if (bytes >= kHuge) static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
  return memory;
}

void delete_buffer(void* memory, uint64_t bytes) noexcept { ::operator delete(memory, alignment(bytes)); }

class Store {
 public:
  void* take(SizeClass wanted, int64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      live_ += bytes;
      peak_ = std::max(peak_, live_);
      auto& list = free_[static_cast<size_t>(wanted.index)];
      if (!list.empty()) {
        void* memory = list.back();
        // The buffer that was freed last, which is most likely still in the cache.
        list.pop_back();
        kept_ -= static_cast<int64_t>(wanted.bytes);
        return memory;
      }
    }
    try {
      // Outside the lock: the system may take long, and other threads allocate meanwhile.
      return new_buffer(wanted.bytes);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      live_ -= bytes;
      throw;
    }
  }

  void give(void* memory, SizeClass size, int64_t bytes) noexcept {
    {
      const std::lock_guard lock(mutex_);
      live_ -= bytes;
      if (kept_ + static_cast<int64_t>(size.bytes) <= capacity_) {
        try {
          free_[static_cast<size_t>(size.index)].push_back(memory);
          kept_ += static_cast<int64_t>(size.bytes);
          return;
        } catch (const std::bad_alloc&) {
          // no memory even for a pointer: free the buffer instead
        }
      }
    }
    delete_buffer(memory, size.bytes);
  }

  void set_capacity(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    capacity_ = bytes;
    // Largest buffers first: few calls free much. Class 4 e + q has 2^e * (4 + q) / 4 bytes.
    for (size_t i = free_.size(); i-- > 0 && kept_ > capacity_;) {
      const uint64_t size = (uint64_t{1} << (i / 4)) / 4 * (4 + i % 4);
      while (!free_[i].empty() && kept_ > capacity_) {
        delete_buffer(free_[i].back(), size);
        free_[i].pop_back();
        kept_ -= static_cast<int64_t>(size);
      }
    }
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

  int64_t capacity() { return locked(capacity_); }
  int64_t kept() { return locked(kept_); }
  int64_t live() { return locked(live_); }

  int64_t restart_peak() {
    const std::lock_guard lock(mutex_);
    return std::exchange(peak_, live_);
  }

 private:
  int64_t locked(const int64_t& value) {
    const std::lock_guard lock(mutex_);
    return value;
  }

  std::mutex mutex_;
  std::array<std::vector<void*>, kClassCount> free_;
  int64_t capacity_ = kDefaultCapacity;
  int64_t kept_ = 0;
  int64_t live_ = 0;
  int64_t peak_ = 0;
};

// Never destroyed: arrays that outlive the end of main still return their memory. A fork first locks the mutex, because
// the child has no other thread that could unlock it.
Store& store() {
  static Store* const kStore = [] {
    pthread_atfork([] { store().lock(); }, [] { store().unlock(); }, [] { store().unlock(); });
    return new Store;
  }();
  return *kStore;
}

std::shared_ptr<void> buffer(int64_t bytes) {
  if (AllocationLog* log = AllocationLog::current()) return log->allocate(bytes);
  const SizeClass size = size_class(static_cast<uint64_t>(bytes));
  return {store().take(size, bytes), [size, bytes](void* p) { store().give(p, size, bytes); }};
}

}  // namespace

NdArray pooled_empty(DType dtype, Dims shape) {
  int64_t bytes = item_size(dtype);
  bool too_large = false;
  // An array without elements may have huge dims, whose product must not count as an overflow.
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (int64_t size : shape) too_large |= !is_empty && __builtin_mul_overflow(bytes, size, &bytes);
  if (too_large) {
    fail<ShapeError>("array", "the size in bytes must fit into 63 bits", str("shape ", shape, " of ", dtype),
                     "use a smaller shape");
  }
  if (is_empty) bytes = 0;
  std::shared_ptr<void> memory;
  try {
    memory = buffer(bytes);
  } catch (const std::bad_alloc&) {
    throw OutOfMemoryError("array", str(dtype, shape), bytes);
  }
  auto* data = static_cast<std::byte*>(memory.get());
  Dims strides = row_major_strides(shape, item_size(dtype));
  return {dtype, std::move(shape), std::move(strides), data, std::move(memory)};
}

int64_t buffer_pool_capacity() { return store().capacity(); }
void set_buffer_pool_capacity(int64_t bytes) { store().set_capacity(bytes); }
int64_t buffer_pool_bytes() { return store().kept(); }
int64_t live_buffer_bytes() { return store().live(); }
int64_t restart_peak_buffer_bytes() { return store().restart_peak(); }

}  // namespace shardwise
