// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/counted_loop.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"
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

// The constant that a value of the loop's regions holds: also one that a carry holds in all trips.
class LoopConstants {
 public:
  explicit LoopConstants(const OpView& loop) : loop_(loop), module_(loop.module()) {}

  std::optional<Wide> operator()(ValueId value) const {
    if (const auto scalar = constant_of(module_, value)) return scalar;
    for (const RegionId region : loop_.regions()) {
      // Either region: a condition reads the limit, a body the step.
      const auto carry = argument_index(module_.region(region), value);
      if (carry && is_invariant(*carry)) return constant_of(module_, loop_.operand(*carry));
    }
    return std::nullopt;
  }

  bool is_invariant(size_t carry) const {
    const Region& body = module_.region(loop_.regions()[1]);
    return body.results[carry] == body.arguments[carry];
  }

 private:
  OpView loop_;
  const Module& module_;
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

std::optional<Condition> read_condition(const OpView& loop, const LoopConstants& constant_of) {
  const Module& module = loop.module();
  const Region& region = module.region(loop.regions()[0]);
  const auto compare = defining_op(module, region.results[0], "stablehlo.compare");
  if (!compare) return std::nullopt;
  const std::string_view direction = compare->attrs().get<EnumAttr>("comparison_direction").value;
  for (const size_t side : {0, 1}) {
    const auto counter = argument_index(region, compare->operand(side));
    const auto limit = constant_of(compare->operand(1 - side));
    // A carry that never changes is no counter, but it may be the limit of one: `i < n`, where the body returns n.
    if (counter && limit && !constant_of.is_invariant(*counter))
      return Condition{*counter, side == 0 ? direction : mirrored(direction), *limit};
  }
  return std::nullopt;
}

// By how much the carry grows in a trip.
std::optional<Wide> read_step(const OpView& loop, const LoopConstants& constant_of, size_t carry) {
  const Module& module = loop.module();
  const Region& body = module.region(loop.regions()[1]);
  const ValueId next = body.results[carry], counter = body.arguments[carry];
  if (const auto add = defining_op(module, next, "stablehlo.add")) {
    if (add->operand(0) == counter) return constant_of(add->operand(1));
    if (add->operand(1) == counter) return constant_of(add->operand(0));
  }
  if (const auto subtract = defining_op(module, next, "stablehlo.subtract")) {
    const auto step = constant_of(subtract->operand(1));
    // Only counter - step: step - counter alternates between two values.
    if (subtract->operand(0) == counter && step) return -*step;
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

std::optional<int64_t> count_trips(const OpView& loop, const LoopConstants& constant_of, size_t& counter) {
  const auto condition = read_condition(loop, constant_of);
  if (!condition) return std::nullopt;
  counter = condition->counter;
  const auto start = constant_of(loop.operand(counter));
  const auto step = read_step(loop, constant_of, counter);
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
  if (!fits_int64(trips) || !fits(*start + trips * *step, loop.operand_type(counter).dtype)) return std::nullopt;
  return static_cast<int64_t>(trips);
}

// How often an op or a region inside the region reads the value.
size_t count_reads(const Module& module, RegionId region, ValueId value) {
  auto reads = static_cast<size_t>(std::ranges::count(module.region(region).results, value));
  walk(module, region, [&](OpId op) {
    reads += static_cast<size_t>(std::ranges::count(module.operands(op), value));
    for (const RegionId inner : module.regions(op)) {
      reads += static_cast<size_t>(std::ranges::count(module.region(inner).results, value));
    }
  });
  return reads;
}

// Each row is replaced before anything reads it, and all are, so neither the entry rows nor the order of the trips
// matter to the carry.
void find_outputs(const OpView& loop, CountedLoop& counted) {
  const Module& module = loop.module();
  const Region& body = module.region(loop.regions()[1]);
  LinearIntegers linear_integers(loop, counted);
  for (size_t carry = 0; carry < body.results.size(); ++carry) {
    const auto write = defining_op(module, body.results[carry], "stablehlo.dynamic_update_slice");
    if (!write || write->operand(0) != body.arguments[carry]) continue;
    if (!linear_integers.visits_distinct_rows(write->id()) || write->operand_type(0).shape[0] != counted.trips)
      continue;
    // The one read of the argument is by the write, and the one read of the new rows by the body's return.
    const bool is_read = count_reads(module, loop.regions()[1], body.arguments[carry]) != 1 ||
                         count_reads(module, loop.regions()[1], body.results[carry]) != 1;
    if (is_read) continue;
    counted.outputs.push_back({.carry = carry, .write = write->id(), .row = *linear_integers(write->operand(2))});
  }
}

}  // namespace

ValueId written_row(const Module& module, OpId write) {
  const ValueId update = module.operands(write)[1];
  // JAX gives a row its leading dim of size 1 by a reshape, which hides the row itself.
  const auto reshape = defining_op(module, update, "stablehlo.reshape");
  if (!reshape) return update;
  Dims shape = reshape->operand_type(0).shape;
  shape.insert(shape.begin(), 1);
  return shape == module.type(update).shape ? reshape->operand(0) : update;
}

std::optional<CountedLoop> counted_loop(const OpView& loop) {
  if (loop.def().regions != Regions::kLoop) return std::nullopt;
  const LoopConstants constant_of(loop);
  CountedLoop counted;
  const auto trips = count_trips(loop, constant_of, counted.counter);
  if (!trips) return std::nullopt;
  counted.trips = *trips;
  for (size_t carry = 0; carry < loop.operand_count(); ++carry) {
    counted.is_invariant.push_back(constant_of.is_invariant(carry));
    const auto start = constant_of(loop.operand(carry));
    const auto step = counted.is_invariant.back() ? Wide{0} : read_step(loop, constant_of, carry);
    counted.inductions.push_back(start && step ? linear(*start, *step, *trips, loop.operand_type(carry).dtype)
                                               : std::nullopt);
  }
  find_outputs(loop, counted);
  return counted;
}

// ---- LinearIntegers ------------------------------------------------------------------------------------------------

bool LinearIntegers::visits_distinct_rows(OpId slice) {
  const Module& module = loop_.module();
  const OpView op(module, slice);
  const bool is_write = op.name() == "stablehlo.dynamic_update_slice";
  if (!is_write && op.name() != "stablehlo.dynamic_slice") return false;
  const Dims& whole = op.operand_type(0).shape;
  const Dims& part = is_write ? op.operand_type(1).shape : op.result_type().shape;
  if (whole.empty() || part[0] != 1 || !std::equal(whole.begin() + 1, whole.end(), part.begin() + 1)) return false;
  const auto row = (*this)(op.operand(is_write ? 2 : 1));
  if (!row || (row->stride == 0 && counted_.trips > 1)) return false;
  // dynamic_slice clamps its start. Rows between two that are inside are inside, so no trip is clamped.
  const Wide last = row->offset + Wide{counted_.trips - 1} * row->stride;
  return row->offset >= 0 && row->offset < whole[0] && last >= 0 && last < whole[0];
}

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
  if (const auto carry = argument_index(module.region(loop_.regions()[1]), value)) return counted_.inductions[*carry];
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
  const auto compare = defining_op(loop_.module(), select.operand(0), "stablehlo.compare");
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
