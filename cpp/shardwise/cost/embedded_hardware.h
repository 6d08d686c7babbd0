// SPDX-License-Identifier: Apache-2.0
//
// The texts of cost/hardware/*.json, which CMake compiles into the library (cpp/CMakeLists.txt), so that an installed
// package and the C++ tests have them without a path.
#pragma once

#include <span>
#include <string_view>

namespace shardwise {

struct EmbeddedHardware {
  std::string_view name;  // of the file, without .json
  std::string_view json;
};

std::span<const EmbeddedHardware> embedded_hardware();

}  // namespace shardwise
