// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/op_time.h"

#include <algorithm>

#include "shardwise/analysis/product_format.h"
#include "shardwise/base/quantity.h"
#include "shardwise/cost/price.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

int64_t& time_of(OpTime& time, ComputeUnit unit) { return time.unit_ps[static_cast<size_t>(unit)]; }

void add_elements(OpTime& time, ComputeUnit unit, DType dtype, int64_t operations, const Hardware& hardware) {
  if (operations == 0) return;
  int64_t& ps = time_of(time, unit);
  ps = saturated_sum(ps, hardware.compute_time(unit, dtype, operations));
}

// The dtype of arithmetic: of the operands, where the result is a truth value.
DType dtype_of_elements(const OpView& op, const LocalTypes& types) {
  const bool has_result = op.result_count() > 0;
  if (has_result && types.result().dtype != DType::kBool) return types.result().dtype;
  return op.operand_count() > 0 ? types.operand(op.operand_count() - 1).dtype : DType::kBool;
}

// Of an operand that was widened for a product, the bytes before that.
int64_t bytes_before_widening(const OpView& op, size_t operand, int64_t bytes) {
  const DType own = op.operand_type(operand).dtype;
  const DType before = op.module().type(before_widening(op.module(), op.operand(operand))).dtype;
  if (own == before || bytes == kSaturated) return bytes;
  return saturated_product(bytes / item_size(own), item_size(before));
}

// Whether the op updates its first operand in place, and that is a constant, which is in no memory yet: then all of the
// result is written.
bool updates_a_constant(const OpView& op, const LocalTypes& types, const OpCost& cost) {
  if (op.operand_count() == 0 || op.result_count() != 1 || op.operand_type(0) != op.result_type()) return false;
  if (cost.touched[op.operand_count()] >= types.result().byte_quantity()) return false;
  return splat_value(op.module(), op.operand(0)).has_value();
}

int64_t touched_bytes(const OpView& op, const LocalTypes& types, const OpCost& cost, uint64_t in_memory) {
  int64_t bytes = updates_a_constant(op, types, cost) ? types.result().byte_quantity() : 0;
  for (size_t t = 0; t < cost.touched.size(); ++t) {
    if (t < 64 && (in_memory >> t & 1) == 0) continue;
    const bool is_factor = cost.matrix > 0 && t < op.operand_count();
    bytes = saturated_sum(bytes, is_factor ? bytes_before_widening(op, t, cost.touched[t]) : cost.touched[t]);
  }
  return bytes;
}

}  // namespace

std::string_view name(Bound bound) {
  switch (bound) {
    case Bound::kNothing: return "nothing";
    case Bound::kMemory: return "memory";
    case Bound::kMatrix: return "matrix";
    case Bound::kVector: return "vector";
    case Bound::kTranscendental: return "transcendental";
  }
  return {};
}

int64_t OpTime::ps() const { return saturated_sum(launch_ps, ps_without_launch()); }

int64_t OpTime::ps_without_launch() const { return std::max(memory_ps, *std::ranges::max_element(unit_ps)); }

Bound OpTime::bound() const {
  const auto unit = std::ranges::max_element(unit_ps);
  if (std::max(memory_ps, *unit) == 0) return Bound::kNothing;
  if (memory_ps >= *unit) return Bound::kMemory;
  constexpr std::array kBounds{Bound::kMatrix, Bound::kVector, Bound::kTranscendental};
  return kBounds[static_cast<size_t>(unit - unit_ps.begin())];
}

void add_operations(const OpView& op, const LocalTypes& types, const OpCost& cost, const Hardware& hardware,
                    OpTime& time) {
  time.flops = saturated_sum(time.flops, cost.flops());
  if (cost.matrix > 0) {
    const ProductFormat format = product_format(op);
    int64_t& ps = time_of(time, ComputeUnit::kMatrix);
    const int64_t flops = saturated_product(cost.matrix, format.repeats);
    ps = saturated_sum(ps, hardware.dot_time(format.dtype, format.is_default_precision, flops));
    const Peak peak = hardware.dot_peak(format.dtype, format.is_default_precision);
    time.products_ps = saturated_sum(time.products_ps, picoseconds(flops, peak.flops));
  }
  const DType dtype = dtype_of_elements(op, types);
  add_elements(time, ComputeUnit::kVector, dtype, cost.vector, hardware);
  add_elements(time, ComputeUnit::kTranscendental, dtype, cost.transcendental, hardware);
}

OpTime op_time(const OpView& op, std::span<const TypeId> types, const Hardware& hardware) {
  return op_time(op, types, hardware, ~uint64_t{0});
}

OpTime op_time(const OpView& op, std::span<const TypeId> types, const Hardware& hardware, uint64_t in_memory) {
  const LocalTypes local(op, types);
  const OpCost cost = op.def().cost(op, local);
  OpTime time;
  time.bytes = touched_bytes(op, local, cost, in_memory);
  if (time.bytes == 0 && cost.flops() == 0) return time;
  time.launch_ps = hardware.launch_ps;
  time.memory_ps = hardware.memory_time(time.bytes);
  add_operations(op, local, cost, hardware, time);
  return time;
}

OpTime op_time(const OpView& op, const Hardware& hardware) { return op_time(op, own_types(op), hardware); }

}  // namespace shardwise
