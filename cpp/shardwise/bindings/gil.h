// SPDX-License-Identifier: Apache-2.0
//
// Release and acquire the GIL, also while the interpreter shuts down.
//
//   const WithoutGil released;   // long work that touches no Python object
//   without_gil([&] { return gather(array); })
//   const WithGil held;          // a moment of Python inside such work
//
// When a daemon thread asks for the GIL of an interpreter that shuts down, CPython unwinds the thread's stack. That
// aborts the process at the first destructor or catch (...). Here such a thread sleeps instead until the process ends.
//
// Shutdown first waits for threads inside WithoutGil: static destruction would otherwise free what they use (OpenBLAS
// unmaps its buffers). Long work must call throw_if_shutting_down() now and then, so that the wait is short. It also
// waits for threads between enter_call() and leave_call(): other extensions that a call uses (optree) release the GIL,
// too, and abort.
#pragma once

#include <pybind11/pybind11.h>

namespace shardwise {

class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

template <class Work>
auto without_gil(Work&& work) {
  const WithoutGil released;
  return work();
}

class WithGil {
 public:
  WithGil();
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Around a call of Python code that runs programs. Calls may nest. With the GIL held.
void enter_call();
void leave_call();

// Unwinds the work of a daemon thread up to its WithoutGil, where the thread then sleeps.
struct ShuttingDown {};
void throw_if_shutting_down();

// Registered with Python's atexit: from now on only the calling thread runs programs.
void wait_for_threads();

}  // namespace shardwise
