// SPDX-License-Identifier: Apache-2.0
//
// The one thread pool of the process.
//
//   parallel_for(rows, 16, [&](int64_t begin, int64_t end) {   // chunks of at least 16 rows
//     for (int64_t row = begin; row < end; ++row) compute(row);
//   });
//
// The calling thread works too, and the call returns when every chunk is done. Small ranges (count <= grain), nested
// calls, and calls while another thread uses the pool run directly on the calling thread. The first exception thrown by
// a chunk reaches the caller, and chunks that have not begun are skipped. Chunk borders depend on the number of
// threads, so the result of a chunk must not depend on where it begins. Idle threads are parked (they never spin). A
// forked child starts its own threads. Process exit does not wait for them.
//
//   const InterruptScope scope(check_signals);   // parallel_for on this thread calls it between chunks; it may throw
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

namespace shardwise {

// Number of threads for one parallel_for, including the caller: SHARDWISE_THREADS, or one per processor.
int thread_count();
void set_thread_count(int count);  // 0: back to the setting

// The untyped form: one pointer and one function pointer, so the pool is compiled once.
void parallel_for_ranges(int64_t count, int64_t grain, void (*call)(void* f, int64_t begin, int64_t end), void* f);

// During its lifetime, long work of this thread calls `check` regularly, and ends with the exception that `check`
// throws.
class InterruptScope {
 public:
  explicit InterruptScope(const std::function<void()>& check);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  const std::function<void()>* outer_;
};

template <class F>
void parallel_for(int64_t count, int64_t grain, F&& f) {
  using Body = std::remove_reference_t<F>;
  parallel_for_ranges(
      count, grain, [](void* function, int64_t begin, int64_t end) { (*static_cast<Body*>(function))(begin, end); },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

}  // namespace shardwise
