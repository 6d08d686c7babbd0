// SPDX-License-Identifier: Apache-2.0
//
// The user's place in Python code. Recording an op stores the nearest frame's code object and bytecode offset; file,
// line and variable are resolved by shardwise.user_code.sources when somebody asks.
#pragma once

#include <string>
#include <vector>

#include <pybind11/pybind11.h>

#include "shardwise/ir/context.h"

namespace shardwise {

// Frames of files under these folders are not the user's: the package itself and NumPy.
void hide_frames_of(std::vector<std::string> folders);

// The nearest frame that is the user's, as a location of `context`; none outside Python code. Needs the GIL.
LocId current_location(Context& context);

// The same, resolved at once; the file is empty outside Python code.
ResolvedSource current_source();

}  // namespace shardwise
