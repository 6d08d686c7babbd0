// SPDX-License-Identifier: Apache-2.0
//
// Which values of a region depend on batched ones, before the region is batched: the carries of a loop have one type in
// all trips, so a carry is batched if it is in any of them.
//
//   %r:2 = while(%a = %x, %b = %w) cond {…} do { %0 = add %a, %c; return %0, %a }    %x is batched: both carries are
//
// A value is batched along some axes (ops/collectives/batch_axes.h). The answer may have more axes than necessary,
// never fewer. A value that need not be batched is broadcast.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/collectives/batch_axes.h"
#include "shardwise/ops/collectives/device_ops.h"

namespace shardwise {

class ManualAxes;

// For each match_varying (ops/collectives/varying.h), the axes along which a cotangent varies and its value does not.
struct CotangentSum {
  AxisSet set = 0;
  AxisList axes;
  MeshPtr mesh;
};
using CotangentSums = std::unordered_map<OpId, CotangentSum>;

// Whether each of several results is its operand, as those of an optimization_barrier: it varies as that one does.
bool is_pass_through(const OpView& op);

struct LoopBatching {
  std::vector<AxisSet> carries;  // the axes of its rows
  AxisSet predicate = 0;
};

class BatchDependence {
 public:
  // `known`: the axes along which a value from around differs.
  BatchDependence(const Module& module, const BatchAxes& axes, std::function<AxisSet(ValueId)> known)
      : module_(module), axes_(axes), known_(std::move(known)) {}

  // Known sums, which a cotangent does not vary along. Without them, it counts as its operands.
  void use_sums(const CotangentSums& sums) { known_sums_ = &sums; }
  // Or finds them: then values vary along the axes that JAX counts, more than they differ along.
  void find_sums(CotangentSums& sums) { found_sums_ = &sums; }

  AxisSet varies(ValueId value) const;
  AxisSet read_by(OpId op) const;    // along which its operands differ, or what its regions capture
  bool sees_devices(OpId op) const;  // it, or an op in its regions, reads other devices or asks for their number

  LoopBatching loop(OpId op);
  std::vector<AxisSet> branches(OpId op);  // of its results
  // The axes along which the values that a manual computation returns vary, among its own and those around it.
  std::vector<AxisSet> manual_results(OpId op, const ManualAxes& manual) const;

 private:
  void visit(RegionId region);
  void visit(OpId op);
  void visit_body(OpId op, RegionId body);
  void visit_manual(OpId op);
  std::vector<AxisSet> of_results(OpId op) const;
  AxisSet of_device_op(const OpView& op, const DeviceOp& device, AxisSet operand) const;
  AxisSet matched(OpId op) const;  // the result of a match_varying
  void mark(ValueId value, AxisSet set) {
    if (set != 0) varies_[value] |= set;
  }
  template <class Values>
  void mark(const Values& values, const std::vector<AxisSet>& sets) {
    for (size_t i = 0; i < values.size(); ++i) mark(values[i], sets[i]);
  }

  const Module& module_;
  const BatchAxes& axes_;
  std::function<AxisSet(ValueId)> known_;
  std::unordered_map<ValueId, AxisSet> varies_;
  AxisSet decided_ = 0;  // along which the predicates around vary: which devices run the ops
  const CotangentSums* known_sums_ = nullptr;
  CotangentSums* found_sums_ = nullptr;
};

}  // namespace shardwise
