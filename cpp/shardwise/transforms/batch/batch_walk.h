// SPDX-License-Identifier: Apache-2.0
//
// Appends batched ops, region by region: the part of append_batched and append_manual_region that these files share.
//
//   batch.cpp            ops by OpDef::batch, and ops that others make up
//   batch_regions.cpp    loops and branches
//   batch_manual.cpp     manual computations, and ops that see other devices
//
// Each value has rows along the axes on which it differs (ops/collectives/batch_axes.h). vmap has one axis, the
// examples; an op whose operands differ along no axis is copied.
#pragma once

#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ops/collectives/batch_axes.h"
#include "shardwise/transforms/batch/batch_dependence.h"

namespace shardwise {

// The sharding of rows whose other dims are given: each device has its own row, and the value is replicated along the
// axes that are not in the set. On a mesh x=2, y=4, both manual:
//
//   rows along {x}: tensor<2x8xf32>        [{"x"}, {?}], replicated={"y"}
TensorSharding row_sharding(const BatchAxes& axes, AxisSet set, std::vector<DimSharding> dims);
// The value with that sharding; the other dims are open. Examples have none.
ValueId constrain_rows(Builder& builder, const BatchAxes& axes, ValueId value, AxisSet set);

class BatchWalk {
 public:
  BatchWalk(Builder& builder, BatchAxes axes)
      : builder_(&builder), module_(builder.module()), axes_(std::move(axes)), copy_(module_, module_) {}

  void map(ValueId original, ValueId image, AxisSet set);
  ValueId image(ValueId original) const { return copy_(original); }
  ValueId image(ValueId original, AxisSet set);  // its rows are repeated if necessary
  AxisSet varies(ValueId original) const;        // the axes along which it differs
  void run(RegionId body);                       // appends its ops
  void visit(OpId op);

 private:
  class Context;
  class DeviceContext;

  BatchDependence dependence() const;
  void visit_located(OpId op);
  void batch(OpId op);
  void pass_through(OpId op);
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
  std::vector<ValueId> add_arguments(RegionId from, RegionId to, const std::vector<AxisSet>& sets);
  ValueId align(ValueId value, AxisSet from, AxisSet to);
  std::vector<ValueId> images(std::span<const ValueId> originals, const std::vector<AxisSet>& sets);
  void map_results(OpId op, OpId made, const std::vector<AxisSet>& sets);

  // batch_manual.cpp
  void manual_region(OpId op);
  void device_op(OpId op);
  bool number_of_device(OpId op);  // false: it is none

  Builder* builder_;
  Module& module_;
  BatchAxes axes_;
  GraphCopy copy_;
  std::unordered_map<ValueId, AxisSet> varies_;  // by original value; none: the empty set
  std::string_view masked_by_;  // the enclosing op whose body runs although some examples do not need it
  int expanded_ = 0;            // calls and composed ops around
};

}  // namespace shardwise
