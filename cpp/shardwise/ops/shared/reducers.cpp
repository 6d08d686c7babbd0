// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/reducers.h"

#include <algorithm>
#include <limits>

#include "shardwise/base/error.h"
#include "shardwise/base/narrow_float.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// The first or the last one in the order of maximum.
Scalar extreme_float(DType dtype, bool is_largest) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double extreme = is_largest ? kInfinity : -kInfinity;
  // Complex numbers are compared by their real parts, then by the imaginary ones, as in NumPy.
  if (is_complex(dtype)) return Scalar::of_complex(dtype, extreme, extreme);
  // Some narrow floats have no infinity: their largest finite number is the extreme.
  return Scalar::of_float(dtype, is_narrow_float(dtype) ? narrow_float_limit(dtype, is_largest) : extreme);
}

Scalar lowest(DType dtype) {
  if (is_inexact(dtype)) return extreme_float(dtype, false);
  if (!is_signed_integer(dtype)) return scalar_of(dtype, 0);
  // An arithmetic shift: -2^63 becomes -2^7 for i8, and -2 for i2.
  return Scalar::of_int(dtype, std::numeric_limits<int64_t>::min() >> (64 - bit_width(dtype)));
}

Scalar highest(DType dtype) {
  if (is_inexact(dtype)) return extreme_float(dtype, true);
  if (dtype == DType::kBool) return scalar_of(dtype, 1);
  const auto unused = 64 - bit_width(dtype);
  if (is_unsigned_integer(dtype)) return Scalar::of_uint(dtype, std::numeric_limits<uint64_t>::max() >> unused);
  return Scalar::of_int(dtype, std::numeric_limits<int64_t>::max() >> unused);
}

// The neutral element of `and`: -1 has all bits set.
Scalar all_bits(DType dtype) { return is_signed_integer(dtype) ? Scalar::of_int(dtype, -1) : highest(dtype); }

struct ReducerName {
  Reducer reducer;
  std::string_view op;
};
constexpr ReducerName kReducerNames[] = {
    {Reducer::kSum, "stablehlo.add"},     {Reducer::kProd, "stablehlo.multiply"}, {Reducer::kMax, "stablehlo.maximum"},
    {Reducer::kMin, "stablehlo.minimum"}, {Reducer::kAnd, "stablehlo.and"},       {Reducer::kOr, "stablehlo.or"},
};

// StableHLO's add and multiply of i1 are `or` and `and`, and so are maximum and minimum: one reducer for each meaning.
Reducer on_booleans(Reducer reducer) {
  if (reducer == Reducer::kSum || reducer == Reducer::kMax) return Reducer::kOr;
  if (reducer == Reducer::kProd || reducer == Reducer::kMin) return Reducer::kAnd;
  return reducer;
}

}  // namespace

std::optional<Reducer> region_reducer(const Module& module, RegionId id) {
  const Region& region = module.region(id);
  if (region.arguments.size() != 2 || region.results.size() != 1) return std::nullopt;
  // A region with more ops may reduce the same way, but is not looked through: it runs by the evaluator. Annotations
  // of scalars, which JAX writes inside of manual regions, have no effect.
  const auto is_annotation = [&](OpId op) { return module.op(op).def->traits.constraint; };
  if (std::ssize(region.ops) - std::ranges::count_if(region.ops, is_annotation) != 1) return std::nullopt;
  ValueId result = region.results[0];
  while (module.value(result).op && is_annotation(module.value(result).op)) {
    result = module.operands(module.value(result).op)[0];
  }
  return value_reducer(module, result, region.arguments[0], region.arguments[1]);
}

std::optional<Reducer> value_reducer(const Module& module, ValueId value, ValueId first, ValueId second) {
  if (!module.value(value).op) return std::nullopt;
  const OpView op(module, module.value(value).op);
  if (op.operand_count() != 2 || op.result_count() != 1) return std::nullopt;
  const bool straight = op.operand(0) == first && op.operand(1) == second;
  // All six are commutative.
  const bool swapped = op.operand(0) == second && op.operand(1) == first;
  if (!straight && !swapped) return std::nullopt;
  for (const ReducerName& entry : kReducerNames) {
    if (entry.op != op.name()) continue;
    return op.result_type().dtype == DType::kBool ? on_booleans(entry.reducer) : entry.reducer;
  }
  return std::nullopt;
}

std::optional<Reducer> op_reducer(const OpView& op) {
  return op.result_count() == 1 ? region_reducer(op.module(), op.regions()[0]) : std::nullopt;
}

Reducer required_reducer(const OpView& op) {
  const std::optional<Reducer> reducer = op_reducer(op);
  if (!reducer) {
    fail<ShapeError>(op.name(), "the region must be one of add, multiply, maximum, minimum, and, or of its arguments",
                     str("another region over ", op.result_count(), " operand(s)"),
                     "write it as several reductions by one of these");
  }
  return *reducer;
}

Scalar neutral_element(Reducer reducer, DType dtype) {
  switch (reducer) {
    case Reducer::kSum: return scalar_of(dtype, 0);
    case Reducer::kProd: return scalar_of(dtype, 1);
    case Reducer::kMax: return lowest(dtype);
    case Reducer::kMin: return highest(dtype);
    case Reducer::kAnd: return all_bits(dtype);
    case Reducer::kOr: return scalar_of(dtype, 0);
    case Reducer::kNone: break;
  }
  fail<InternalError>("neutral_element", "the reducer must be one");
}

Scalar capped(DType dtype, int64_t limit) {
  const Scalar most = highest(dtype);
  const bool binds = is_unsigned_integer(dtype) ? static_cast<uint64_t>(limit) < most.natural : limit < most.integer;
  return binds ? scalar_of(dtype, limit) : most;
}

Reducer reducer_of_parts(DType dtype) {
  if (dtype == DType::kF8E8M0FNU) return Reducer::kMax;  // it has no zero
  return dtype == DType::kBool ? Reducer::kOr : Reducer::kSum;
}

Scalar exact_neutral(Reducer reducer, DType dtype) {
  if (reducer == Reducer::kSum && is_complex(dtype)) return Scalar::of_complex(dtype, -0.0, -0.0);
  if (reducer == Reducer::kSum && is_float(dtype)) return Scalar::of_float(dtype, -0.0);
  return neutral_element(reducer, dtype);
}

bool is_neutral(Reducer reducer, Scalar value) {
  // 0.0 and -0.0: adding either changes no number, except that -0.0 + 0.0 is 0.0.
  if (reducer == Reducer::kSum && is_inexact(value.dtype)) return value.real == 0 && value.imag == 0;
  return value == neutral_element(reducer, value.dtype);
}

bool is_idempotent(Reducer reducer) { return reducer != Reducer::kSum && reducer != Reducer::kProd; }

std::string_view reducer_op_name(Reducer reducer) {
  const auto* entry = std::find_if(std::begin(kReducerNames), std::end(kReducerNames),
                                   [&](const ReducerName& candidate) { return candidate.reducer == reducer; });
  check_internal(entry != std::end(kReducerNames), "the reducer must be one");
  return entry->op;
}

bool combines_by(const OpDef& def, Reducer reducer) {
  return reducer != Reducer::kNone && def.name == reducer_op_name(reducer);
}

}  // namespace shardwise
