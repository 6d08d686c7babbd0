// SPDX-License-Identifier: Apache-2.0
//
// A Choice while `choose` makes it: each decision is the best one, or the one that is pinned.
//
//   ChoiceInProgress choice(module, keys, placements, hardware, context);
//   if (const ChosenOp* pinned = choice.pinned(op)) …          // the op is to be computed like that
//   choice.add(op, best);
//   choice.carry(result, [&] { return best; })                 // the text that is pinned, or else the best one
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "shardwise/choice/choice.h"
#include "shardwise/choice/choice_key.h"
#include "shardwise/choice/choice_text.h"
#include "shardwise/choice/program_placements.h"

namespace shardwise {

class ChoiceInProgress {
 public:
  // Throws ShardingError if the choices of another program are pinned.
  ChoiceInProgress(const Module& module, const OpKeys& keys, ProgramPlacements& placements, HardwarePtr hardware,
                   PassContext& context);

  // The entry that is pinned for an op; null: none.
  const ChosenOp* pinned(OpId op) {
    const ChosenOp* entry = ops_.is_empty() ? nullptr : ops_.take(keys_.of(op).text());
    if (entry != nullptr) choice_.pinned.insert(op);
    return entry;
  }
  const OpKey& key(OpId op) const { return keys_.of(op); }

  void add(OpId op, OpChoice choice) { choice_.ops[op.index] = std::move(choice); }
  // Null: none yet, or the op has no choice.
  const OpChoice* chosen(OpId op) const {
    const OpChoice& found = choice_.ops[op.index];
    return found.results.empty() ? nullptr : &found;
  }
  void add_name(OpId op);  // of an op that is chosen alone: pins may name it
  std::vector<CarryChoice>& loop(OpId id) { return choice_.loops[id]; }
  ChosenOp described(OpId op, const OpChoice& choice) const {
    return shardwise::described(choice_, module_.context(), keys_.of(op), OpView(module_, op).name(), choice);
  }
  // Whether the ways to compute an op are to be listed.
  bool is_asked(OpId op) const { return !asked_.empty() && asked_.contains(keys_.of(op).text()); }
  void add_ways(OpId op, std::vector<OpChoice> ways) { choice_.ways[op] = std::move(ways); }
  void add_next_best(OpId op, Choice::NextBest next) { choice_.next_best[op] = std::move(next); }
  void add_version(const VersionKey& key, const VersionChoice& version) { choice_.versions.emplace(key, version); }

  // Where a value is brought from to a placement, and the placement of a carry with this result, as text. The entry has
  // its key.
  template <class Best>
  const ChosenText& source(ValueId value, PlacementId need, Best&& best) {
    const std::string about = str(module_.value(value).origin.index, " -> ", placements_.text(need));
    return decided(sources_, choice_.sources, decisions_.next(about), best);
  }
  template <class Best>
  const ChosenText& carry(ValueId result, Best&& best) {
    return decided(carries_, choice_.carries, decisions_.next(str(module_.value(result).origin.index)), best);
  }

  // Throws ShardingError if a pinned entry names nothing that was chosen.
  void check_pins() const;

 private:
  template <class Best>
  static const ChosenText& decided(PinnedEntries<ChosenText>& pinned, std::vector<ChosenText>& made, std::string at,
                                   Best&& best) {
    const ChosenText* entry = pinned.take(at);
    made.push_back({std::move(at), entry == nullptr ? std::string(best()) : entry->chosen});
    return made.back();
  }

  const Module& module_;
  ProgramPlacements& placements_;
  Choice& choice_;
  const OpKeys& keys_;
  PinnedEntries<ChosenOp> ops_;
  PinnedEntries<ChosenText> sources_, carries_;
  std::set<std::string> asked_;
  DecisionKeys decisions_;  // about one value: again where another region needs it
};

}  // namespace shardwise
