// SPDX-License-Identifier: Apache-2.0
//
// Appends batched ops, region by region: the part of append_batched that batch.cpp and batch_regions.cpp share.
//
//   batch.cpp            ops by OpDef::batch, and ops that others make up
//   batch_regions.cpp    loops and branches
#pragma once

#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/graph_copy.h"

namespace shardwise {

class BatchWalk {
 public:
  BatchWalk(Builder& builder, int64_t size)
      : builder_(&builder), module_(builder.module()), size_(size), copy_(module_, module_) {}

  void map(ValueId original, ValueId image, bool batched);
  ValueId image(ValueId original) const { return copy_(original); }
  bool is_batched(ValueId original) const;
  void run(RegionId body);  // appends its ops

 private:
  class Context;

  void visit(OpId op);
  bool depends_on_batched(OpId op) const;
  void batch(OpId op);
  bool expands(OpId op) const;
  void expand(OpId op);
  void check_no_capture(OpId op) const;

  // batch_regions.cpp
  void loop(OpId op);
  void branches(OpId op);
  void select_branch(OpId op);
  void inline_region(OpId op);
  void check_no_effect(OpId op) const;
  RegionId in_new_region(const std::function<std::vector<ValueId>()>& results);  // appends them to the region
  std::vector<ValueId> add_arguments(RegionId from, RegionId to, const std::vector<bool>& batched);
  ValueId select(ValueId predicate, ValueId if_true, ValueId if_false);
  ValueId image(ValueId original, bool batched);  // broadcast if necessary
  std::vector<ValueId> images(std::span<const ValueId> originals, const std::vector<bool>& batched);
  void map_results(OpId op, OpId made, const std::vector<bool>& batched);

  Builder* builder_;
  Module& module_;
  int64_t size_;
  GraphCopy copy_;
  std::unordered_map<ValueId, bool> batched_;  // by original value
  std::string_view masked_by_;                 // the enclosing op whose body runs although some examples do not need it
  int expanded_ = 0;                           // calls and composed ops around
};

}  // namespace shardwise
