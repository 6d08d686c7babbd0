// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/linalg/fft.h"

#include "shardwise/base/text.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/propagation_only.h"

namespace shardwise {
namespace {

void infer_fft(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const std::string& type = op.attr<EnumAttr>("fft_type").value;
  const IntArray& length = op.attr<IntArray>("fft_length");
  const TensorType& operand = op.operand(0);
  const bool to_complex = type == "RFFT", to_real = type == "IRFFT";
  if (!to_complex && !to_real && type != "FFT" && type != "IFFT") {
    op.fail_shape("fft_type must be FFT, IFFT, RFFT or IRFFT", type);
  }
  const bool wide = operand.dtype == DType::kF64 || operand.dtype == DType::kC128;
  const bool fits_dtype =
      to_complex ? operand.dtype == DType::kF32 || operand.dtype == DType::kF64 : is_complex(operand.dtype);
  if (!fits_dtype) op.fail_dtype("RFFT takes f32 or f64, the others complex numbers", operand.text());
  Dims shape = operand.shape;
  const size_t last = shape.size() - length.size();
  bool fits = !length.empty() && length.size() <= 3 && length.size() <= shape.size();
  for (size_t i = 0; fits && i < length.size(); ++i) {
    const bool halved = to_real && i + 1 == length.size();
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
  RuleBuilder rule(op);
  const Dims& from = op.operand_type(0).shape;
  const Dims& to = op.result_type().shape;
  const size_t batch = from.size() - op.attrs().get<IntArray>("fft_length").size();
  for (size_t dim = 0; dim < from.size(); ++dim) {
    const bool changes = from[dim] != to[dim];
    const FactorId factor = dim < batch ? rule.factor(from[dim]) : rule.need_replication(from[dim], changes);
    rule.map(0, dim, factor).map(rule.result_tensor(0), dim, factor);
  }
  return rule.build();
}

constexpr OpDef kFftOps[] = {
    propagation_only_op("stablehlo.fft", infer_fft, rule_fft,
                        "operands `,` `type` `=` $fft_type `,` `length` `=` $fft_length attr-dict `:` functional-type",
                        "Fourier transform of the last dims (StableHLO fft)."),
};
static_assert(all_complete(kFftOps));

}  // namespace

std::span<const OpDef> fft_ops() { return kFftOps; }

}  // namespace shardwise
