// SPDX-License-Identifier: Apache-2.0
//
// Where an op comes from. Recording must cost nanoseconds, so a traced op stores a SourceFrame (one per code object)
// and a bytecode offset; file, line and variable names are resolved only when somebody asks.
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
  std::string variable = {};  // the name that the call's result was stored to; empty when unknown
};

// A piece of user code, held alive as long as the context that refers to it.
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

}  // namespace shardwise
