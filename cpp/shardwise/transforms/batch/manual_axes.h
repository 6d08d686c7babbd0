// SPDX-License-Identifier: Apache-2.0
//
// The axes of a manual computation, cut where its shardings or the groups of its collectives cut them, and along which its
// values are split:
//
//   sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x":(1)2}]>] manual_axes={"x", "y"}    axes x:(1)2, x:(2)2, y
#pragma once

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/collectives/batch_axes.h"

namespace shardwise {

class ManualAxes {
 public:
  ManualAxes(const OpView& op, const BatchAxes& around);

  const BatchAxes& axes() const { return axes_; }
  AxisSet around() const { return around_; }
  const TensorSharding& sharding(ValueId value) const {
    return op_.module().context().sharding(op_.module().value(value).sharding);
  }
  AxisSet of_dim(const DimSharding& dim) const;
  AxisSet of(const TensorSharding& sharding) const;  // along which it cuts a value
  TensorSharding inside(const TensorSharding& sharding) const;
  void refuse_unreduced() const;  // throws UnsupportedError

 private:
  OpView op_;
  AxisSet around_;
  AxisList manual_;
  BatchAxes axes_;
};

}  // namespace shardwise
