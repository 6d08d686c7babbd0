// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/collectives/device_numbers.h"

#include <algorithm>

#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// The digits of the logical index of a device, which is its number on a mesh without ids.
std::optional<DeviceNumber> partition_number(const BatchAxes& axes) {
  if (axes.mesh() == nullptr || !axes.mesh()->device_ids().empty()) return std::nullopt;
  if (axes.rows(axes.all()) != axes.mesh()->device_count()) return std::nullopt;  // some axes are free
  DeviceNumber number;
  for (size_t axis = 0; axis < axes.count(); ++axis) number.digits.push_back({axis, axes.stride_in_mesh(axis)});
  return number;
}

// Digits below `border` add up to less than it, and the others are multiples of it: none where one is neither.
bool splits_at(const DeviceNumber& number, const BatchAxes& axes, int64_t border) {
  return std::ranges::all_of(number.digits, [&](const DeviceDigit& digit) {
    return digit.scale % border == 0 || border % (digit.scale * axes.size(digit.axis)) == 0;
  });
}

std::optional<int64_t> divisor_of(const OpView& op) {
  if (op.operand_count() != 2 || !is_integer(op.result_type().dtype)) return std::nullopt;
  const std::optional<Scalar> value = splat_value(op.module(), op.operand(1));
  if (!value) return std::nullopt;
  const int64_t divisor = is_unsigned_integer(value->dtype) ? static_cast<int64_t>(value->natural) : value->integer;
  return divisor > 0 ? std::optional(divisor) : std::nullopt;
}

std::optional<DeviceNumber> operand_number(const OpView& op, const BatchAxes& axes) {
  const OpId maker = op.module().value(op.operand(0)).op;
  return maker ? device_number(OpView(op.module(), maker), axes) : std::nullopt;
}

}  // namespace

AxisSet DeviceNumber::axes() const {
  AxisSet set = 0;
  for (const DeviceDigit& digit : digits) set |= AxisSet{1} << digit.axis;
  return set;
}

std::optional<DeviceNumber> device_number(const OpView& op, const BatchAxes& axes) {
  if (op.name() == "stablehlo.partition_id") return partition_number(axes);
  const bool divides = op.name() == "stablehlo.divide", keeps_rest = op.name() == "stablehlo.remainder";
  if (op.name() == "stablehlo.convert") {
    const DType from = op.operand_type(0).dtype, to = op.result_type().dtype;
    return is_integer(from) && is_integer(to) && bit_width(to) >= 32 ? operand_number(op, axes) : std::nullopt;
  }
  if (!divides && !keeps_rest) return std::nullopt;
  const std::optional<int64_t> divisor = divisor_of(op);
  std::optional<DeviceNumber> number = divisor ? operand_number(op, axes) : std::nullopt;
  if (!number || !splits_at(*number, axes, *divisor)) return std::nullopt;
  const auto is_multiple = [&](const DeviceDigit& digit) { return digit.scale % *divisor == 0; };
  std::erase_if(number->digits, [&](const DeviceDigit& digit) { return is_multiple(digit) != divides; });
  if (divides) {
    for (DeviceDigit& digit : number->digits) digit.scale /= *divisor;
  }
  return number;
}

ValueId build_device_number(Builder& builder, const DeviceNumber& number, const BatchAxes& axes, DType dtype) {
  const AxisSet set = number.axes();
  const Dims sizes = axes.sizes(set);
  if (set == 0) return build_zeros(builder, {dtype, {}});
  ValueId sum;
  for (const DeviceDigit& digit : number.digits) {
    const std::vector<size_t> known = axes.members(set);
    const int64_t dim = std::ranges::find(known, digit.axis) - known.begin();
    ValueId part = build_iota(builder, dtype, sizes, dim);
    if (digit.scale != 1) {
      part = builder.create("stablehlo.multiply", {part, build_splat(builder, sizes, scalar_of(dtype, digit.scale))});
    }
    sum = sum ? builder.create("stablehlo.add", {sum, part}) : part;
  }
  return build_reshape(builder, sum, Dims{axes.rows(set)});
}

}  // namespace shardwise
