// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/memory/memory_plan.h"

namespace shardwise {

std::string_view name(Repeated how) {
  switch (how) {
    case Repeated::kAgain: return "computed again";
    case Repeated::kWindowed: return "windowed";
    case Repeated::kInTrips: return "row by row";
  }
  return "";
}

}  // namespace shardwise
