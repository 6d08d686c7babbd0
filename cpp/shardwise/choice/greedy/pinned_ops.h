// SPDX-License-Identifier: Apache-2.0
//
// The ops of pinned choices (choice_text.h): finds the candidate that an entry describes.
//
//   ops["12"]   operands [{"data"}, {}], [{}, {}]   results [{"data"}, {}]      the candidate with these placements
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/choice/candidates/candidate.h"
#include "shardwise/choice/choice_in_progress.h"

namespace shardwise {

class PinnedOps {
 public:
  PinnedOps(const Module& module, ProgramPlacements& placements, ChoiceInProgress& choice)
      : module_(module), placements_(placements), choice_(choice) {}

  const ChosenOp* entry(OpId op) { return choice_.pinned(op); }  // null: none
  // Among these, or else among all that the pinned placements suggest; nothing if the op cannot be computed like that.
  // `homes`: where the operands are.
  std::optional<OpChoice> find(const OpView& op, const ShardingRule& rule, const ChosenOp& entry,
                               std::span<const Candidate> candidates, const std::vector<PlacementId>& homes,
                               const Pending& pending);
  // Throws ShardingError: the entry is impossible, and the op would be computed like `best`.
  [[noreturn]] void fail(const OpView& op, const ChosenOp& entry, const OpChoice& best) const;

 private:
  std::optional<TensorSharding> sharding_of_text(std::string_view text) const;
  ChosenOp as_printed(ChosenOp entry) const;
  std::optional<PlacementId> placement_of(const std::string& text, TypeId type) const;
  std::optional<std::vector<PlacementId>> placements_of(const OpView& op, const ChosenOp& pinned) const;
  ChosenOp described(const OpView& op, const OpChoice& choice) const { return choice_.described(op.id(), choice); }

  const Module& module_;
  ProgramPlacements& placements_;
  ChoiceInProgress& choice_;
};

}  // namespace shardwise
