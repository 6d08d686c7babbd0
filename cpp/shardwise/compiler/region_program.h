// SPDX-License-Identifier: Apache-2.0
//
// A region that captures nothing as a program of its own, which another program may import as text:
//
//   ^bb0(%x): %0 = sine %x; return %0        func.func public @main(%arg0) { %0 = sine %arg0; return %0 }
#pragma once

#include <memory>

#include "shardwise/ir/module.h"

namespace shardwise {

// Derivatives that come with functions in the region (transforms/gradient/given_derivatives.h) stay behind.
std::shared_ptr<Module> program_of_region(const Module& module, RegionId region);

}  // namespace shardwise
