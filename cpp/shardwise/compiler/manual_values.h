// SPDX-License-Identifier: Apache-2.0
//
// The values of manual regions, as the user wrote them. The propagated program has no regions: a value has a leading
// dim with a row for each device on which it differs (transforms/batch/manual_regions.h).
//
//   f = sw.shard_map(lambda x: np.sin(x), in_specs=P("x"), …)      # train.py:7, on a mesh x=2
//
//   ManualValues(&traced).find(propagated, %2: sine of tensor<2x4xf32>)   ->  tensor<4xf32>, axes "x", differs
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

struct ManualValue {
  std::vector<std::string> axes;  // of the regions around it
  std::string type;               // on each device
  std::string location;           // of the innermost region
  bool differs = false;           // between the devices of the region: then dim 0 has their rows
};

class ManualValues {
 public:
  // `traced`: before its regions are expanded; null for a program that keeps them.
  explicit ManualValues(const Module* traced);

  // None for a value that no op of a region has become.
  std::optional<ManualValue> find(const Module& propagated, ValueId value) const;

 private:
  std::vector<std::string> axes_around(OpId op) const;

  const Module* traced_;
  std::unordered_map<uint32_t, std::vector<OpId>> ops_;  // of manual regions, by location
};

}  // namespace shardwise
