// SPDX-License-Identifier: Apache-2.0
//
// A value that each process makes for itself on first use, by any thread:
//
//   of_this_process<Pool>().run(job, threads)
//
// The child of a fork has none of the other threads, and perhaps a locked mutex: it makes a new value and abandons the
// old one. A value is never destroyed, because threads outlive static destruction.
#pragma once

#include <atomic>
#include <memory>
#include <pthread.h>

namespace shardwise {

template <class T>
T& of_this_process() {
  static std::atomic<T*> made{nullptr};
  T* current = made.load(std::memory_order_acquire);
  if (current != nullptr) return *current;
  static const int kRegistered =
      pthread_atfork(nullptr, nullptr, [] { made.store(nullptr, std::memory_order_relaxed); });
  static_cast<void>(kRegistered);
  auto fresh = std::make_unique<T>();
  if (made.compare_exchange_strong(current, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *current;  // another thread was first
}

}  // namespace shardwise
