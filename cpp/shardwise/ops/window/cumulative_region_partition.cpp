// SPDX-License-Identifier: Apache-2.0
//
// Cumulative ops by any associative region along sharded dims: as those by a known reducer (cumulative_partition.cpp), but
// elements are combined in their order, because the region may not commute.
//
//   forward     region(totals of the shards before, own rows)
//   reverse     region(own rows, totals of the shards after)
#include <algorithm>
#include <cmath>
#include <cstring>

#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/regions.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/region_tiles.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/ops/shared/windows.h"
#include "shardwise/ops/window/cumulative_rows.h"
#include "shardwise/tile/program.h"

namespace shardwise {
namespace {

using Values = std::vector<ValueId>;

// ---- init values ---------------------------------------------------------------------------------------------------

// Numbers of all sizes that the dtype has: an init value such as -500 is neutral for small numbers alone.
std::vector<double> sample_floats(DType dtype) {
  std::vector<double> numbers = {0.0,  1.0,   -1.0,  0.3,  -0.7,  2.0,   3.0,   -5.5, 17.25,
                                 -21., 100.0, -99.0, 1e-3, -1e-4, 0.125, 63.75, 7.0,  11.0};
  std::vector<std::byte> element(static_cast<size_t>(item_size(dtype)));
  const auto is_stored = [&](double number) {
    store(Scalar::of_float(dtype, number), element.data());
    return load(dtype, element.data()).real == number;
  };
  std::vector<double> powers;  // the largest first
  for (int exponent = 1023; exponent >= -1022; --exponent) {
    if (is_stored(std::ldexp(1.0, exponent))) powers.push_back(std::ldexp(1.0, exponent));
  }
  constexpr size_t kMost = 24;
  const size_t step = ceil_div(std::ssize(powers), kMost);
  for (size_t i = 0; i < powers.size(); i += step) numbers.insert(numbers.end(), {powers[i], -powers[i]});
  return numbers;
}

std::vector<Scalar> sample_integers(DType dtype) {
  std::vector<Scalar> samples;
  const int bits = bit_width(dtype);
  for (int64_t number = 0; number < 8; ++number) samples.push_back(Scalar::of_int(dtype, number));
  for (int bit = 3; bit < bits; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    if (is_unsigned_integer(dtype)) {
      samples.insert(samples.end(), {Scalar::of_uint(dtype, power), Scalar::of_uint(dtype, power + power - 1)});
    } else {
      // The smallest number is that of the last bit alone; the complements have all bits below it.
      const int64_t low = -static_cast<int64_t>(power - 1) - 1;
      samples.insert(samples.end(), {Scalar::of_int(dtype, low), Scalar::of_int(dtype, -(low + 1))});
    }
  }
  return samples;
}

std::vector<Scalar> samples_of(DType dtype) {
  if (dtype == DType::kBool) return {Scalar::of_int(dtype, 0), Scalar::of_int(dtype, 1)};
  if (is_integer(dtype)) return sample_integers(dtype);
  std::vector<Scalar> samples;
  for (const double number : sample_floats(is_complex(dtype) ? part_of_complex(dtype) : dtype)) {
    samples.push_back(is_complex(dtype) ? Scalar::of_complex(dtype, number, -number) : Scalar::of_float(dtype, number));
  }
  return samples;
}

// The samples of a dtype, over and over; each input begins with another one.
std::vector<std::byte> lanes_of(DType dtype, size_t count, size_t first) {
  const std::vector<Scalar> samples = samples_of(dtype);
  const auto item = static_cast<size_t>(item_size(dtype));
  std::vector<std::byte> lanes(count * item);
  for (size_t k = 0; k < count; ++k) store(samples[(first + k) % samples.size()], lanes.data() + k * item);
  return lanes;
}

bool runs_in_tiles(const Module& module, RegionId region) {
  if (!not_in_tiles(module, region).empty()) return false;
  return std::ranges::all_of(module.region(region).ops, [&](OpId id) {
    const OpView op(module, id);
    return op.operand_count() == 0 ? splat_value(module, op.result()).has_value() : op.def().tile != nullptr;
  });
}

// Whether the region gives the samples back that it combines with the init values, on either side.
bool keeps_samples(const OpView& op, const std::vector<Scalar>& inits) {
  constexpr size_t kLanes = 144;  // as many as the samples of the dtype that has most
  const TileProgram program = region_tiles(op.module(), op.regions()[0]);
  std::vector<std::vector<std::byte>> elements, fills, results;
  for (const Scalar& init : inits) {
    elements.push_back(lanes_of(init.dtype, kLanes, 5 * elements.size()));
    fills.emplace_back(elements.back().size());
    results.emplace_back(elements.back().size());
    const auto item = static_cast<size_t>(item_size(init.dtype));
    for (size_t k = 0; k < kLanes; ++k) store(init, fills.back().data() + k * item);
  }
  for (const bool init_first : {true, false}) {
    std::vector<const void*> inputs;
    for (const auto& items : init_first ? fills : elements) inputs.push_back(items.data());
    for (const auto& items : init_first ? elements : fills) inputs.push_back(items.data());
    std::vector<void*> outputs;
    for (auto& items : results) outputs.push_back(items.data());
    TileRunner(program).run(inputs, outputs, kLanes);
    if (results != elements) return false;
  }
  return true;
}

// ---- partition -----------------------------------------------------------------------------------------------------

// The exclusive scan of the totals of one dim's shards; each value has one row along the dim.
class RegionTotals {
 public:
  RegionTotals(PartitionContext& context, const std::vector<Scalar>& inits, size_t dim, Prefix prefix)
      : context_(context),
        builder_(context.builder()),
        inits_(inits),
        dim_(dim),
        layout_(context.result_layout(0).dim(dim)),
        is_forward_(prefix == Prefix::kForward) {}

  Values gathered(const Values& totals) {
    Values operands;
    for (size_t i = 0; i < totals.size(); ++i) {
      const ValueId all = explained(create_all_gather(builder_, context_.mesh(), totals[i], dim_, layout_.axes));
      const Dims shape = builder_.module().type(all).shape;
      const ValueId others =
          build_other_shards(builder_, context_.axis_index(layout_.axes), layout_.shards, is_forward_);
      const ValueId mask = build_broadcast(builder_, others, shape, Dims{static_cast<int64_t>(dim_)});
      operands.push_back(builder_.create("stablehlo.select", {mask, all, build_splat(builder_, shape, inits_[i])}));
    }
    for (const Scalar& init : inits_) operands.push_back(build_scalar(builder_, init));
    const OpView op = context_.op();
    Values reduced =
        build_region_reduce(builder_, op.module(), op.regions()[0], operands, Dims{static_cast<int64_t>(dim_)}, false);
    for (size_t i = 0; i < totals.size(); ++i) {
      reduced[i] = build_reshape(builder_, reduced[i], builder_.module().type(totals[i]).shape);
    }
    return reduced;
  }

  // Each device scans the totals of all shards, for its own part of the columns.
  Values by_columns(const Values& totals) {
    Values rows;
    for (size_t i = 0; i < totals.size(); ++i) {
      const int64_t count = builder_.module().type(totals[i]).size();
      const int64_t whole = ceil_div(count, layout_.shards) * layout_.shards;
      const ValueId row = build_reshape(builder_, totals[i], Dims{1, count});
      const ValueId padded =
          create_pad(builder_, row, build_scalar(builder_, inits_[i]), Dims{0, 0}, Dims{0, whole - count});
      rows.push_back(without_own(exchanged(padded, 0, 1), inits_[i]));
    }
    const Values scanned = prefixes(rows);
    Values found;
    for (size_t i = 0; i < totals.size(); ++i) {
      const TensorType type = builder_.module().type(totals[i]);
      const ValueId back = exchanged(scanned[i], 1, 0);
      found.push_back(
          build_reshape(builder_, create_slice(builder_, back, Dims{0, 0}, Dims{1, type.size()}), type.shape));
    }
    return found;
  }

 private:
  ValueId explained(ValueId collective) { return context_.explain(collective, static_cast<int64_t>(dim_)); }

  ValueId exchanged(ValueId value, int64_t from_dim, int64_t to_dim) {
    const AllToAllMove move{layout_.axes, from_dim, to_dim};
    return explained(create_all_to_all(builder_, context_.mesh(), value, {&move, 1}));
  }

  ValueId without_own(ValueId rows, const Scalar& init) {
    const TensorType type = builder_.module().type(rows);
    const ValueId first = build_splat(builder_, Dims{1, type.shape[1]}, init);
    if (is_forward_) {
      return build_concatenate(builder_, {first, rows_between(builder_, rows, 0, 0, type.shape[0] - 1)}, 0);
    }
    return build_concatenate(builder_, {rows_between(builder_, rows, 0, 1, type.shape[0]), first}, 0);
  }

  Values prefixes(Values rows) {
    Window window = Window::trivial(2);
    window.set_prefix(0, layout_.shards, is_forward_ ? Prefix::kForward : Prefix::kReverse);
    std::vector<TypeId> types;
    for (const ValueId row : rows) types.push_back(builder_.module().value(row).type);
    for (const Scalar& init : inits_) rows.push_back(build_scalar(builder_, init));
    const AttrsId attrs = builder_.context().intern(window_attrs(window));
    return list_of_results(builder_.module(), create_again(builder_, context_.op(), rows, attrs, types));
  }

  PartitionContext& context_;
  Builder& builder_;
  const std::vector<Scalar>& inits_;
  size_t dim_;
  DimLayout layout_;
  bool is_forward_;
};

void partition_region(PartitionContext& context, Values (RegionTotals::*scan)(const Values&)) {
  Builder& builder = context.builder();
  const OpView op = context.op();
  const std::vector<Scalar> inits = neutral_inits(op);
  const LayoutView layout = context.result_layout(0);
  const Window window = Window::of(op);
  Window local = window;
  std::vector<size_t> sharded;
  for (size_t dim = 0; dim < layout.ndim(); ++dim) {
    if (window.is_trivial(dim) || layout.axes(dim).empty()) continue;
    local.set_prefix(dim, layout.block(dim), window.prefix(dim, layout.dim(dim).size));
    sharded.push_back(dim);
  }
  Values operands;
  for (size_t i = 0; i < inits.size(); ++i) {
    ValueId operand = context.operand(i);
    for (const size_t dim : sharded) operand = context.masked_operand(i, context.rule().dim(i, dim)[0], inits[i]);
    operands.push_back(operand);
  }
  for (size_t i = 0; i < inits.size(); ++i) operands.push_back(context.operand(inits.size() + i));
  const AttrsId attrs = builder.context().intern(window_attrs(local));
  Values values =
      list_of_results(builder.module(), create_again(builder, op, operands, attrs, local_result_types(context)));
  for (const size_t dim : sharded) {
    const Prefix prefix = window.prefix(dim, layout.dim(dim).size);
    const bool is_forward = prefix == Prefix::kForward;
    const int64_t last = is_forward ? layout.block(dim) - 1 : 0;
    const Dims shape = builder.module().type(values[0]).shape;
    if (element_count(shape) == 0) break;
    Values totals;
    for (const ValueId value : values) totals.push_back(rows_between(builder, value, dim, last, last + 1));
    RegionTotals scans(context, inits, dim, prefix);
    Values others = (scans.*scan)(totals);
    for (ValueId& other : others) other = repeated_row(builder, other, shape);
    Values combined = is_forward ? others : values;
    combined.insert(combined.end(), (is_forward ? values : others).begin(), (is_forward ? values : others).end());
    values = apply_region(builder, op.module(), op.regions()[0], combined);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    context.set_result(i, values[i], result_padding(context.result_layout(i)));
  }
}

}  // namespace

std::vector<Scalar> neutral_inits(const OpView& op) {
  std::vector<Scalar> inits;
  const size_t inputs = op.result_count();
  for (size_t i = 0; i < inputs; ++i) {
    const std::optional<Scalar> init = splat_value(op.module(), op.operand(inputs + i));
    if (!init || op.operand_type(i).dtype != op.result_type(i).dtype || bit_width(init->dtype) < 8) return {};
    inits.push_back(*init);
  }
  if (!runs_in_tiles(op.module(), op.regions()[0]) || !keeps_samples(op, inits)) return {};
  return inits;
}

void partition_region_by_gathered_totals(PartitionContext& context) {
  partition_region(context, &RegionTotals::gathered);
}

void partition_region_by_totals(PartitionContext& context) { partition_region(context, &RegionTotals::by_columns); }

}  // namespace shardwise
