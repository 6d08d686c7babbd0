// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan/fuse.h"

#include <utility>

#include "shardwise/analysis/elementwise_chains.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

TileProgram tile_program(const Module& module, const ElementwiseChains& chains, const ElementwiseChain& chain) {
  TileBuilder tiles;
  std::unordered_map<ValueId, uint32_t> registers;
  uint32_t last = 0;
  for (OpId op : chain.ops) {
    std::vector<uint32_t> operands;
    for (ValueId operand : module.operands(op)) {
      auto [found, is_new] = registers.try_emplace(operand, 0);
      if (is_new) {
        // The inputs of the program are in the order of their first reads, as those of the chain are.
        const auto splat = chains.splats.find(operand);
        found->second =
            splat == chains.splats.end() ? tiles.input(module.type(operand).dtype) : tiles.scalar(splat->second);
      }
      operands.push_back(found->second);
    }
    const OpView view(module, op);
    last = view.def().tile(tiles, view, operands);
    registers[view.result()] = last;
  }
  tiles.output(last);
  return std::move(tiles).build();
}

}  // namespace

std::unordered_map<OpId, FusedGroup> fuse_elementwise(const Module& module, const std::vector<DigitSet>& varying) {
  ElementwiseChains chains = elementwise_chains(module, varying);
  std::unordered_map<OpId, FusedGroup> groups;
  for (auto& [root, chain] : chains.by_root) {
    TileProgram program = tile_program(module, chains, chain);
    groups.emplace(root, FusedGroup{std::move(chain.ops), std::move(chain.inputs), std::move(program)});
  }
  return groups;
}

}  // namespace shardwise
