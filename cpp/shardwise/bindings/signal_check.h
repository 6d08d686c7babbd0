// SPDX-License-Identifier: Apache-2.0
//
// Lets Ctrl-C stop long work that has released the GIL:
//
//   SignalCheck check;
//   check();      // often; throws the error that Python raises
//
// The GIL is asked for every 10 ms at most: runs of small programs in several threads would otherwise wait for each other
// at every op.
#pragma once

#include <chrono>

namespace shardwise {

class SignalCheck {
 public:
  void operator()();

 private:
  static constexpr std::chrono::milliseconds kPause{10};
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kPause;
};

}  // namespace shardwise
