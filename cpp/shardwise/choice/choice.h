// SPDX-License-Identifier: Apache-2.0
//
// How a program is partitioned, as data by ids. `choose` makes it and leaves the module as it is; `assign` writes it down:
//
//   %0 = dot_general %x, %w     ops[dot_general]   operands <[{"data"}, {}]>, <[{}, {}]>   results <[{"data"}, {}]>
//                               versions           %w as <[{}, {}]> in main, from <[{}, {"model"}]>
//
// Its public text is `Choices` (choice_text.h).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shardwise/choice/op_work.h"
#include "shardwise/cost/hardware.h"
#include "shardwise/cost/price.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/pass.h"

namespace shardwise {

// How an op is computed: the placements of its tensors, and the method.
struct OpChoice {
  const Method* method = nullptr;  // instead of the rule
  std::vector<PlacementId> operands, results;
  bool method_reduces = false;  // the results are unreduced by the method, not by a reduction of the op

  // The op is not computed by its rule. A method without a partition only places it differently.
  bool has_own_partition() const { return method != nullptr && method->partition != nullptr; }
  friend bool operator==(const OpChoice&, const OpChoice&) = default;
};

// The name of an op for choices that outlive a compilation: the op of the traced module that it was made for, and how
// many ops of the legalized program that were made for the same one come before it.
struct OpKey {
  OpId origin;
  uint32_t ordinal = 0;
  std::string text() const;  // "12", "12.1"
  friend bool operator==(const OpKey&, const OpKey&) = default;
};

// A value in a placement, in a region: that of the value, or one inside it where a user needs it.
struct VersionKey {
  ValueId value;
  PlacementId placement;
  RegionId region;
  friend bool operator==(const VersionKey&, const VersionKey&) = default;
};

struct VersionChoice {
  enum Kind : uint8_t {
    kReshard,  // from another version
    kAgain,    // the op that made the value is computed again (computed_again.h)
    kMade,     // a constant that is made in this placement
  };
  Kind kind = kReshard;
  PlacementId from;  // of kReshard
};

struct CarryChoice {
  bool accumulates = false;  // the body only adds to it; its entry is brought to its place after the body
  ValueId addend;            // the reason why it stays unreduced; none: it is reduced in each trip
};

// Decisions that could have gone another way, as text: what pins name.
struct ChosenText {
  std::string at;
  std::string chosen;
  friend bool operator==(const ChosenText&, const ChosenText&) = default;
};
struct ChosenPlan {
  std::string at;
  std::vector<std::string> moves;
  friend bool operator==(const ChosenPlan&, const ChosenPlan&) = default;
};

struct Choice {
  struct HashOfKey {
    size_t operator()(const VersionKey& key) const;
  };
  struct NextBest {
    OpChoice way;
    bool is_by_time = false;  // what was compared: times or bytes
  };
  // An op that is chosen one by one, for the text.
  struct NamedOp {
    OpId op;
    OpKey key;
    std::string_view name;
    LocId loc;
  };

  // By OpId: every op of the program but constants, which are made where they are used.
  std::vector<OpChoice> ops;
  std::unordered_map<VersionKey, VersionChoice, HashOfKey> versions;  // all but the home of a value
  std::unordered_map<OpId, std::vector<CarryChoice>> loops;           // by loop, of each carry
  std::vector<ChosenPlan> plans;                                      // of reshards
  std::vector<ChosenText> exchanges;                                  // what became of those that could be replaced
  bool is_state_last = false;                                         // propagation took state last (CompileOptions)
  std::vector<size_t>
      whole_arguments;  // arguments of main that propagation split and the choice made whole (free_arguments.h)
  struct PlacedResult {
    size_t place;
    ShardingId sharding;
  };
  std::vector<PlacedResult>
      placed_results;  // results of main that are not where propagation put them (candidates/free_results.h)

  bool is_written = false;   // assign has used it
  MeshPtr mesh;              // of the program
  HardwarePtr hardware;      // that prices are of
  Price price;               // of all of it (choice_prices.h)
  Price at_loops;            // the part of it that transfers of loop carries and loop results take
  std::vector<OpWork> work;  // of ops that compute something
  uint64_t fingerprint = 0;  // of the program (choice_key.h)
  std::vector<NamedOp> named_ops;
  std::vector<ChosenText> sources, carries;
  std::unordered_map<OpId, std::vector<OpChoice>> ways;  // of ops that Choices::asked names, the best of the walk first
  // Why an op is computed as it is (choice_reasons.h): the best other way, if it costs more; or a pin.
  std::unordered_map<OpId, NextBest> next_best;
  std::unordered_set<OpId> pinned;
};

// Returns the choice of this compilation. The first pass that decides something creates it.
Choice& choice_of(PassContext& context);

}  // namespace shardwise
