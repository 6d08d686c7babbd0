// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/counted_loop.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/control/loop_parts.h"
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

// The carry whose argument of the body or of the condition the value is, or none.
std::optional<size_t> carry_of(const LoopParts& parts, ValueId LoopParts::Carry::* argument, ValueId value) {
  const auto found = std::ranges::find(parts.carries, value, argument);
  if (found == parts.carries.end()) return std::nullopt;
  return static_cast<size_t>(found - parts.carries.begin());
}

// The constant that a value of the loop's regions holds: also one that a carry holds in all trips.
class LoopConstants {
 public:
  LoopConstants(const Module& module, const LoopParts& parts) : module_(module), parts_(parts) {}

  std::optional<Wide> operator()(ValueId value) const {
    if (const auto scalar = constant_of(module_, value)) return scalar;
    // A condition reads the limit, a body the step.
    for (const auto argument : {&LoopParts::Carry::tested, &LoopParts::Carry::argument}) {
      const auto carry = carry_of(parts_, argument, value);
      if (carry && parts_.carries[*carry].is_invariant()) return constant_of(module_, parts_.carries[*carry].entry);
    }
    return std::nullopt;
  }

 private:
  const Module& module_;
  const LoopParts& parts_;
};

struct Condition {
  size_t counter = 0;  // the carry
  std::string_view direction;
  Wide limit = 0;
};

// `10 > i` counts as `i < 10`.
std::string_view mirrored(std::string_view direction) {
  if (direction == "LT") return "GT";
  if (direction == "LE") return "GE";
  if (direction == "GT") return "LT";
  if (direction == "GE") return "LE";
  return direction;
}

std::optional<Condition> read_condition(const Module& module, const LoopParts& parts,
                                        const LoopConstants& constant_of) {
  const auto compare = made_by(module, parts.predicate, "stablehlo.compare");
  if (!compare) return std::nullopt;
  const std::string_view direction = compare->attrs().get<EnumAttr>("comparison_direction").value;
  for (const size_t side : {0, 1}) {
    const auto counter = carry_of(parts, &LoopParts::Carry::tested, compare->operand(side));
    const auto limit = constant_of(compare->operand(1 - side));
    // A carry that never changes is no counter, but it may be the limit of one: `i < n`, where the body returns n.
    if (counter && limit && !parts.carries[*counter].is_invariant())
      return Condition{*counter, side == 0 ? direction : mirrored(direction), *limit};
  }
  return std::nullopt;
}

// By how much the carry grows in a trip.
std::optional<Wide> read_step(const Module& module, const LoopParts::Carry& carry, const LoopConstants& constant_of) {
  if (const auto add = made_by(module, carry.next, "stablehlo.add")) {
    if (add->operand(0) == carry.argument) return constant_of(add->operand(1));
    if (add->operand(1) == carry.argument) return constant_of(add->operand(0));
  }
  if (const auto subtract = made_by(module, carry.next, "stablehlo.subtract")) {
    const auto step = constant_of(subtract->operand(1));
    // Only counter - step: step - counter alternates between two values.
    if (subtract->operand(0) == carry.argument && step) return -*step;
  }
  return std::nullopt;
}

// Whether start + n * step, the value that ends the loop included, are numbers of the dtype.
bool fits(Wide value, DType dtype) {
  const int bits = bit_width(dtype);
  const Wide one = 1;
  if (is_signed_integer(dtype)) return value >= -(one << (bits - 1)) && value < (one << (bits - 1));
  return value >= 0 && value < (one << bits);
}

Wide divide_up(Wide a, Wide b) { return (a + b - 1) / b; }  // of positive numbers

bool fits_int64(Wide value) {
  return value >= std::numeric_limits<int64_t>::min() && value <= std::numeric_limits<int64_t>::max();
}

// The values of all trips are numbers of the dtype.
std::optional<LinearInteger> linear(Wide offset, Wide stride, int64_t trips, DType dtype) {
  // Strides are monotonic, so the first and the last value bound those between.
  const Wide last = offset + (trips - 1) * stride;
  const bool is_known = fits_int64(offset) && fits_int64(stride) && fits_int64(last);
  if (!is_known || !is_integer(dtype) || !fits(offset, dtype) || !fits(last, dtype)) return std::nullopt;
  return LinearInteger{static_cast<int64_t>(offset), static_cast<int64_t>(stride)};
}

std::optional<int64_t> count_trips(const Module& module, const LoopParts& parts, const LoopConstants& constant_of,
                                   size_t& counter) {
  const auto condition = read_condition(module, parts, constant_of);
  if (!condition) return std::nullopt;
  counter = condition->counter;
  const auto start = constant_of(parts.carries[counter].entry);
  const auto step = read_step(module, parts.carries[counter], constant_of);
  if (!start || !step || *step == 0) return std::nullopt;

  // As a loop that counts up while start < limit.
  const bool is_up = *step > 0;
  const std::string_view direction = condition->direction;
  // A counter that moves away from its limit goes on until it wraps around, and NE needs a step that hits the limit.
  if (direction != (is_up ? "LT" : "GT") && direction != (is_up ? "LE" : "GE")) return std::nullopt;
  // LE and GE also run the trip at the limit.
  const Wide distance = (is_up ? condition->limit - *start : *start - condition->limit) + (direction[1] == 'E' ? 1 : 0);
  const Wide trips = distance <= 0 ? 0 : divide_up(distance, is_up ? *step : -*step);
  // The comparison that ends the loop reads this value: if it wrapped around, the loop would go on.
  if (!fits_int64(trips) || !fits(*start + trips * *step, module.type(parts.carries[counter].entry).dtype))
    return std::nullopt;
  return static_cast<int64_t>(trips);
}

}  // namespace

std::optional<CountedLoop> counted_loop(const OpView& loop) {
  if (loop.def().regions != Regions::kLoop) return std::nullopt;
  const Module& module = loop.module();
  const LoopParts parts = loop_parts(loop);
  if (!parts.condition) return std::nullopt;
  const LoopConstants constant_of(module, parts);
  CountedLoop counted;
  const auto trips = count_trips(module, parts, constant_of, counted.counter);
  if (!trips) return std::nullopt;
  counted.trips = *trips;
  for (const LoopParts::Carry& carry : parts.carries) {
    counted.is_invariant.push_back(carry.is_invariant());
    const auto start = constant_of(carry.entry);
    const auto step = carry.is_invariant() ? Wide{0} : read_step(module, carry, constant_of);
    counted.inductions.push_back(start && step ? linear(*start, *step, *trips, module.type(carry.entry).dtype)
                                               : std::nullopt);
  }
  return counted;
}

std::optional<int64_t> trip_count(const OpView& loop) {
  if (const auto order = scan_order(loop)) return order->trips;
  const auto counted = counted_loop(loop);
  return counted ? std::optional(counted->trips) : std::nullopt;
}

// ---- LinearIntegers ------------------------------------------------------------------------------------------------

LinearIntegers::LinearIntegers(const OpView& loop, const CountedLoop& counted)
    : loop_(loop), body_(loop_parts(loop).body), counted_(counted) {}

std::optional<LinearInteger> LinearIntegers::evaluate(ValueId value, int depth) {
  // The recursion is as deep as the chain of scalars, which a text may make arbitrarily long.
  constexpr int kMaxDepth = 32;
  if (depth > kMaxDepth || loop_.module().type(value).ndim() != 0) return std::nullopt;
  if (const auto found = known_.find(value); found != known_.end()) return found->second;
  const auto result = compute(value, depth + 1);
  known_[value] = result;
  return result;
}

std::optional<LinearInteger> LinearIntegers::compute(ValueId value, int depth) {
  const Module& module = loop_.module();
  const DType dtype = module.type(value).dtype;
  if (const Value& known = module.value(value); !known.op && known.region == body_) {
    return counted_.inductions[known.index];
  }
  if (const auto constant = constant_of(module, value)) return linear(*constant, 0, counted_.trips, dtype);
  if (!module.value(value).op) return std::nullopt;
  const OpView op(module, module.value(value).op);
  const std::string_view name = op.name();
  if (name == "stablehlo.select") return compute_select(op, depth);
  if (name == "stablehlo.convert" || name == "stablehlo.reshape") {
    // `linear` rejects a conversion to a dtype that cannot hold all the values.
    const auto operand = evaluate(op.operand(0), depth);
    return operand ? linear(operand->offset, operand->stride, counted_.trips, dtype) : std::nullopt;
  }
  const bool is_sum = name == "stablehlo.add" || name == "stablehlo.subtract";
  if (!is_sum && name != "stablehlo.multiply") return std::nullopt;
  const auto a = evaluate(op.operand(0), depth), b = evaluate(op.operand(1), depth);
  // (a + b·t) · (c + d·t) is linear only if b or d is 0.
  if (!a || !b || (!is_sum && a->stride != 0 && b->stride != 0)) return std::nullopt;
  if (!is_sum) {
    return linear(Wide{a->offset} * b->offset, Wide{a->offset} * b->stride + Wide{a->stride} * b->offset,
                  counted_.trips, dtype);
  }
  const Wide sign = name == "stablehlo.add" ? 1 : -1;
  return linear(a->offset + sign * b->offset, a->stride + sign * b->stride, counted_.trips, dtype);
}

// The side that is chosen in all trips, if the predicate compares linear integers and never changes.
std::optional<LinearInteger> LinearIntegers::compute_select(const OpView& select, int depth) {
  const auto compare = made_by(loop_.module(), select.operand(0), "stablehlo.compare");
  if (!compare) return std::nullopt;
  const auto a = evaluate(compare->operand(0), depth), b = evaluate(compare->operand(1), depth);
  if (!a || !b) return std::nullopt;
  const std::string_view direction = compare->attrs().get<EnumAttr>("comparison_direction").value;
  const auto holds = [&](int64_t trip) -> std::optional<bool> {
    const Wide difference = Wide{a->offset} - b->offset + trip * (Wide{a->stride} - b->stride);
    if (direction == "LT") return difference < 0;
    if (direction == "LE") return difference <= 0;
    if (direction == "GT") return difference > 0;
    if (direction == "GE") return difference >= 0;
    return std::nullopt;
  };
  // The difference is linear in the trip, so an answer that the first and the last trip share holds between them.
  const auto first = holds(0), last = holds(counted_.trips - 1);
  if (!first || first != last) return std::nullopt;
  return evaluate(select.operand(*first ? 1 : 2), depth);
}

}  // namespace shardwise
