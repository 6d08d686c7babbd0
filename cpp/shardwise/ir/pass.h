// SPDX-License-Identifier: Apache-2.0
//
// A pass is one function that turns a program into a program. Pass, file, function, dump and golden folder share one
// name:
//
//   constexpr Pass kAssign{.name = "assign", .doc = "…", .run = assign, …};    // assign.h
//
//   PassContext context;
//   module = assign(std::move(module), context);     // a test calls it just like this
//   context.counters.get("assign.plans")            // what it counted
//
// A module is moved through the passes. A pass throws an Error that names the op and the user's line; it never prints,
// and never asks how many devices there are. compiler/driver.h runs passes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwise/ir/compile_options.h"
#include "shardwise/ir/module.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/provenance.h"

namespace shardwise {

// Named counts that passes leave for tests and reports: "propagate.visits", "plan_reshards.plans", …
class Counters {
 public:
  void add(std::string_view name, int64_t amount);
  int64_t get(std::string_view name) const;  // 0 for an unknown name
  const std::vector<std::pair<std::string, int64_t>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, int64_t>> entries_;
};

struct Choice;             // how the program is partitioned, by ids (choice/choice.h)
struct Choices;            // as text (choice/choice_text.h)
struct MemoryPlan;         // what is computed again to save memory (choice/memory/memory_plan.h)
struct ShardUpdateReport;  // shard_update/sharded_state.h

// The inputs and outputs of passes, apart from the module.
struct PassContext {
  CompileOptions options = {};
  std::function<void()> poll = {};  // called often in long work, if it is set: it may throw what stops the compilation
  Provenance provenance = {};       // of the propagated module: who put which axis where
  Counters counters = {};
  std::vector<std::string> warnings = {};         // for the user: legal, but probably unintended; with source locations
  std::shared_ptr<Choice> choice = {};            // made by `choose`; later passes add their decisions
  std::shared_ptr<const MemoryPlan> memory = {};  // none without a limit
  std::shared_ptr<const Choices> pinned = {};     // entries that they must follow; none: the cheapest
  std::shared_ptr<const ShardUpdateReport> shard_update = {};  // made by `shard_update`
};

struct StageRange {
  Stage first = Stage::kGlobal;
  Stage last = Stage::kLocal;
};

// A program that a compilation keeps beside the last one.
enum class Snapshot : uint8_t { kNone, kGlobal, kPropagated, kResharded };

struct Pass {
  std::string_view name;
  std::string_view doc;  // one line
  Module (*run)(Module module, PassContext& context);
  // The passes that `run` runs one after another: the driver times and dumps each of them.
  std::span<const Pass> (*steps)() = nullptr;
  bool needs_runnable = false;  // the driver calls check_runnable first: every op has a kernel
  StageRange takes = {};        // the driver refuses a program at another stage
  std::optional<Stage> makes = {};
  bool checks_input = false;         // after it, a compilation checks what a text or an annotation may violate
  Snapshot keeps = Snapshot::kNone;  // the snapshot that a compilation takes after it
  bool chooses = false;              // PassContext::choice is by the ids of the program that it leaves
  OptionSet reads = 0;
  std::optional<Strategy> strategy = {};  // by which it propagates, whatever the options are

  constexpr bool propagates() const { return strategy.has_value() || makes == Stage::kPropagated; }
};

// A pass that changes a module in place and needs no context: .run = in_place<close_shardings>.
template <void (*edit)(Module&)>
Module in_place(Module module, PassContext&) {
  edit(module);
  return module;
}

}  // namespace shardwise
