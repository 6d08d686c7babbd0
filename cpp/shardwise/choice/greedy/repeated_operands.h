// SPDX-License-Identifier: Apache-2.0
//
// Operands of one op that are the same value:
//
//   multiply %x, %x        the version that operand 0 needs serves operand 1, if both need %x in one placement
//
// A concatenate may have thousands of operands: it takes n log n to find them, and constant time to ask about one.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "shardwise/choice/choice.h"
#include "shardwise/ir/module.h"

namespace shardwise {

// It keeps its storage from op to op.
class RepeatedOperands {
 public:
  void find(const OpView& op) {
    earlier_.resize(op.operand_count());
    std::iota(earlier_.begin(), earlier_.end(), size_t{0});
    sorted_ = earlier_;
    std::ranges::stable_sort(sorted_, {}, [&](size_t i) { return op.operand(i).index; });
    for (size_t k = 1; k < sorted_.size(); ++k) {
      if (op.operand(sorted_[k]) == op.operand(sorted_[k - 1])) earlier_[sorted_[k]] = sorted_[k - 1];
    }
  }

  // Whether an operand before this one is the same value in the same placement.
  bool is_brought_before(const OpChoice& choice, size_t operand) const {
    for (size_t i = operand; earlier_[i] != i;) {
      i = earlier_[i];
      if (choice.operands[i] == choice.operands[operand]) return true;
    }
    return false;
  }

 private:
  std::vector<size_t> earlier_;  // by operand: the last one before it that is the same value; itself for the first
  std::vector<size_t> sorted_;   // operands, by value
};

}  // namespace shardwise
