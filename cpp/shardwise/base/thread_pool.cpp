// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <signal.h>
#include <system_error>
#include <thread>

#include "shardwise/base/dims.h"
#include "shardwise/base/of_this_process.h"
#include "shardwise/base/settings.h"

namespace shardwise {
namespace {

// More chunks than threads, so that a late or preempted thread does not delay the others.
constexpr int64_t kChunksPerThread = 4;
// Chunks cannot be interrupted, so this bounds their duration to milliseconds, however large the work is.
constexpr int64_t kMaxGrainsPerChunk = 1024;

struct Job;
thread_local Job* t_job = nullptr;                            // the job that this thread works on
thread_local const std::function<void()>* t_check = nullptr;  // of the innermost InterruptScope

// Ends nested work of a job that has already failed.
struct JobFailed {};

void check_interrupt();

struct Job {
  Job(void (*call_chunk)(void*, int64_t, int64_t), void* function, int64_t total, int64_t chunk)
      : call(call_chunk), f(function), count(total), step(chunk) {}

  void (*call)(void* f, int64_t begin, int64_t end);
  void* f;
  int64_t count;
  int64_t step;
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex error_mutex;
  std::exception_ptr error;

  // Takes chunks until none is left.
  void work() {
    t_job = this;
    while (true) {
      // Relaxed, because chunks are independent; the mutex of the pool orders their results before the caller's reads.
      const int64_t begin = next.fetch_add(step, std::memory_order_relaxed);
      if (begin >= count) break;
      try {
        call(f, begin, std::min(count, begin + step));
        check_interrupt();
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
        failed.store(true, std::memory_order_relaxed);
        next.store(count, std::memory_order_relaxed);
      }
    }
    t_job = nullptr;
  }
};

void check_interrupt() {
  if (t_check != nullptr) (*t_check)();
  if (t_job != nullptr && t_job->failed.load(std::memory_order_relaxed)) throw JobFailed();
}

void run_alone(int64_t count, int64_t grain, void (*call)(void* f, int64_t begin, int64_t end), void* f) {
  // Divide rather than multiply: the product may overflow for a large grain.
  const int64_t step = grain > count / kMaxGrainsPerChunk ? count : grain * kMaxGrainsPerChunk;
  for (int64_t begin = 0; begin < count; begin += step) {
    if (begin > 0) check_interrupt();
    call(f, begin, std::min(count, begin + step));
  }
}

class Pool {
 public:
  // Returns false when another thread's job is running; the caller then works alone.
  bool run(Job& job, int threads) {
    const std::unique_lock<std::mutex> user(user_mutex_, std::try_to_lock);
    if (!user.owns_lock()) return false;
    {
      const std::lock_guard lock(mutex_);
      start_threads(threads - 1);
      job_ = &job;
      seats_ = std::min(threads - 1, started_);
    }
    for (int i = 0; i < threads - 1; ++i) wake_.notify_one();
    job.work();
    std::unique_lock lock(mutex_);
    job_ = nullptr;  // a thread that wakes now finds no job, so the job may leave the caller's stack
    seats_ = 0;
    done_.wait(lock, [this] { return working_ == 0; });
    return true;
  }

 private:
  void start_threads(int wanted) {
    if (started_ >= wanted) return;
    // Signals are for the user's threads: if a worker took Ctrl-C, the main thread would stay asleep in its system
    // call.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (; started_ < wanted; ++started_) std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
      // The system has no more threads: those that started, and the caller, do all the work.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return seats_ > 0; });
      --seats_;
      ++working_;
      Job* job = job_;
      lock.unlock();
      job->work();
      lock.lock();
      if (--working_ == 0) done_.notify_one();
    }
  }

  std::mutex user_mutex_;  // held during one job
  std::mutex mutex_;       // guards all below
  std::condition_variable wake_;
  std::condition_variable done_;
  Job* job_ = nullptr;
  int seats_ = 0;    // threads that may still join the job
  int working_ = 0;  // threads inside the job
  int started_ = 0;
};

std::atomic<int> g_thread_count{0};  // 0: not set

}  // namespace

int thread_count() {
  const int chosen = g_thread_count.load(std::memory_order_relaxed);
  if (chosen > 0) return chosen;
  if (settings().threads > 0) return settings().threads;
  static const int kProcessors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return kProcessors;
}

void set_thread_count(int count) { g_thread_count.store(std::max(0, count), std::memory_order_relaxed); }

InterruptScope::InterruptScope(const std::function<void()>& check) : outer_(t_check) {
  t_check = check ? &check : outer_;
}

InterruptScope::~InterruptScope() { t_check = outer_; }

void parallel_for_ranges(int64_t count, int64_t grain, void (*call)(void* f, int64_t begin, int64_t end), void* f) {
  if (count <= 0) return;
  grain = std::max<int64_t>(1, grain);
  if (count > grain && t_job == nullptr) {
    const auto threads = static_cast<int>(std::min<int64_t>(thread_count(), ceil_div(count, grain)));
    const int64_t share = ceil_div(count, threads * kChunksPerThread);
    const int64_t grains = std::min(ceil_div(std::max(share, grain), grain), kMaxGrainsPerChunk);
    const int64_t step = grains * grain;
    Job job(call, f, count, step);
    if (threads > 1 && of_this_process<Pool>().run(job, threads)) {
      if (job.error) std::rethrow_exception(job.error);
      return;
    }
  }
  run_alone(count, grain, call, f);
}

}  // namespace shardwise
