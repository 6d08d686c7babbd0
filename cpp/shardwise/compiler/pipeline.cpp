// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/pipeline.h"

#include <array>

#include "shardwise/partition/assign.h"
#include "shardwise/partition/legalize.h"
#include "shardwise/partition/localize.h"
#include "shardwise/partition/optimize_collectives.h"
#include "shardwise/partition/plan_reshards.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/transforms/form_scans.h"
#include "shardwise/transforms/inline_calls.h"
#include "shardwise/transforms/simplify.h"
#include "shardwise/transforms/simplify_loops.h"

namespace shardwise {
namespace {

// Ops are decomposed after propagation, so that why() shows what the user wrote, and before the choice of placements,
// which is made for ops that run. Carries become captures before the choice, so that what a loop does not change is
// resharded once. Scans are formed last, of the loops that are left in the local program.
constexpr std::array kPipeline{
    kInlineCalls,  kSimplify, kPropagate,           kLegalize,  kSimplifyLoops, kAssign,
    kPlanReshards, kLocalize, kOptimizeCollectives, kFormScans,
};

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

}  // namespace shardwise
