// SPDX-License-Identifier: Apache-2.0
//
// The instruction sets that kernels are compiled for: isas_x86.cpp or isas_arm.cpp, whichever the build compiles.
//
//   available_isas().back().table->code[…]        // the kernels of the best instruction set of this CPU
#pragma once

#include <string_view>
#include <vector>

#include "shardwise/tile/reductions.h"
#include "shardwise/tile/table.h"

namespace shardwise {

struct Isa {
  std::string_view name;
  const TileTable* table;
  const ReductionTable* reductions;
};

std::vector<Isa> available_isas();  // of this CPU, best last

}  // namespace shardwise
