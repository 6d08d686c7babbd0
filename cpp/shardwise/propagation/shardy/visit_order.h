// SPDX-License-Identifier: Apache-2.0
//
// Shardy has two visiting orders: its pipeline runs on a rebuilt program, its module passes on the text as parsed. The
// difference decides conflicts around loops and other ops with regions (body_before_its_loop.mlir and
// operand_handed_twice.mlir in tests/conformance/shardy/texts/origins).
#pragma once

#include <cstdint>

namespace shardwise {

//   kPipeline    as the compiler does. When a value has grown that an op with regions takes and a region uses, the op
//                is visited first. Sweeps go on until no region argument is left out.
//   kModulePass  as one of Shardy's module passes does (levels.h). The region is visited first, and an axis that
//                reaches a region argument from its users in the last round stays outside.
enum class VisitOrder : uint8_t { kPipeline, kModulePass };

}  // namespace shardwise
