// SPDX-License-Identifier: Apache-2.0
//
// A tensor with more elements than a type can have. To users it is a ShapeError. A candidate of the choice may ask for one,
// and is then out of the question, while any other ShapeError of ops that shardwise makes is a bug.
#pragma once

#include "shardwise/base/error.h"

namespace shardwise {

class SizeError : public ShapeError {
  using ShapeError::ShapeError;
};

}  // namespace shardwise
