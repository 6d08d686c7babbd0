// SPDX-License-Identifier: Apache-2.0
#include "shardwise/bindings/gil.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cxxabi.h>
#include <mutex>
#include <unistd.h>

#include "shardwise/base/of_this_process.h"

namespace py = pybind11;

namespace shardwise {
namespace {

// A compilation is not interrupted, and needs nothing that static destruction frees: the exit goes on without it.
constexpr std::chrono::seconds kLongestWait{10};

struct State {
  std::mutex mutex;
  std::condition_variable idle;
  int running = 0;  // of all threads: WithoutGil and calls that have not ended
  std::atomic<bool> shutting_down{false};
};

thread_local int t_running = 0;          // what this thread adds to `running`
thread_local bool t_shuts_down = false;  // the thread that runs Python's atexit functions may still run programs

State& state() { return of_this_process<State>(); }

bool must_sleep() { return !t_shuts_down && state().shutting_down.load(std::memory_order_acquire); }

void count(int change) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  // Counted per thread as well, so that a thread that goes to sleep takes back all that it has added.
  t_running += change;
  all.running += change;
  if (all.running <= 0) all.idle.notify_all();
}

// False once the wait at exit has begun.
bool try_enter() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (must_sleep()) return false;
  ++t_running;
  ++all.running;
  return true;
}

// The thread does not hold the GIL here.
[[noreturn]] void sleep_until_exit() {
  // The exit must not wait for this thread any longer.
  count(-t_running);
  while (true) pause();
}

}  // namespace

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()) {
  if (!try_enter()) sleep_until_exit();
}

WithoutGil::~WithoutGil() {
  count(-1);
  // Asking for the GIL of an interpreter that shuts down would unwind this thread's stack.
  if (must_sleep()) sleep_until_exit();
  // The shutdown may begin after the check. CPython then ends this thread by pthread_exit, which unwinds by this
  // exception: a handler that does not return stops it.
  try {
    PyEval_RestoreThread(state_);
  } catch (abi::__forced_unwind&) {
    sleep_until_exit();
  }
}

WithGil::WithGil() try : state_(PyGILState_Ensure()) {
} catch (abi::__forced_unwind&) {
  sleep_until_exit();
}

WithGil::~WithGil() { PyGILState_Release(state_); }

void enter_call() {
  if (try_enter()) return;
  PyEval_SaveThread();
  sleep_until_exit();
}

void leave_call() { count(-1); }

void throw_if_shutting_down() {
  if (must_sleep()) throw ShuttingDown();
}

void wait_for_threads() {
  State& all = state();
  t_shuts_down = true;
  PyThreadState* const python = PyEval_SaveThread();
  {
    std::unique_lock lock(all.mutex);
    all.shutting_down.store(true, std::memory_order_release);
    all.idle.wait_for(lock, kLongestWait, [&] { return all.running <= 0; });
  }
  PyEval_RestoreThread(python);
}

}  // namespace shardwise
