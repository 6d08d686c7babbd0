// SPDX-License-Identifier: Apache-2.0
//
// Release and acquire the GIL, also while the interpreter shuts down.
//
//   const WithoutGil released;   // long work that touches no Python object
//   const WithGil held;          // a moment of Python inside such work
//
// When a daemon thread asks for the GIL of an interpreter that shuts down, CPython unwinds the thread's stack. That
// aborts the process at the first destructor or catch (...). Here such a thread sleeps instead until the process ends.
//
// Shutdown first waits for threads inside WithoutGil: static destruction would otherwise free what they use (OpenBLAS
// unmaps its buffers). Long work must call throw_if_shutting_down() now and then, so that the wait is short.
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

class WithGil {
 public:
  WithGil();
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Unwinds the work of a daemon thread up to its WithoutGil, where the thread then sleeps.
struct ShuttingDown {};
void throw_if_shutting_down();

// Registers the wait with Python's atexit.
void wait_for_threads_at_exit();

}  // namespace shardwise
