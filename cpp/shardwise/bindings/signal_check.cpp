// SPDX-License-Identifier: Apache-2.0
#include "shardwise/bindings/signal_check.h"

#include <pybind11/pybind11.h>

#include "shardwise/bindings/gil.h"

namespace shardwise {

void SignalCheck::operator()() {
  throw_if_shutting_down();
  if (std::chrono::steady_clock::now() < next_) return;
  const WithGil held;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
  next_ = std::chrono::steady_clock::now() + kPause;
}

}  // namespace shardwise
