// SPDX-License-Identifier: Apache-2.0
//
// The derivative that comes with a function (gradient/given_derivatives.h), for a batch of examples or the rows of a
// manual computation: its programs, batched.
//
//   backward(%r, %dy) → %dx, %dw           w is the same for all examples
//   batched: %dx for each example, and the sum of %dw over the examples
#pragma once

#include "shardwise/transforms/gradient/given_derivatives.h"

namespace shardwise {

GivenDerivative batch_derivative(Module& module, const GivenDerivative& given, const BatchedDerivative& batched);

}  // namespace shardwise
