// SPDX-License-Identifier: Apache-2.0
//
// A pass is one function that turns a program into a program. Pass, file, function, dump and golden folder share one
// name:
//
//   constexpr Pass kPropagate{"propagate", "give every value a sharding", propagate};    // propagate.h
//
//   Program program{.module = std::move(module)};
//   propagate(program);                          // a test calls it just like this
//   program.counters.get("propagate.visits")     // how often an op was looked at
//
// A pass throws an Error that names the op and the user's line; it never prints, and never asks how many devices there
// are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/provenance.h"

namespace shardwise {

// How propagation settles what two annotations want of one op:
//   kBasic       only what all tensors of the op agree on
//   kAggressive  each tensor takes what it can, the larger source first; what is left over becomes a reshard
enum class Strategy : uint8_t { kBasic, kAggressive };

// What propagation puts first, beside the order of the program:
//   kNone  nothing: one round with all ops
//   kOps   ops that change nothing about an annotation, round by round
//   kUser  a user's priorities, and within each of them kOps
enum class Priorities : uint8_t { kNone, kOps, kUser };

struct CompileOptions {
  Strategy strategy = Strategy::kAggressive;
  Priorities priorities = Priorities::kUser;
  bool conservative = false;      // propagate only where no exchange and no part of an axis is asked for
  bool strict_divisible = false;  // shrink shardings of uneven inputs and outputs, as Shardy does
  bool close_shardings = true;    // after propagation: every dim closed, replicated lists dropped
  int64_t reshard_memory_limit =
      0;  // bytes on one device while a value is resharded; 0: max(source, target) + one shard
};

// Named counts that passes leave for tests and reports: "propagate.visits", "plan_reshards.states", …
class Counters {
 public:
  void add(std::string_view name, int64_t amount);
  int64_t get(std::string_view name) const;  // 0 for a name nobody counted
  const std::vector<std::pair<std::string, int64_t>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, int64_t>> entries_;
};

// What passes work on. `module` is the program of the current stage: global shapes up to `plan_reshards`, then local
// ones.
struct Program {
  Module module;
  CompileOptions options = {};
  Provenance provenance = {};             // of the propagated module: who put which axis where
  std::vector<LocalLayout> layouts = {};  // by value index of the local module; empty before `localize`
  Counters counters = {};
  std::vector<std::string> warnings = {};  // what is legal and probably not meant, with its places; for the user
  std::filesystem::path dump_folder = {};  // of this compile; empty: not chosen yet, or no dumps
};

// What a program is on its way to one device, in this order (program_form.h tells which):
//   kGlobal    global shapes; an op's values lie where propagation says, whether it can be computed so or not
//   kAssigned  global shapes; each op is computed where its values lie, and reshards move them
//   kPlanned   global shapes; collectives in place of reshards
//   kLocal     the shapes of one device
enum class Form : uint8_t { kGlobal, kAssigned, kPlanned, kLocal };

// Which of the options of propagation a pass reads.
struct OptionsRead {
  bool strategy = false, conservative = false, strict_divisible = false;
};

struct FormRange {
  Form first = Form::kGlobal;
  Form last = Form::kLocal;
};

struct Pass {
  std::string_view name;
  std::string_view doc;  // one line
  void (*run)(Program& program);
  bool needs_runnable = false;  // takes for granted that the program is one that can run: no calls, no manual regions
  FormRange takes = {};
  Form makes = Form::kGlobal;  // of a program in an earlier form
  OptionsRead reads = {};
  std::optional<Strategy> strategy = {};  // by which it propagates, whatever the options say
};

}  // namespace shardwise
