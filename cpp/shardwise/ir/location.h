// SPDX-License-Identifier: Apache-2.0
//
// The origin of an op. Recording must take nanoseconds, so a traced op stores a SourceFrame (one per code object) and a
// bytecode offset. File, line and variable names are resolved on demand.
//
//   loc(unknown)                       kUnknown
//   loc("train.py":31:5)               kFile, or kSource once resolved
//   loc("h"("train.py":31:5))          kName with a child
#pragma once

#include <cstdint>
#include <string>

#include "shardwise/ir/ids.h"

namespace shardwise {

struct ResolvedSource {
  std::string file = {};
  int32_t line = 0;
  int32_t column = 0;
  std::string variable = {};  // those that hold the result of the call (assigned_names.h); empty when unknown
};

// A piece of user code, kept alive by the context that refers to it.
class SourceFrame {
 public:
  virtual ~SourceFrame() = default;
  virtual ResolvedSource resolve(int32_t offset) const = 0;
};

struct Location {
  enum class Kind : uint8_t { kUnknown, kFile, kName, kSource };
  Kind kind = Kind::kUnknown;
  std::string text = {};  // kFile: file; kName: name
  int32_t line = 0;       // kFile: line; kSource: bytecode offset
  int32_t column = 0;     // kFile
  LocId child = {};       // kName
  SourceId source = {};   // kSource
  friend bool operator==(const Location&, const Location&) = default;
};

size_t hash_value(const Location& location);

}  // namespace shardwise
