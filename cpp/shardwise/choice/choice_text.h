// SPDX-License-Identifier: Apache-2.0
//
// A Choice as text: read from one compilation, kept, and pinned in another, also on a mesh whose axes have other sizes.
//
//   ops         12    stablehlo.dot_general   [{"x"}, {}]  [{}, {"y"}]  ->  [{"x"}, {"y"}]
//               14    stablehlo.slice         by exchange: [{"x"}]      ->  [{"x"}]
//   sources     20 -> [{}]    [{"x"}]                  a value that is there in several placements is resharded from this one
//   carries     31            [{}], unreduced={"x"}    of an accumulator in a loop
//   plans       12            {all_gather}             of a reshard
//   exchanges   14            merged
//               of 20         joined                   all exchanges of value 20
//
// Entries are keyed by what they are about in the traced program (choice_key.h), and values by their number there. What
// has no entry is chosen freely.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/choice/choice.h"

namespace shardwise {

inline constexpr std::string_view kStateLast = "state last";

struct ChosenOp {
  std::string at;
  std::string op;
  std::string method;  // "" by the rule
  std::vector<std::string> operands, results;
  friend bool operator==(const ChosenOp&, const ChosenOp&) = default;
};

struct Choices {
  std::string program;                  // its fingerprint
  std::string propagation = {};         // "state last", or "" for the usual order
  std::vector<ChosenOp> ops;            // those that are chosen one by one
  std::vector<ChosenPlan> plans;        // of reshards
  std::vector<ChosenText> sources;      // of values that could be brought from several placements
  std::vector<ChosenText> carries;      // of accumulators; "" if they are reduced in each trip
  std::vector<ChosenText> exchanges;    // what became of those that `optimize_collectives` could replace
  std::vector<std::string> asked = {};  // ops whose ways are to be listed (ways_of)
};

Choices choices_of(const Choice& choice, const Context& context);
// The ways to compute the ops that were asked about, the best of a walk first.
std::vector<ChosenOp> ways_of(const Choice& choice, const Context& context);

// How an op is computed on the meshes of the choice, as text.
ChosenOp described(const Choice& choice, const Context& context, const OpKey& key, std::string_view name,
                   const OpChoice& op);

std::string choice_text(const ChosenOp& choice);  // for messages

std::string entry_text(std::string_view kind, std::string_view at);  // choices.plans['12']

// Pinned entries of one kind while a pass follows them. Of several with one key, the first counts.
template <class Entry>
class PinnedEntries {
 public:
  PinnedEntries(std::string_view kind, const std::vector<Entry>* pinned) : kind_(kind), pinned_(pinned) {
    for (size_t i = 0; pinned != nullptr && i < pinned->size(); ++i) left_.emplace((*pinned)[i].at, i);
  }

  const Entry* take(const std::string& at) {  // null: free
    const auto found = left_.find(at);
    if (found == left_.end()) return nullptr;
    const Entry* entry = &(*pinned_)[found->second];
    left_.erase(found);
    return entry;
  }
  bool is_empty() const { return left_.empty(); }

  // Throws ShardingError if an entry was never asked for.
  void check_all_taken() const {
    if (left_.empty()) return;
    fail<ShardingError>("jit", "choices must be of this program",
                        str("an entry for what it does not choose, ", entry_text(kind_, left_.begin()->first)),
                        "remove the entry");
  }

 private:
  std::string_view kind_;
  const std::vector<Entry>* pinned_;  // may be null
  std::map<std::string, size_t> left_;
};

// The entries of a list of the pinned choices.
template <class Entry>
PinnedEntries<Entry> pinned_entries(std::string_view kind, std::vector<Entry> Choices::* list,
                                    const PassContext& context) {
  return {kind, context.pinned == nullptr ? nullptr : &((*context.pinned).*list)};
}

// An entry that cannot be followed, at the op that it is about.
struct ImpossibleEntry {
  std::string_view kind;  // "plans"
  std::string at;
  std::string pinned;
  std::string possible;  // what the partitioner would choose
};
[[noreturn]] void fail_as_impossible(const Module& module, OpId op, const ImpossibleEntry& entry);

}  // namespace shardwise
