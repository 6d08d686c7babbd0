// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/indexing/torch_index_select.h"

#include "shardwise/ops/shared/propagation_only.h"

namespace shardwise {
namespace {

constexpr OpDef kTorchIndexSelectOps[] = {
    propagation_only_op("stablehlo.torch_index_select", infer_shape_operand<2>, no_rule, {},
                        "Rows at the places of an index (StableHLO torch_index_select)."),
};
static_assert(all_complete(kTorchIndexSelectOps));

}  // namespace

std::span<const OpDef> torch_index_select_ops() { return kTorchIndexSelectOps; }

}  // namespace shardwise
