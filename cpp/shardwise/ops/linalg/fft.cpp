// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/linalg/fft.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "shardwise/base/text.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/build/term.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/operation_counts.h"

namespace shardwise {
namespace {

constexpr std::array kTypes{"FFT", "IFFT", "RFFT", "IRFFT"};  // in the order of FftType

void infer_fft(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const std::string& type = expect_word(op, "fft_type", kTypes);
  const IntArray& length = op.attr<IntArray>("fft_length");
  const TensorType& operand = op.operand(0);
  const bool to_complex = type == "RFFT", to_real = type == "IRFFT";
  const bool wide = operand.dtype == DType::kF64 || operand.dtype == DType::kC128;
  const bool fits_dtype =
      to_complex ? operand.dtype == DType::kF32 || operand.dtype == DType::kF64 : is_complex(operand.dtype);
  if (!fits_dtype) op.fail_dtype("RFFT takes f32 or f64, the others complex numbers", operand.text());
  Dims shape = operand.shape;
  const size_t last = shape.size() - length.size();
  bool fits = !length.empty() && length.size() <= 3 && length.size() <= shape.size();
  for (size_t i = 0; fits && i < length.size(); ++i) {
    const bool halved = to_real && i + 1 == length.size();
    // IRFFT reads n / 2 + 1 numbers for n of its result; an empty dim has no spectrum at all.
    fits = shape[last + i] == (halved ? length[i] / 2 + 1 : length[i]) || (halved && shape[last + i] == 0);
  }
  if (!fits) {
    op.fail_shape("fft_length must be the sizes of the last one to three dims",
                  str("fft_length = ", length, " for ", operand.text()));
  }
  if (to_real) shape.back() = length.back();
  if (to_complex && shape.back() != 0) shape.back() = shape.back() / 2 + 1;
  const DType dtype = to_real ? (wide ? DType::kF64 : DType::kF32) : (wide ? DType::kC128 : DType::kC64);
  results.push_back(result_or_declared(op, {dtype, shape}));
}

ShardingRule rule_fft(const OpView& op) {
  const Dims &from = op.operand_type(0).shape, &to = op.result_type().shape;
  const size_t batch = from.size() - op.attrs().get<IntArray>("fft_length").size();
  return rule_by_dim(op, [&](RuleBuilder& rule, size_t dim) {
    // Blocked where the sizes differ, because a shard of one is no shard of the other.
    return dim < batch ? rule.factor(from[dim]) : rule.need_replication(from[dim], from[dim] != to[dim]);
  });
}

// ---- gradient and batch ---------------------------------------------------------------------------------------------

// How often each element of the half counts in the whole: twice, but for the first and, if the length is even, the
// last.
ValueId build_counts(Builder& builder, const TensorType& type, int64_t n) {
  Dims counts;
  for (int64_t k = 0; k < type.shape.back(); ++k) counts.push_back(k == 0 || 2 * k == n ? 1 : 2);
  return build_broadcast(builder, build_list(builder, type.dtype, counts), type.shape, Dims{type.ndim() - 1});
}

// A transform is symmetric, so it is its own transpose. RFFT is one of real numbers whose second half is cut off; IRFFT
// weights the elements of the half.
void vjp_fft(VjpContext& context) {
  if (!context.needs(0)) return;
  const OpView op = context.op();
  Builder& builder = context.builder();
  const IntArray& length = op.attrs().get<IntArray>("fft_length");
  const FftType type = fft_type(op.attrs());
  const TensorType operand = op.operand_type(0), result = op.result_type();
  const Term g{&builder, context.cotangent()};
  // Nothing depends on an empty transform.
  if (operand.size() == 0 || result.size() == 0) {
    return context.set(0, build_zeros(builder, operand));
  }
  // The matrix of a transform is symmetric: its transpose is the same transform, not the inverse one.
  if (type == FftType::kFft || type == FftType::kIfft) return context.set(0, build_fft(builder, g.id, type, length));
  if (type == FftType::kRfft) {
    const int64_t cut = operand.shape.back() - result.shape.back();
    const ValueId whole = build_pad_along(builder, g.id, 0, operand.shape.size() - 1, 0, cut);
    return context.set(0, Term{&builder, build_fft(builder, whole, FftType::kFft, length)}.op("stablehlo.real").id);
  }
  const Term half{&builder, build_fft(builder, g.id, FftType::kRfft, length)};
  const Term weighted = half * Term{&builder, build_counts(builder, operand, length.back())};
  const double scale = 1 / static_cast<double>(element_count(length));
  context.set(0, (weighted * scale).op("chlo.conj").id);
}

// The transformed dims are the last ones.
void batch_fft(BatchContext& context) {
  const IntArray& length = context.op().attrs().get<IntArray>("fft_length");
  context.set_result(0, build_fft(context.builder(), context.batched(0), fft_type(context.op().attrs()), length));
}

// 5 n log2 n for each transform of n complex numbers, half of it for real ones. The transformed dims are whole on each
// device.
OpCost cost_fft(const OpView& op, const LocalTypes& types) {
  OpCost cost = cost_by_rule(op, types);
  const FftType type = fft_type(op.attrs());
  const bool is_real = type == FftType::kRfft || type == FftType::kIrfft;
  const int64_t steps = ceil_log2(element_count(op.attrs().get<IntArray>("fft_length")));
  const TensorType& numbers = type == FftType::kIrfft ? types.result() : types.operand(0);
  const int64_t complex_flops = saturated_product(numbers.element_quantity(), 5 * steps);
  cost.vector = is_real ? ceil_div(complex_flops, 2) : complex_flops;
  return cost;
}

constexpr Method kFftMethods[] = {
    {"another dim", transformed_factors, placements_along_batch, nullptr},
    {"pencils", transformed_factors, placements_of_pencils, partition_by_pencils},
};

constexpr OpDef kFftOps[] = {{
    .name = "stablehlo.fft",
    .infer = infer_fft,
    .rule = rule_fft,
    .methods = kFftMethods,
    .prepare = prepare_fft,
    .cost = cost_fft,
    .vjp = vjp_fft,
    .batch = batch_fft,
    .format = "operands `,` `type` `=` $fft_type `,` `length` `=` $fft_length attr-dict `:` functional-type",
    .doc = "Fourier transform of the last dims, of any length (StableHLO fft).",
    .traits = {.shares_memory = true},
}};
static_assert(all_complete(kFftOps));

}  // namespace

std::span<const OpDef> fft_ops() { return kFftOps; }

FftType fft_type(const Attrs& attrs) {
  const auto* found = std::ranges::find(kTypes, attrs.get<EnumAttr>("fft_type").value);
  return static_cast<FftType>(found - kTypes.begin());
}

ValueId build_fft(Builder& builder, ValueId operand, FftType type, const IntArray& length) {
  const EnumAttr name{"stablehlo", "fft_type", kTypes[static_cast<size_t>(type)]};
  return builder.create("stablehlo.fft", {operand}, Attrs{{"fft_length", length}, {"fft_type", name}});
}

}  // namespace shardwise
