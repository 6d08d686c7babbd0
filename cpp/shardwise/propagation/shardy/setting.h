// SPDX-License-Identifier: Apache-2.0
//
// Shardy visits ops in two orders, since its pipeline propagates a program that earlier passes have made anew, while
// its module passes propagate a text as it was read. The difference decides conflicts around loops and other ops with
// regions (tests/origins/body_before_its_loop.mlir, operand_handed_twice.mlir).
#pragma once

#include <cstdint>

namespace shardwise {

// The caller decides the order of visits:
//   kPipeline  in the compiler. When a value has grown that an op with regions takes and a region uses, the op is
//              visited first. Sweeps go on until no region argument is left out.
//   kModulePass     as one of Shardy's module passes (levels.h): the region is visited first, and an axis that reaches
//              a region argument from its users in the last round stays outside.
enum class Setting : uint8_t { kPipeline, kModulePass };

}  // namespace shardwise
