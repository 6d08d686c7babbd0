// SPDX-License-Identifier: Apache-2.0
//
// stablehlo.fft: Fourier transforms over the last one to three dims; the dims before are a batch.
//
//   %1 = stablehlo.fft %0, type = RFFT, length = [8] : (tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>>
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> fft_ops();

enum class FftType : uint8_t { kFft, kIfft, kRfft, kIrfft };
FftType fft_type(const Attrs& attrs);
ValueId build_fft(Builder& builder, ValueId operand, FftType type, const IntArray& length);
std::optional<Kernel> prepare_fft(const OpView& op, const KernelTypes& types);

// Dims that are transformed and sharded (fft_partition.cpp).
std::vector<FactorId> transformed_factors(const OpView& op, const ShardingRule& rule);
void placements_along_batch(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                            std::vector<OpPlacement>& found);
void placements_of_pencils(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                           std::vector<OpPlacement>& found);
void partition_by_pencils(PartitionContext& context);

}  // namespace shardwise
