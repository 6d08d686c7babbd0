// SPDX-License-Identifier: Apache-2.0
//
// How a program is partitioned, as text without sizes: read from one compilation, pinned in another, also on a mesh whose
// axes have other sizes.
//
//   ops         stablehlo.dot_general   [{"x"}, {}]  [{}, {"y"}]  ->  [{"x"}, {"y"}]
//               stablehlo.slice         by exchange: [{"x"}]      ->  [{"x"}]
//   sources     [{"x"}]                 a value that is there in several shardings is resharded from this one
//   carries     [{}], unreduced={"x"}   of an accumulator in a loop
//   plans       {all_gather}, {}, {reduce_scatter, exchange}
//   exchanges   merged, kept, joined
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {

struct ChosenOp {
  std::string op;
  std::string method;  // "" by the rule
  std::vector<std::string> operands, results;
  friend bool operator==(const ChosenOp&, const ChosenOp&) = default;
};

struct Choices {
  std::vector<ChosenOp> ops;                    // those that `assign` chooses alone, in its order
  std::vector<std::vector<std::string>> plans;  // of reshards, in program order
  std::vector<std::string> sources;             // of values that `assign` could bring from several shardings
  std::vector<std::string> carries;             // of accumulators; "" if they are reduced in each trip
  std::vector<std::string> exchanges;           // what became of those that `optimize_collectives` could replace
};

// All choices of one kind are made. Throws ShardingError if more are pinned.
template <class Choice>
void check_all_made(std::string_view kind, const std::vector<Choice>& made, const std::vector<Choice>* pinned) {
  if (pinned == nullptr || pinned->size() == made.size()) return;
  fail<ShardingError>("jit", "choices must be of this program",
                      str("choices of ", pinned->size(), " ", kind, " where it has ", made.size()),
                      "compile without choices");
}

// The choices of one kind while a pass makes them: each is the best one, or the next one that is pinned.
//
//   ChoicesInProgress carries("carries", context.choices.carries, pinned);
//   carries.next([&] { return best; })      // the text that is pinned, or else the best one
//   carries.check_all_made()
class ChoicesInProgress {
 public:
  // `pinned` may be null.
  ChoicesInProgress(std::string_view kind, std::vector<std::string>& made, const std::vector<std::string>* pinned)
      : kind_(kind), made_(made), pinned_(pinned) {
    made_.clear();
  }

  bool is_pinned() const { return pinned_ != nullptr; }
  template <class Best>
  const std::string& next(Best&& best) {
    if (pinned_ != nullptr && made_.size() >= pinned_->size()) {
      fail<ShardingError>("jit", "choices must be of this program", str("choices of ", made_.size(), " ", kind_),
                          "compile without choices");
    }
    return made_.emplace_back(pinned_ == nullptr ? std::string(best()) : (*pinned_)[made_.size()]);
  }
  [[noreturn]] void fail_as_impossible() const {
    fail<ShardingError>("jit", "choices must be possible for the program on this mesh",
                        str(kind_, " ", made_.size() - 1, ": ", made_.back()), "compile without choices");
  }
  void check_all_made() const { shardwise::check_all_made(kind_, made_, pinned_); }

 private:
  std::string_view kind_;
  std::vector<std::string>& made_;
  const std::vector<std::string>* pinned_;
};

}  // namespace shardwise
