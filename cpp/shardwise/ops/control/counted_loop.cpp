// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/counted_loop.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// __int128: bounds of 64 bits may be apart by more than 63.
using Wide = __int128;

std::optional<Wide> constant_of(const Module& module, ValueId value) {
  const std::optional<Scalar> scalar = splat_value(module, value);
  if (!scalar || !is_integer(scalar->dtype) || module.type(value).ndim() != 0) return std::nullopt;
  return is_signed_integer(scalar->dtype) ? Wide{scalar->integer} : Wide{scalar->natural};
}

std::optional<OpView> defining_op(const Module& module, ValueId value, std::string_view name) {
  const OpId op = module.value(value).op;
  if (!op || module.op(op).def->name != name) return std::nullopt;
  return OpView(module, op);
}

// The place of a value among the arguments of a region, or none.
std::optional<size_t> argument_index(const Region& region, ValueId value) {
  const auto found = std::ranges::find(region.arguments, value);
  if (found == region.arguments.end()) return std::nullopt;
  return static_cast<size_t>(found - region.arguments.begin());
}

struct Condition {
  size_t counter = 0;  // the carry
  std::string_view direction;
  Wide limit = 0;
};

std::string_view mirrored(std::string_view direction) {
  if (direction == "LT") return "GT";
  if (direction == "LE") return "GE";
  if (direction == "GT") return "LT";
  if (direction == "GE") return "LE";
  return direction;
}

std::optional<Condition> read_condition(const Module& module, const Region& region) {
  const auto compare = defining_op(module, region.results[0], "stablehlo.compare");
  if (!compare) return std::nullopt;
  const std::string_view direction = compare->attrs().get<EnumAttr>("comparison_direction").value;
  for (const size_t side : {0, 1}) {
    const auto counter = argument_index(region, compare->operand(side));
    const auto limit = constant_of(module, compare->operand(1 - side));
    if (counter && limit) return Condition{*counter, side == 0 ? direction : mirrored(direction), *limit};
  }
  return std::nullopt;
}

// By how much the carry grows in a trip.
std::optional<Wide> read_step(const Module& module, const Region& body, size_t carry) {
  const ValueId next = body.results[carry], counter = body.arguments[carry];
  if (const auto add = defining_op(module, next, "stablehlo.add")) {
    if (add->operand(0) == counter) return constant_of(module, add->operand(1));
    if (add->operand(1) == counter) return constant_of(module, add->operand(0));
  }
  if (const auto subtract = defining_op(module, next, "stablehlo.subtract")) {
    const auto step = constant_of(module, subtract->operand(1));
    if (subtract->operand(0) == counter && step) return -*step;
  }
  return std::nullopt;
}

// Whether start + n * step, the value that ends the loop included, are numbers of the dtype.
bool fits(Wide value, DType dtype) {
  const int bits = static_cast<int>(item_size(dtype)) * 8;
  const Wide one = 1;
  if (is_signed_integer(dtype)) return value >= -(one << (bits - 1)) && value < (one << (bits - 1));
  return value >= 0 && value < (one << bits);
}

Wide divide_up(Wide a, Wide b) { return (a + b - 1) / b; }  // of positive numbers

}  // namespace

std::optional<int64_t> trip_count(const OpView& loop) {
  const Module& module = loop.module();
  if (loop.def().regions != Regions::kLoop) return std::nullopt;
  const auto condition = read_condition(module, module.region(loop.regions()[0]));
  if (!condition) return std::nullopt;
  const auto start = constant_of(module, loop.operand(condition->counter));
  const auto step = read_step(module, module.region(loop.regions()[1]), condition->counter);
  if (!start || !step || *step == 0) return std::nullopt;

  // As a loop that counts up while start < limit.
  const bool is_up = *step > 0;
  const std::string_view direction = condition->direction;
  if (direction != (is_up ? "LT" : "GT") && direction != (is_up ? "LE" : "GE")) return std::nullopt;
  const Wide distance = (is_up ? condition->limit - *start : *start - condition->limit) + (direction[1] == 'E' ? 1 : 0);
  const Wide trips = distance <= 0 ? 0 : divide_up(distance, is_up ? *step : -*step);
  if (trips > std::numeric_limits<int64_t>::max()) return std::nullopt;
  if (!fits(*start + trips * *step, loop.operand_type(condition->counter).dtype)) return std::nullopt;
  return static_cast<int64_t>(trips);
}

}  // namespace shardwise
