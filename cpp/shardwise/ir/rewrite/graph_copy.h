// SPDX-License-Identifier: Apache-2.0
//
// Copies ops, with their regions, into a module that shares the context:
//
//   GraphCopy copy(from, to);
//   copy.map(argument, new_argument);
//   copy.ops(from.main().body, body);        // every op of the region, appended to `body`
//   copy(result)                             // its image
//
// Locations, origins, shardings and parts are copied. Within one module, a value without an image is its own image, so
// a body may use values from around it.
#pragma once

#include <unordered_map>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

class GraphCopy {
 public:
  GraphCopy(const Module& from, Module& to) : from_(&from), to_(&to) {}

  void map(ValueId from, ValueId to) { values_[from] = to; }
  ValueId operator()(ValueId from) const;

  OpId op(OpId from, RegionId into);  // maps its results
  // Uses these operands of `to` in place of the images; its results are not mapped.
  OpId op(OpId from, RegionId into, std::span<const ValueId> operands);
  std::vector<OpId> ops(RegionId from, RegionId into);  // all ops of a region; the results of `into` stay as they are
  RegionId region(RegionId from);                       // a new region with arguments, ops and results
  // A function of the same name in `to`, with its result shardings.
  Function& function(const Function& from);

 private:
  void columns(ValueId from, ValueId to);

  const Module* from_;
  Module* to_;
  std::unordered_map<ValueId, ValueId> values_;
};

// A module of the same name, with the same meshes and a main without arguments and ops, into which a stage is written.
Module empty_copy(const Module& source);

}  // namespace shardwise
