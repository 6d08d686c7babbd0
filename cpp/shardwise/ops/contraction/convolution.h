// SPDX-License-Identifier: Apache-2.0
//
// Convolution: windows over the spatial dims, sums over windows and input features.
//
//   %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2]}
//          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
//          : (tensor<2x8x3xf32>, tensor<2x3x5xf32>) -> tensor<2x4x5xf32>
//   ([i, j, l], [k, l, m])->([i, j, m]) {i=2, j=4, k=2, l=3, m=5} reduction={l} need_replication={k} permutation={j}
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rule/rule_builder.h"
#include "shardwise/ops/shared/windows.h"

namespace shardwise {

std::span<const OpDef> convolution_ops();

// The role of each dim of a tensor. `batch` and `feature` of a kernel are its input and output features.
struct ConvolutionDims {
  int64_t batch = -1, feature = -1;
  Dims spatial;
};
struct ConvolutionNumbers {
  ConvolutionDims lhs, rhs, result;
  // Parses `[b, 0, f]x[0, i, o]->[b, 0, f]`. Returns none for any other text.
  static std::optional<ConvolutionNumbers> parse(std::string_view text);
  static ConvolutionNumbers of(const OpView& op);
  std::string text() const;
};

// The attributes of a convolution.
struct Convolution {
  ConvolutionNumbers numbers;
  Window window;  // over the spatial dims
  Dims reversed;  // 1 for each spatial dim whose taps count backwards
  int64_t feature_groups = 1, batch_groups = 1;

  static Convolution of(const OpView& op);
  int64_t groups() const { return std::max(feature_groups, batch_groups); }
  // Adds the attributes of `others` that do not describe the window, such as precision_config.
  Attrs attrs(const Attrs& others) const;
};

// Fields of the OpDef: convolution_kernels.cpp, convolution_vjp.cpp, convolution_partition.cpp.
std::optional<Kernel> prepare_convolution(const OpView& op, const KernelTypes& types);
void vjp_convolution(VjpContext& context);
void batch_convolution(BatchContext& context);

// A sharded spatial dim of the input: each device receives the rows that its windows read. A sharded spatial dim of the
// kernel, as in the gradient of a kernel: each device sums up its own taps, and receives the rows that these read.
//
//   64 rows on x=8, window 3, low = high = 1          10 rows: one of each neighbor
//   gradient of that kernel: 3 windows, 64 taps       10 rows; the result is unreduced over x
void partition_convolution(PartitionContext& context);  // by the rule
std::vector<FactorId> moved_factors_of_convolution(const OpView& op, const ShardingRule& rule);
void placements_of_moved_windows(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                                 std::vector<OpPlacement>& found);
void partition_convolution_by_exchange(PartitionContext& context);

// The rule of a convolution, with the factors of spatial dim i as `map_spatial_dim` adds them.
using MapSpatialDim = void (*)(RuleBuilder& rule, const OpView& op, const ConvolutionNumbers& numbers, size_t i);
ShardingRule convolution_rule(const OpView& op, MapSpatialDim map_spatial_dim);

}  // namespace shardwise
