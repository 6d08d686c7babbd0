// SPDX-License-Identifier: Apache-2.0
#include "shardwise/tile/isas.h"

namespace shardwise {

std::vector<Isa> available_isas() {
  // Every 64-bit ARM has NEON and FMA.
  return {{"scalar_fma", tile_table_scalar_fma(), reduction_table_scalar_fma()},
          {"neon", tile_table_neon(), reduction_table_neon()}};
}

}  // namespace shardwise
