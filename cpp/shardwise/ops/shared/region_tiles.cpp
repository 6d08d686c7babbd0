// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/region_tiles.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "shardwise/base/error.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {

namespace {

bool is_elementwise(const OpView& op) {
  if (op.operand_count() == 0) return op.result_count() == 1 && splat_value(op.module(), op.result()).has_value();
  // An op that others make up is replaced by ops with tiles before the region runs.
  return op.def().tile != nullptr || (op.def().decompose != nullptr && op.def().traits.elementwise);
}

bool becomes_elementwise(const OpView& op) {
  switch (op.def().regions) {
    case Regions::kCall:
    case Regions::kInline: return true;  // the ops that take its place are checked when they are there
    case Regions::kBranches:
      return std::ranges::all_of(op.regions(),
                                 [&](RegionId branch) { return never_in_tiles(op.module(), branch).empty(); });
    default: return is_elementwise(op) || is_scalar_copy(op);
  }
}

template <class Fits>
std::string_view first_other(const Module& module, RegionId region, const Fits& fits) {
  for (const OpId id : module.region(region).ops) {
    if (const OpView op(module, id); !fits(op)) return op.name();
  }
  return {};
}

}  // namespace

std::string_view not_in_tiles(const Module& module, RegionId region) {
  return first_other(module, region, is_elementwise);
}

std::string_view never_in_tiles(const Module& module, RegionId region) {
  return first_other(module, region, becomes_elementwise);
}

bool is_scalar_copy(const OpView& op) {
  if (!op.def().traits.movement || op.operand_count() != 1 || op.result_count() != 1) return false;
  return op.result_type().ndim() == 0 && op.operand_type(0) == op.result_type();
}

void verify_region_tiles(const OpView& op) {
  const std::string_view other = not_in_tiles(op.module(), op.regions()[0]);
  if (other.empty()) return;
  fail<UnsupportedError>(op.name(), "its region must hold elementwise ops and constants to run it", std::string(other),
                         "compute the rest outside, on whole tensors");
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
