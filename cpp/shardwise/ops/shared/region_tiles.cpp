// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/region_tiles.h"

#include <unordered_map>

#include "shardwise/base/error.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {

std::string_view not_in_tiles(const Module& module, RegionId region) {
  for (const OpId id : module.region(region).ops) {
    const OpView op(module, id);
    const bool constant = op.operand_count() == 0 && op.result_count() == 1 && splat_value(module, op.result());
    // Such an op is replaced by ops with tiles before the region runs.
    const bool decomposes = op.def().decompose != nullptr && op.def().traits.elementwise;
    if (!constant && op.def().tile == nullptr && !decomposes) return op.name();
  }
  return {};
}

TileProgram region_tiles(const Module& module, RegionId id) {
  const Region& region = module.region(id);
  TileBuilder tiles;
  std::unordered_map<ValueId, uint32_t> registers;
  for (const ValueId argument : region.arguments) registers[argument] = tiles.input(module.type(argument).dtype);
  for (const OpId op_id : region.ops) {
    const OpView op(module, op_id);
    if (op.operand_count() == 0) {
      // not_in_tiles has been asked before, so an op without operands is a constant.
      registers[op.result()] = tiles.scalar(*splat_value(module, op.result()));
      continue;
    }
    std::vector<uint32_t> inputs;
    for (const ValueId operand : op.operands()) {
      const auto known = registers.find(operand);
      check_internal(known != registers.end(), "a region of tiles must not use values from around it");
      inputs.push_back(known->second);
    }
    if (op.def().tile == nullptr) {
      fail<UnsupportedError>(op.name(), "cannot run in a region of scalars", {},
                             "compute it outside, on whole tensors");
    }
    registers[op.result()] = op.def().tile(tiles, op, inputs);
  }
  for (const ValueId result : region.results) {
    const auto known = registers.find(result);
    check_internal(known != registers.end(), "a region of tiles must not return values from around it");
    tiles.output(known->second);
  }
  return std::move(tiles).build();
}

}  // namespace shardwise
