// SPDX-License-Identifier: Apache-2.0
//
// How a text is read.
#pragma once

#include <string>

namespace shardwise {

struct ParseOptions {
  std::string file = {};  // places ops and arguments without a location: loc("file":3:5); empty: they have none
  // Names them as the text does, around their location and with their function, since names are the function's own:
  // loc("@main %h"(...)), loc("@f %r:2"(...)).
  bool name_values = false;
};

}  // namespace shardwise
