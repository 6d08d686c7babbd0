// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/contraction/dot_algorithm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/attribute_printer.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {
namespace {

using Precision = DotAlgorithm::Precision;

constexpr int64_t kGrain = int64_t{1} << 16;  // elements of one task
constexpr std::string_view kAttribute = "algorithm";

// ---- the attribute -------------------------------------------------------------------------------------------------

struct Known {
  std::string_view precision, accumulation;
  int64_t products;
  DotAlgorithm algorithm;
};

const std::vector<Known>& known_algorithms() {
  // Part i of a bfloat16 algorithm is about 2^-8 of part i - 1, so the sum of a pair's indices gives the size of its
  // product. Small products are added first, which keeps their bits. Three drop 1·1; six drop 1·2, 2·1 and 2·2.
  const std::vector<std::pair<int, int>> one{{0, 0}}, three{{0, 1}, {1, 0}, {0, 0}};
  const std::vector<std::pair<int, int>> six{{0, 2}, {1, 1}, {2, 0}, {0, 1}, {1, 0}, {0, 0}};
  const std::vector<std::pair<int, int>> nine{{2, 2}, {1, 2}, {2, 1}, {0, 2}, {1, 1}, {2, 0}, {0, 1}, {1, 0}, {0, 0}};
  static const std::vector<Known> kKnown{
      {"f16", "f32", 1, {DType::kF32, Precision::kF16, one}},
      {"bf16", "f32", 1, {DType::kF32, Precision::kBF16, one}},
      {"bf16", "f32", 3, {DType::kF32, Precision::kBF16, three}},
      {"bf16", "f32", 6, {DType::kF32, Precision::kBF16, six}},
      {"bf16", "f32", 9, {DType::kF32, Precision::kBF16, nine}},
      {"tf32", "f32", 1, {DType::kF32, Precision::kTF32, one}},
      {"tf32", "f32", 3, {DType::kF32, Precision::kTF32, three}},
      {"f32", "f32", 1, {DType::kF32, Precision::kOperand, one}},
      {"f64", "f64", 1, {DType::kF64, Precision::kOperand, one}},
  };
  return kKnown;
}

std::string word(const Attrs& fields, std::string_view name) {
  const auto* value = fields.find<EnumAttr>(name);
  return value == nullptr ? std::string() : value->value;
}

bool is(const Attrs& fields, std::string_view name, int64_t value) {
  const auto* number = fields.find<IntAttr>(name);
  return number != nullptr && number->value == value;
}

bool matches(const Attrs& fields, const Known& known) {
  const auto* imprecise = fields.find<bool>("allow_imprecise_accumulation");
  // JAX's presets have one component on each side: the number of products alone gives the number of parts.
  return word(fields, "lhs_precision_type") == known.precision &&
         word(fields, "rhs_precision_type") == known.precision &&
         word(fields, "accumulation_type") == known.accumulation && is(fields, "lhs_component_count", 1) &&
         is(fields, "rhs_component_count", 1) && is(fields, "num_primitive_operations", known.products) &&
         imprecise != nullptr && !*imprecise;
}

[[noreturn]] void refuse_algorithm(const OpView& op, std::string_view must_hold, std::string_view got,
                                   std::string_view way_out) {
  fail<UnsupportedError>(op.name(), must_hold, got, way_out);
}

// The dtype of the computation: the widest of operands and result, at least float32 of floats.
DType computed_in(const OpView& op) {
  const std::array dtypes{op.operand_type(0).dtype, op.operand_type(1).dtype, op.result_type().dtype};
  const auto is_double = [](DType dtype) { return dtype == DType::kF64 || dtype == DType::kC128; };
  const bool wide = std::ranges::any_of(dtypes, is_double);
  if (std::ranges::any_of(dtypes, is_complex)) return wide ? DType::kC128 : DType::kC64;
  if (std::ranges::any_of(dtypes, is_float)) return wide ? DType::kF64 : DType::kF32;
  return computed_in(dtypes[2]);
}

// ---- parts ---------------------------------------------------------------------------------------------------------

float to_tf32(float value) {
  constexpr uint32_t kDropped = 13;  // of the 23 mantissa bits; rounds ties to even
  const auto bits = std::bit_cast<uint32_t>(value);
  if (!std::isfinite(value)) return value;
  // Half of the dropped bits' unit less one, plus the last kept bit: a tie carries only if the kept bit is odd.
  const uint32_t rounded = bits + ((uint32_t{1} << (kDropped - 1)) - 1) + (bits >> kDropped & 1U);
  return std::bit_cast<float>(rounded >> kDropped << kDropped);
}

float to_bf16(float value) { return static_cast<float>(BFloat16(value)); }

// Rounds to nearest, but never to infinity: a part must not be larger than the whole.
template <float Round(float)>
float leading_part(float value) {
  const float rounded = Round(value);
  // A value just below the largest float would round up to infinity, and leave minus infinity as the rest.
  if (std::isfinite(rounded) || !std::isfinite(value)) return rounded;
  return Round(value * (1 - 0x1p-8F));
}

// parts[i] is the leading part of what remains after the parts before it. For an infinity or NaN, the later parts are
// NaN.
template <float Round(float)>
std::vector<NdArray> split(KernelContext& context, const NdArray& operand, int count) {
  NdArray rest = NdArray::empty(DType::kF32, operand.shape());
  copy_array(context, rest, operand);
  std::vector<NdArray> parts;
  for (int i = 0; i < count; ++i) {
    parts.push_back(NdArray::empty(DType::kF32, operand.shape()));
    auto* left = reinterpret_cast<float*>(rest.data());
    auto* part = reinterpret_cast<float*>(parts.back().data());
    context.parallel_for(rest.size(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        // One part is the rounded operand itself, which may be infinite; several must add up to the operand.
        part[k] = count == 1 ? Round(left[k]) : leading_part<Round>(left[k]);
        left[k] -= part[k];
      }
    });
  }
  return parts;
}

// HIGH or HIGHEST of an operand; null where there is none.
const std::string* precision_above_default(const Attrs& attrs) {
  const auto* precisions = attrs.find<AttrArray>("precision_config");
  if (precisions == nullptr) return nullptr;
  for (const Attribute& item : *precisions) {
    const auto* precision = std::get_if<EnumAttr>(&item.base());
    if (precision != nullptr && precision->value != "DEFAULT") return &precision->value;
  }
  return nullptr;
}

}  // namespace

DotAlgorithm dot_algorithm(const OpView& op) {
  const Attribute* attribute = op.attrs().find(kAttribute);
  if (attribute == nullptr) return {.accumulation = computed_in(op)};
  const DType operand = op.operand_type(0).dtype, result = op.result_type().dtype;
  const bool is_wide = operand == DType::kF64 || op.operand_type(1).dtype == DType::kF64;
  const std::string text = attribute_text(*attribute);
  const auto* given = std::get_if<StructAttr>(&attribute->base());
  const auto& known = known_algorithms();
  const Attrs fields(given == nullptr ? std::vector<NamedAttribute>() : given->fields);
  const auto found = std::ranges::find_if(known, [&](const Known& each) { return matches(fields, each); });
  if (found == known.end()) {
    refuse_algorithm(
        op,
        "an algorithm that runs must be one of f16_f16_f32, bf16_bf16_f32 (also x3, x6, x9), tf32_tf32_f32 (also "
        "x3), f32_f32_f32 and f64_f64_f64",
        text, "leave it out, or use one of these");
  }
  if (!is_float(operand) || !is_float(op.operand_type(1).dtype) || !is_float(result)) {
    refuse_algorithm(op, "an algorithm is for products of floats", str(operand, " to ", result), "leave it out");
  }
  const bool is_decomposed = found->algorithm.precision == Precision::kTF32 || found->algorithm.parts() > 1;
  // A decomposition into float32 parts would drop the low bits of a float64 operand unseen.
  if (is_decomposed && is_wide) {
    refuse_algorithm(op, "this algorithm is for operands of at most 32 bits", str("f64 for ", text),
                     "convert them to float32");
  }
  return found->algorithm;
}

void verify_dot_algorithm(const OpView& op) { dot_algorithm(op); }

void expect_one_precision(const InferContext& op) {
  const std::string* precision = precision_above_default(op.attrs());
  if (precision == nullptr || op.attrs().find(kAttribute) == nullptr) return;
  op.fail_shape("the precision must be DEFAULT where an algorithm is given", *precision, "leave one of them out");
}

bool has_default_precision(const OpView& op) {
  return precision_above_default(op.attrs()) == nullptr && op.attrs().find(kAttribute) == nullptr;
}

std::vector<NdArray> dot_parts(KernelContext& context, const NdArray& operand, const DotAlgorithm& algorithm) {
  const bool is_bf16 = algorithm.precision == Precision::kBF16;
  if (algorithm.precision == Precision::kTF32) {
    return split<to_tf32>(context, converted(context, operand, DType::kF32), algorithm.parts());
  }
  if (is_bf16 && algorithm.parts() > 1) {
    return split<to_bf16>(context, converted(context, operand, DType::kF32), algorithm.parts());
  }
  if (algorithm.precision == Precision::kOperand) return {converted(context, operand, algorithm.accumulation)};
  // Products of two narrow values are exact in float32, so rounding the operands is all that the algorithm asks.
  const NdArray narrow = converted(context, operand, is_bf16 ? DType::kBF16 : DType::kF16);
  return {converted(context, narrow, algorithm.accumulation)};
}

}  // namespace shardwise
