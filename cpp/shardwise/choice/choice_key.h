// SPDX-License-Identifier: Apache-2.0
//
// Names of ops, and the fingerprint of a program, that are the same for each size of its mesh:
//
//   OpKeys keys(module, calls);
//   keys.of(op).text()        // "12.1": the second op of the legalized program that was made for op 12 of the traced one
//   keys.fingerprint()        // of ops and what they read, attributes without sizes, ranks, dtypes and names of axes
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "shardwise/base/text.h"
#include "shardwise/choice/choice.h"
#include "shardwise/ops/control/call_graph.h"

namespace shardwise {

class OpKeys {
 public:
  OpKeys(const Module& module, const CallGraph& calls);
  const OpKey& of(OpId op) const { return keys_[op.index]; }
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  void add(const OpView& op);
  uint64_t of_attrs(AttrsId attrs);
  uint32_t number_of(ValueId value);

  const Module& module_;
  std::vector<OpKey> keys_;
  std::unordered_map<OpId, uint32_t> counts_;  // by origin
  std::unordered_map<AttrsId, uint64_t> attr_hashes_;
  std::vector<uint32_t> numbers_;  // by value; 0: not met yet
  uint32_t values_ = 0;
  uint64_t fingerprint_ = 0;
};

std::string fingerprint_text(uint64_t fingerprint);  // 16 hexadecimal digits

// Numbers decisions about one thing in the order in which they are taken: "12", "12.1", …
class DecisionKeys {
 public:
  std::string next(const std::string& about) {
    const int count = counts_[about]++;
    return count == 0 ? about : str(about, ".", count);
  }
  std::string next(OpId origin) { return next(str(origin.index)); }

 private:
  std::unordered_map<std::string, int> counts_;
};

}  // namespace shardwise
