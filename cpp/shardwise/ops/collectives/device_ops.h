// SPDX-License-Identifier: Apache-2.0
//
// StableHLO's collectives and device numbers as ops on the rows of all devices (batch_axes.h):
//
//   manual axes x=2, y=4; %0 differs along {x, y}         %rows: tensor<8x16xf32>
//   "stablehlo.all_reduce"(%0) over x                     reshape %rows to 2x4x16; reduce dim 0: tensor<4x16xf32>
//   "stablehlo.all_gather"(%0) over y, all_gather_dim 0   reshape, transpose to 2x(4x16): tensor<2x64xf32>
//   "stablehlo.collective_permute"(%0), a ring along y    reshape to 2x4x16; concatenate(slice, slice) along dim 1
//   stablehlo.partition_id                                iota: tensor<8xui32>
//   "shardwise.axis_index"() <{axes = {"y"}, …}>          iota: tensor<4xi32>
//
// The results of the first two are equal along the axes of their groups, so they lose them. The partitioner finds the
// collectives again: a reduction over a sharded dim is an all_reduce.
#pragma once

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/collectives/batch_axes.h"

namespace shardwise {

// What a transform offers to such an op.
class RowContext {
 public:
  virtual ~RowContext() = default;
  virtual OpView op() const = 0;
  virtual Builder& builder() = 0;
  virtual const BatchAxes& axes() const = 0;
  virtual AxisSet varies(size_t operand) const = 0;    // along which operand i differs
  virtual ValueId operand(size_t i, AxisSet set) = 0;  // with rows along these axes, a superset
  virtual void set_result(size_t i, ValueId rows, AxisSet set) = 0;
};

struct DeviceOp {
  std::string_view name;
  // Along which a result differs whose operand differs along `operand`.
  AxisSet (*varies)(const OpView& op, const BatchAxes& axes, AxisSet operand);
  void (*expand)(RowContext& context);
  // Along which JAX counts the result as different, where that is more: that of an all_gather, which is equal. Null: the
  // same.
  AxisSet (*counts_as_varying)(const OpView& op, const BatchAxes& axes, AxisSet operand) = nullptr;
};

// OpDef::decompose and OpDef::verify_runnable outside of manual computations, where a program has one device.
void decompose_on_one_device(DecomposeContext& context);
void verify_on_one_device(const OpView& op);

// Null for an op that uses only values of its own device.
const DeviceOp* find_device_op(const OpDef& def);
// Null as well for an op of other axes: in a vmap, those of the mesh or of a vmap around.
const DeviceOp* find_device_op(const OpView& op, const BatchAxes& axes);

}  // namespace shardwise
