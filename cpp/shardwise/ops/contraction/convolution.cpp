// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/contraction/convolution.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "shardwise/base/text.h"
#include "shardwise/ops/contraction/contraction_checks.h"
#include "shardwise/ops/partitioning/exchange_partition.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/operation_counts.h"

namespace shardwise {
namespace {

// ---- numbers of dims -----------------------------------------------------------------------------------------------

bool take(std::string_view& text, std::string_view token) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (!text.starts_with(token)) return false;
  text.remove_prefix(token.size());
  return true;
}

std::optional<int64_t> take_number(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (text.starts_with('-')) return std::nullopt;  // -0 is not a dim
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value > 256) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

// Parses `[b, 0, 1, f]`, or with the two letters of a kernel.
std::optional<ConvolutionDims> take_dims(std::string_view& text, std::string_view batch, std::string_view feature) {
  ConvolutionDims dims;
  std::vector<std::pair<int64_t, int64_t>> spatial;  // number, dim
  if (!take(text, "[")) return std::nullopt;
  int64_t dim = 0;
  do {
    if (dims.batch < 0 && take(text, batch)) {
      dims.batch = dim;
    } else if (dims.feature < 0 && take(text, feature)) {
      dims.feature = dim;
    } else if (const std::optional<int64_t> number = take_number(text)) {
      spatial.emplace_back(*number, dim);
    } else {
      return std::nullopt;
    }
    ++dim;
  } while (take(text, ","));
  if (!take(text, "]") || dims.batch < 0 || dims.feature < 0) return std::nullopt;
  // By their numbers, so that `spatial[i]` is the dim of spatial dim i in every tensor: [b, 1, 0, f] gives {2, 1}.
  std::sort(spatial.begin(), spatial.end());
  for (size_t i = 0; i < spatial.size(); ++i) {
    if (spatial[i].first != static_cast<int64_t>(i)) return std::nullopt;
    dims.spatial.push_back(spatial[i].second);
  }
  return dims;
}

const std::string* numbers_text(const Attrs& attrs) {
  const auto* numbers = attrs.find<StructAttr>("dimension_numbers");
  if (numbers == nullptr || numbers->fields.size() != 1) return nullptr;
  return std::get_if<std::string>(&numbers->fields[0].second.base());
}

// ---- infer ---------------------------------------------------------------------------------------------------------

// A convolution's window as attributes of reduce_window.
Attrs window_attrs(const Attrs& attrs, const Dims& sizes) {
  Attrs window{{"window_dimensions", sizes}};
  // reduce_window has the same windows, so its checks and sizes serve both ops.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNames{{{"window_strides", "window_strides"},
                                                                                 {"padding", "padding"},
                                                                                 {"lhs_dilation", "base_dilations"},
                                                                                 {"rhs_dilation", "window_dilations"}}};
  for (const auto& [ours, theirs] : kNames) {
    if (const Attribute* value = attrs.find(ours)) window.set(theirs, *value);
  }
  return window;
}

int64_t group_count(const Attrs& attrs, std::string_view name) {
  const auto* count = attrs.find<IntAttr>(name);
  return count == nullptr ? 1 : count->value;
}

ConvolutionNumbers expect_numbers(const InferContext& op) {
  op.attr<StructAttr>("dimension_numbers");
  const std::string* text = numbers_text(op.attrs());
  const std::optional<ConvolutionNumbers> numbers = text == nullptr ? std::nullopt : ConvolutionNumbers::parse(*text);
  if (!numbers) {
    op.fail_shape("dimension_numbers must name each dim once, such as [b, 0, f]x[0, i, o]->[b, 0, f]",
                  text == nullptr ? std::string() : *text);
  }
  const auto ndim = static_cast<int64_t>(numbers->lhs.spatial.size()) + 2;
  const bool fits = op.operand(0).ndim() == ndim && op.operand(1).ndim() == ndim &&
                    numbers->rhs.spatial.size() == numbers->lhs.spatial.size() &&
                    numbers->result.spatial.size() == numbers->lhs.spatial.size();
  if (!fits) {
    op.fail_shape("operands must have the dims that dimension_numbers name",
                  str(*text, " for ", op.operand_types_text()));
  }
  return *numbers;
}

void expect_groups(const InferContext& op, const ConvolutionNumbers& numbers, int64_t features, int64_t batches) {
  const auto size = [&](size_t operand, int64_t dim) { return op.operand(operand).shape[static_cast<size_t>(dim)]; };
  if (features < 1 || batches < 1 || (features > 1 && batches > 1)) {
    op.fail_shape("feature_group_count and batch_group_count must be positive, and one of them 1",
                  str(features, " and ", batches));
  }
  // Constraints of the specification: a kernel counts the input features of one feature group, but the outputs of all
  // groups. Groups of the batch each read all features.
  const bool fits = size(0, numbers.lhs.batch) % batches == 0 &&
                    size(0, numbers.lhs.feature) == size(1, numbers.rhs.batch) * features &&
                    size(1, numbers.rhs.feature) % (features * batches) == 0;
  if (fits) return;
  op.fail_shape(
      "groups must divide batch and features, and the kernel take the features of one group",
      str("feature_group_count = ", features, ", batch_group_count = ", batches, " for ", op.operand_types_text()));
}

void infer_convolution(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  const ConvolutionNumbers numbers = expect_numbers(op);
  const int64_t features = group_count(op.attrs(), "feature_group_count");
  const int64_t batches = group_count(op.attrs(), "batch_group_count");
  expect_groups(op, numbers, features, batches);
  const Dims& lhs = op.operand(0).shape;
  const Dims& rhs = op.operand(1).shape;
  // A spatial dim of the result has one element per window that fits; the kernel's sizes are the window's.
  const Attrs window = window_attrs(op.attrs(), sizes_at(rhs, numbers.rhs.spatial));
  const Dims windows = infer_windows(op, window, sizes_at(lhs, numbers.lhs.spatial));
  Dims shape(lhs.size(), 0);
  shape[static_cast<size_t>(numbers.result.batch)] = lhs[static_cast<size_t>(numbers.lhs.batch)] / batches;
  shape[static_cast<size_t>(numbers.result.feature)] = rhs[static_cast<size_t>(numbers.rhs.feature)];
  for (size_t i = 0; i < windows.size(); ++i) shape[static_cast<size_t>(numbers.result.spatial[i])] = windows[i];
  results.push_back(contracted(op, std::move(shape)));
}

// ---- rule ----------------------------------------------------------------------------------------------------------

// Windows overlap, so that the input is whole along a spatial dim, or exchanged, unless each block has its own windows.
// The kernel is whole, or each device has some of its taps.
void map_windows(RuleBuilder& rule, const OpView& op, const ConvolutionNumbers& numbers, size_t i) {
  const auto input = static_cast<size_t>(numbers.lhs.spatial[i]), kernel = static_cast<size_t>(numbers.rhs.spatial[i]),
             output = static_cast<size_t>(numbers.result.spatial[i]);
  const Window window = Convolution::of(op).window;
  const int64_t count = op.result_type().shape[output];
  // A window of one element without stride and padding reads the dim at the result's index: nothing moves.
  const FactorId windows = window.is_trivial(i) ? rule.factor(count) : rule.permutation(count);
  rule.map(0, input, windows).map(rule.result_tensor(0), output, windows);
  if (!window.is_trivial(i)) rule.range(0, input, window.range(i));
  rule.map(1, kernel, rule.need_replication(op.operand_type(1).shape[kernel]));
}

ShardingRule rule_convolution(const OpView& op) { return convolution_rule(op, map_windows); }

// An output element takes a product for each tap and each input feature of its group. Taps that meet a hole of a dilated
// input take none:
//
//   input dilated by 2, 3 taps, 8 outputs along a dim: 12 of the 24 pairs
//
// Taps that meet the padding count: kernels compute them.
OpCost cost_convolution(const OpView& op, const LocalTypes& types) {
  const Convolution convolution = Convolution::of(op);
  const ConvolutionNumbers& numbers = convolution.numbers;
  const Dims &kernel = types.operand(1).shape, &result = types.result().shape;
  int64_t products = saturated_product(kernel[static_cast<size_t>(numbers.rhs.batch)],
                                       saturated_product(result[static_cast<size_t>(numbers.result.batch)],
                                                         result[static_cast<size_t>(numbers.result.feature)]));
  for (size_t i = 0; i < numbers.rhs.spatial.size(); ++i) {
    const int64_t pairs = saturated_product(kernel[static_cast<size_t>(numbers.rhs.spatial[i])],
                                            result[static_cast<size_t>(numbers.result.spatial[i])]);
    products = saturated_product(products, ceil_div(pairs, convolution.window.base_dilations[i]));
  }
  OpCost cost = cost_by_rule(op, types);
  cost.matrix = contraction_flops(products, types.result().dtype);
  cost.vector = 0;
  return cost;
}

constexpr Method kConvolutionMethods[] = {
    {kExchange, moved_factors_of_convolution, placements_of_moved_windows, partition_convolution_by_exchange}};

constexpr OpDef kConvolutionOps[] = {{
    .name = "stablehlo.convolution",
    .infer = infer_convolution,
    .rule = rule_convolution,
    .partition = partition_convolution,
    .methods = kConvolutionMethods,
    .prepare = prepare_convolution,
    .cost = cost_convolution,
    .vjp = vjp_convolution,
    .batch = batch_convolution,
    .linear = {Linear::kEach, reducer_bit(Reducer::kSum)},
    .addends = Addends::kWideResult,
    .format = "`(` operands `)` `dim_numbers` `=` custom<conv_dims>($dimension_numbers) `,` `window` `=` "
              "custom<conv_window> attr-dict `:` functional-type",
    .doc = "Sums of products under a moving window (StableHLO convolution).",
}};
static_assert(kConvolutionOps[0].complete());

}  // namespace

std::optional<ConvolutionNumbers> ConvolutionNumbers::parse(std::string_view text) {
  const auto lhs = take_dims(text, "b", "f");
  if (!lhs || !take(text, "x")) return std::nullopt;
  const auto rhs = take_dims(text, "i", "o");
  if (!rhs || !take(text, "->")) return std::nullopt;
  const auto result = take_dims(text, "b", "f");
  // Drops trailing spaces.
  if (!result || (take(text, ""), !text.empty())) return std::nullopt;
  return ConvolutionNumbers{*lhs, *rhs, *result};
}

ConvolutionNumbers ConvolutionNumbers::of(const OpView& op) { return *parse(*numbers_text(op.attrs())); }

std::string ConvolutionNumbers::text() const {
  const auto side = [](const ConvolutionDims& dims, std::string_view batch, std::string_view feature) {
    std::vector<std::string> names(dims.spatial.size() + 2);
    names[static_cast<size_t>(dims.batch)] = batch;
    names[static_cast<size_t>(dims.feature)] = feature;
    for (size_t i = 0; i < dims.spatial.size(); ++i) names[static_cast<size_t>(dims.spatial[i])] = str(i);
    return str("[", join(names, ", "), "]");
  };
  return str(side(lhs, "b", "f"), "x", side(rhs, "i", "o"), "->", side(result, "b", "f"));
}

Convolution Convolution::of(const OpView& op) {
  Convolution found{.numbers = ConvolutionNumbers::of(op), .window = {}, .reversed = {}};
  const Dims sizes = sizes_at(op.operand_type(1).shape, found.numbers.rhs.spatial);
  const auto ndim = static_cast<int64_t>(sizes.size());
  found.window = Window::of(window_attrs(op.attrs(), sizes), ndim);
  const auto* reversal = op.attrs().find<NarrowIntArray>("window_reversal");
  found.reversed = reversal == nullptr ? Dims(sizes.size(), 0) : reversal->values;
  found.feature_groups = group_count(op.attrs(), "feature_group_count");
  found.batch_groups = group_count(op.attrs(), "batch_group_count");
  return found;
}

Attrs Convolution::attrs(const Attrs& others) const {
  Attrs attrs = others;
  const Attrs windows = shardwise::window_attrs(window);
  attrs.set("window_strides", window.strides);
  attrs.set("padding", *windows.find("padding"));
  attrs.set("lhs_dilation", window.base_dilations);
  attrs.set("rhs_dilation", window.dilations);
  attrs.set("window_reversal", NarrowIntArray{1, reversed});
  attrs.set("dimension_numbers", StructAttr{"stablehlo.conv", {{"", numbers.text()}}});
  attrs.set("feature_group_count", IntAttr{feature_groups});
  attrs.set("batch_group_count", IntAttr{batch_groups});
  return attrs;
}

ShardingRule convolution_rule(const OpView& op, MapSpatialDim map_spatial_dim) {
  RuleBuilder rule(op);
  const auto numbers = ConvolutionNumbers::of(op);
  const size_t result = rule.result_tensor(0);
  const int64_t batches = group_count(op.attrs(), "batch_group_count");
  const int64_t features = group_count(op.attrs(), "feature_group_count");
  const auto at = [](int64_t dim) { return static_cast<size_t>(dim); };
  const auto kernel_size = [&](int64_t dim) { return op.operand_type(1).shape[at(dim)]; };
  const auto map_outputs = [&](FactorId factor) {
    rule.map(1, at(numbers.rhs.feature), factor).map(result, at(numbers.result.feature), factor);
  };
  // Groups are the major factor of the dims that they divide: shards of these dims then have whole groups.
  //
  //   batch_group_count = 2, lhs [4, 8, 3], rhs [2, 3, 6]     batch of lhs: (group 2, batch 2); outputs: (group 2, 3)
  const auto map_groups = [&](int64_t count, int64_t dim) {
    if (count <= 1) return;
    const FactorId group = rule.factor(count);
    rule.map(0, at(dim), group);
    map_outputs(group);
  };
  map_groups(batches, numbers.lhs.batch);
  const FactorId batch = rule.factor(op.result_type().shape[at(numbers.result.batch)]);
  rule.map(0, at(numbers.lhs.batch), batch).map(result, at(numbers.result.batch), batch);
  for (size_t i = 0; i < numbers.lhs.spatial.size(); ++i) map_spatial_dim(rule, op, numbers, i);
  map_groups(features, numbers.lhs.feature);
  const FactorId summed = rule.reduction(kernel_size(numbers.rhs.batch), Reducer::kSum);
  rule.map(0, at(numbers.lhs.feature), summed).map(1, at(numbers.rhs.batch), summed);
  const int64_t outputs = kernel_size(numbers.rhs.feature) / (features * batches);
  if (outputs > 1) map_outputs(rule.factor(outputs));
  return rule.build();
}

std::span<const OpDef> convolution_ops() { return kConvolutionOps; }

}  // namespace shardwise
