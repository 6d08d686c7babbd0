// SPDX-License-Identifier: Apache-2.0
//
// The rows past the end of an uneven dim of a local value: 17 rows in blocks of 5 leave three rows of padding on the
// last of four devices.
#pragma once

#include <cstdint>

#include "shardwise/base/dtype.h"

namespace shardwise {

struct Padding {
  enum class Kind : uint8_t { kNone, kGarbage, kFill };
  Kind kind = Kind::kNone;
  Scalar fill;  // kFill only
  friend bool operator==(const Padding&, const Padding&) = default;
};

}  // namespace shardwise
