// SPDX-License-Identifier: Apache-2.0
//
// Positions of a device along single axes, which texts compute from its number. On a mesh x=2, y=4,
// lax.axis_index("x") is
//
//   %p = stablehlo.partition_id        4 · x + y        differs along {x, y}
//   %d = divide %p, 4                  x                differs along {x}
//   %r = remainder %d, 2               x
//   %i = convert %r                    x
//
// Known positions keep what is equal along y one value.
#pragma once

#include <optional>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ops/collectives/batch_axes.h"

namespace shardwise {

struct DeviceDigit {
  size_t axis = 0;  // of BatchAxes
  int64_t scale = 1;
};

// A sum of digits times their scales: none for any other value.
struct DeviceNumber {
  std::vector<DeviceDigit> digits;
  AxisSet axes() const;
};
std::optional<DeviceNumber> device_number(const OpView& op, const BatchAxes& axes);

// Its rows along these axes, of the type of the op's result.
ValueId build_device_number(Builder& builder, const DeviceNumber& number, const BatchAxes& axes, DType dtype);

}  // namespace shardwise
