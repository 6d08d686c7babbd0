// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan/shard_homes.h"

#include <algorithm>

namespace shardwise {

ShardHomes::ShardHomes(const Module& module, const Variation& variation)
    : module_(module), variation_(variation), homes_(module.value_count()) {
  for (const ValueId argument : module.region(module.main().body).arguments) {
    Homes home(variation.digits.size(), 0);
    const Placement& placement = module.context().placement(module.part(argument).placement);
    const std::vector<DimPlacement>& dims = placement.dims;
    const bool is_on_other_mesh = variation.orders.contains(placement.mesh.get());
    // The digits are those of the mesh of the run; shards of another mesh are in another order.
    for (size_t d = 0; d < dims.size() && !is_on_other_mesh; ++d) {
      // The rows of an array in blocks along dim d follow each other there: shards of dim d are adjacent along it.
      const DigitSet here = variation.digits.touched(dims[d].axes);
      for (size_t g = 0; g < home.size(); ++g) {
        if ((here >> g & 1) != 0) home[g] = static_cast<uint8_t>(d);
      }
    }
    homes_[argument.index] = std::move(home);
  }
}

void ShardHomes::enter_loop(const LoopParts& loop, size_t dim) {
  for (size_t i = 0; i < loop.carries.size(); ++i) {
    copy(loop.carries[i].entry, loop.carries[i].argument);
    if (loop.condition) copy(loop.carries[i].entry, module_.region(loop.condition).arguments[i]);
  }
  for (const LoopParts::Input& input : loop.inputs) {
    copy(input.stack, input.row);
    for (uint8_t& home : homes_[input.row.index]) {
      // A row lacks dim `dim`: dims after it move down by one. Shards along that dim itself have no home in the row.
      if (home >= dim) home = static_cast<uint8_t>(home == dim ? 0 : home - 1);
    }
  }
}

void ShardHomes::leave_loop(const LoopParts& loop, size_t dim) {
  for (const LoopParts::Carry& carry : loop.carries) copy(carry.next, carry.result);
  for (const LoopParts::Output& output : loop.outputs) {
    copy(output.row, output.stack);
    for (uint8_t& home : homes_[output.stack.index]) {
      // The stack has the dim again.
      if (home >= dim) home = static_cast<uint8_t>(home + 1);
    }
  }
}

void ShardHomes::add_merged(const OpView& op, const Merge& merge) {
  for (size_t i = 0; i < op.result_count(); ++i) {
    Homes home(variation_.digits.size(), 0);
    for (const Merge::Digit& digit : merge.digits) {
      if (digit.result_dims[i]) home[digit.number] = static_cast<uint8_t>(*digit.result_dims[i]);
    }
    homes_[op.result(i).index] = std::move(home);
  }
}

void ShardHomes::add_chain(const OpView& op, std::span<const ValueId> inputs) {
  const DigitSet varying = variation_.varying[op.result().index];
  // Only such an input has all shards of the result: empty_in_order_of allocates the result in its order.
  const auto whole = std::ranges::find_if(inputs, [&](ValueId input) {
    return variation_.varying[input.index] == varying && module_.type(input).shape == op.result_type().shape;
  });
  if (whole != inputs.end()) copy(*whole, op.result());
}

}  // namespace shardwise
