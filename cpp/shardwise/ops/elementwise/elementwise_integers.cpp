// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/elementwise/elementwise_integers.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

// Scalars stand beside tensors: bounds of a clamp, the predicate of a select.
KnownIntegers known_operand(IntegersContext& context, size_t i) {
  return context.operand(i, context.op().operand_type(i).ndim() == 0 ? Dims{} : context.at());
}

KnownIntegers between(const IntegersContext& context, int64_t low, int64_t high) {
  if (low != high) return {.low = low, .high = high};
  const DType dtype = context.op().result_type().dtype;
  const Scalar number =
      is_unsigned_integer(dtype) ? Scalar::of_uint(dtype, static_cast<uint64_t>(low)) : Scalar::of_int(dtype, low);
  return context.along(NdArray::full(dtype, {1}, number), -1);
}

// Whether a < b, a == b or a > b holds for all elements, as far as bounds tell.
std::optional<bool> truth(std::string_view direction, const KnownIntegers& a, const KnownIntegers& b) {
  if (direction == "GT") return truth("LT", b, a);
  if (direction == "GE") return truth("LE", b, a);
  if (direction == "LT") {
    if (a.high < b.low) return true;
    return a.low >= b.high ? std::optional(false) : std::nullopt;
  }
  if (direction == "LE") {
    if (a.high <= b.low) return true;
    return a.low > b.high ? std::optional(false) : std::nullopt;
  }
  const bool differ = a.high < b.low || b.high < a.low;
  const bool is_equal = a.number() && a.number() == b.number();
  if (!differ && !is_equal) return std::nullopt;
  return direction == "EQ" ? is_equal : differ;
}

// The end of int64 also stands for larger numbers of uint64.
bool is_exact(const IntegersContext& context) {
  return context.op().operand_type(context.op().operand_count() - 1).dtype != DType::kU64;
}

}  // namespace

KnownIntegers integers_of_clamp(IntegersContext& context) {
  const KnownIntegers low = known_operand(context, 0), x = known_operand(context, 1), high = known_operand(context, 2);
  return between(context, std::min(std::max(x.low, low.low), high.low),
                 std::min(std::max(x.high, low.high), high.high));
}

KnownIntegers integers_of_compare(IntegersContext& context) {
  const DType dtype = context.op().operand_type(0).dtype;
  if (!(is_integer(dtype) || dtype == DType::kBool) || !is_exact(context)) return {};
  const auto direction = context.op().attrs().get<EnumAttr>("comparison_direction").value;
  const std::optional<bool> holds = truth(direction, known_operand(context, 0), known_operand(context, 1));
  return holds ? between(context, *holds ? 1 : 0, *holds ? 1 : 0) : KnownIntegers{};
}

KnownIntegers integers_of_select(IntegersContext& context) {
  const std::optional<int64_t> takes_first = known_operand(context, 0).number();
  if (takes_first) return known_operand(context, *takes_first != 0 ? 1 : 2);
  const KnownIntegers a = known_operand(context, 1), b = known_operand(context, 2);
  return between(context, std::min(a.low, b.low), std::max(a.high, b.high));
}

}  // namespace shardwise
