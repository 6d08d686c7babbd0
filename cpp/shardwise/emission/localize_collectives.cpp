// SPDX-License-Identifier: Apache-2.0
#include "shardwise/emission/localize_collectives.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/narrow_float.h"
#include "shardwise/base/text.h"
#include "shardwise/emission/cause.h"
#include "shardwise/mesh/permute_axes.h"
#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/reshard/movement.h"

namespace shardwise {
namespace {

// ---- shapes --------------------------------------------------------------------------------------------------------

std::vector<AxisList> dim_axes(const LayoutView& layout) {
  std::vector<AxisList> dims;
  for (size_t d = 0; d < layout.ndim(); ++d) dims.push_back(layout.axes(d));
  return dims;
}

// Trims dims that are longer than `shape`.
ValueId trimmed(Builder& builder, ValueId value, const Dims& shape) {
  if (builder.module().type(value).shape == shape) return value;
  return build_slice(builder, value, Dims(shape.size(), 0), shape, Dims(shape.size(), 1));
}

// Pads dims that are shorter than `shape` with zeros.
ValueId padded(Builder& builder, ValueId value, const Dims& shape) {
  const TensorType type = builder.module().type(value);
  if (type.shape == shape) return value;
  Dims high(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) high[d] = shape[d] - type.shape[d];
  const Dims none(shape.size(), 0);
  return build_pad(builder, value, build_scalar(builder, scalar_of(type.dtype, 0)), none, high, none);
}

// The padding of `to` when it contains copies of the padding of `from` and, if `with_zeros`, new zeros.
Padding moved_padding(const LayoutView& from, const LayoutView& to, const Padding& given, bool with_zeros,
                      DType dtype) {
  if (!to.is_uneven()) return {};
  const Padding zeros{Padding::Kind::kFill, scalar_of(dtype, 0)};
  const bool had_padding = from.is_uneven();
  if (!had_padding && with_zeros) return zeros;
  // Old and new padding may be in one dim, so they must have the same fill for the result to have one.
  if (had_padding && given.kind == Padding::Kind::kFill && (!with_zeros || given == zeros)) return given;
  return {Padding::Kind::kGarbage, {}};
}

// ---- values that one device has ------------------------------------------------------------------------------------

DType bits_dtype(DType dtype) {
  switch (item_size(dtype)) {
    case 1: return DType::kU8;
    case 2: return DType::kU16;
    case 4: return DType::kU32;
    default: return DType::kU64;
  }
}

ValueId build_bitcast(Builder& builder, ValueId value, DType dtype) {
  const TypeId type = builder.context().tensor(dtype, builder.module().type(value).shape);
  return builder.create("stablehlo.bitcast_convert", {value}, {}, {type});
}

// Exchanges the bits of −0 and of 0. Formats without −0 have 0 in its place.
ValueId flip_zero(Builder& builder, ValueId bits, DType dtype) {
  const TensorType type = builder.module().type(bits);
  const uint64_t sign = uint64_t{1} << (bit_width(dtype) - 1);
  const uint64_t zero = is_narrow_float(dtype) ? narrow_float_bits(dtype, -0.0).value_or(0) : sign;
  if (zero == 0) return bits;
  const Scalar pattern = scalar_of(type.dtype, static_cast<int64_t>(zero));
  return builder.create("stablehlo.xor", {bits, build_splat(builder, type.shape, pattern)});
}

// A value as integers of which −0 is 0; a complex one has both parts along a new last dim.
ValueId build_bits(Builder& builder, ValueId value) {
  const TensorType type = builder.module().type(value);
  if (!is_complex(type.dtype))
    return flip_zero(builder, build_bitcast(builder, value, bits_dtype(type.dtype)), type.dtype);
  Dims shape = type.shape;
  shape.push_back(1);
  std::vector<ValueId> parts;
  for (const std::string_view part : {"stablehlo.real", "stablehlo.imag"}) {
    parts.push_back(build_reshape(builder, build_bits(builder, builder.create(part, {value})), shape));
  }
  return build_concatenate(builder, parts, type.ndim());
}

ValueId build_from_bits(Builder& builder, ValueId bits, DType dtype) {
  if (!is_complex(dtype)) return build_bitcast(builder, flip_zero(builder, bits, dtype), dtype);
  Dims shape = builder.module().type(bits).shape, start(shape.size(), 0), limit = shape;
  shape.pop_back();
  ValueId parts[2];
  for (int64_t i = 0; i < 2; ++i) {
    start.back() = i;
    limit.back() = i + 1;
    const ValueId part = build_slice(builder, bits, start, limit, Dims(start.size(), 1));
    parts[i] = build_from_bits(builder, build_reshape(builder, part, shape), part_of_complex(dtype));
  }
  return builder.create("stablehlo.complex", {parts[0], parts[1]});
}

// ---- the collectives -----------------------------------------------------------------------------------------------

struct Localizer {
  LocalEmitter& emitter;
  const OpView& op;
  const LocalValue& source;
  const LocalValue& result;
  ValueId operand = source.value;
  const LayoutView from = source.layout(emitter.builder().context());
  const LayoutView to = result.layout(emitter.builder().context());

  Builder& builder() const { return emitter.builder(); }
  const Mesh& mesh() const { return *emitter.mesh(); }
  Module& module() const { return builder().module(); }
  const Placement& placement(PlacementId id) const { return builder().context().placement(id); }

  ValueId with_cause(ValueId made) const {
    copy_cause(module(), op, made);
    return made;
  }

  // The operand, with the dims in `axes` padded to one block of the result per part.
  ValueId padded_to_split(const std::vector<AxisList>& axes) const {
    Dims shape = module().type(operand).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      // 17 rows split over x=4 are padded to 20: four blocks of 5.
      if (!axes[d].empty()) shape[d] = to.block(d) * product(axes[d]);
    }
    return padded(builder(), operand, shape);
  }

  ValueId all_gather() const {
    const std::vector<AxisList> axes = resolve(mesh(), op.attrs().get<AxesPerDimAttr>("gathering_axes"));
    return trimmed(builder(), with_cause(create_all_gather(builder(), mesh(), operand, axes)), to.local_shape());
  }

  ValueId all_slice() const {
    const std::vector<AxisList> axes = resolve(mesh(), op.attrs().get<AxesPerDimAttr>("slicing_axes"));
    const ValueId whole = padded_to_split(axes);
    std::vector<ValueId> operands{whole};
    bool wide = false;  // all start indices must have one type
    for (size_t d = 0; d < axes.size(); ++d) {
      wide = wide || (!axes[d].empty() && module().type(start_of(axes[d], d)).dtype == DType::kI64);
    }
    const DType dtype = wide ? DType::kI64 : DType::kI32;
    for (size_t d = 0; d < axes.size(); ++d) {
      operands.push_back(axes[d].empty() ? build_scalar(builder(), scalar_of(dtype, 0))
                                         : build_convert(builder(), start_of(axes[d], d), dtype));
    }
    const OpId slice =
        builder().create_op("stablehlo.dynamic_slice", operands, {{"slice_sizes", IntArray(to.local_shape())}});
    return module().result(slice);
  }

  ValueId start_of(const AxisList& axes, size_t d) const {
    return emitter.shard_offset({.size = to.dim(d).size, .axes = axes, .shards = product(axes), .block = to.block(d)});
  }

  ValueId all_to_all() const {
    std::vector<AllToAllMove> moves;
    std::vector<AxisList> split(to.ndim());
    for (const Attribute& entry : op.attrs().get<AttrArray>("params")) {
      moves.push_back(*move_of(mesh(), entry));  // verified
      // The dim that is split must have equal parts; the one that is gathered is trimmed afterwards.
      split[static_cast<size_t>(moves.back().to_dim)] = moves.back().axes;
    }
    const ValueId exchanged = with_cause(create_all_to_all(builder(), mesh(), padded_to_split(split), moves));
    return trimmed(builder(), exchanged, to.local_shape());
  }

  ValueId collective_permute() const {
    const PermuteAxes axes = permute_axes(dim_axes(from), dim_axes(to));
    // The two sides differ in axes of size 1 at most, along which there is one device.
    if (axes.from.empty()) return operand;
    return with_cause(create_collective_permute(builder(), mesh(), operand, axes.from, axes.to));
  }

  ValueId exchange() const {
    const Placement& before = placement(source.part.placement);
    ExchangeMap map = exchange_between(before, placement(result.part.placement), op.result_type().shape);
    // A replicated operand is on every mesh, whichever its placement names.
    const bool is_across = !before.is_fully_replicated() && !before.mesh->same_devices(mesh());
    map.from_mesh = is_across ? before.mesh : nullptr;
    map.to_mesh = is_across ? emitter.mesh() : nullptr;
    return with_cause(create_exchange(builder(), mesh(), {&operand, 1}, {}, map));
  }

  // The operand as addends. Along axes that shard it, each device has its shard at its place, and neutral elements
  // elsewhere; along others, one device keeps its copy.
  ValueId to_unreduced(bool owned) const {
    AxisList copies = difference(to.unreduced(), from.unreduced());
    bool has_shards = false;
    for (size_t d = 0; d < to.ndim(); ++d) {
      const AxisList axes = difference(from.axes(d), to.axes(d));
      has_shards = has_shards || !axes.empty();
      copies = difference(copies, axes);
    }
    const ValueId value = has_shards ? spread_shard() : operand;
    return copies.empty() ? value : emitter.as_parts(value, copies, to.reducer(), owned);
  }

  ValueId spread_shard() const {
    const TensorType type = module().type(operand);
    const ValueId zero = build_scalar(builder(), scalar_of(DType::kI64, 0));
    Dims shape = type.shape;
    std::vector<ValueId> starts(shape.size(), zero);
    for (size_t d = 0; d < shape.size(); ++d) {
      const AxisList axes = difference(from.axes(d), to.axes(d));
      if (axes.empty()) continue;
      const DimLayout shards{.size = to.dim(d).size, .axes = axes, .shards = product(axes), .block = from.block(d)};
      shape[d] = shards.block * shards.shards;
      if (!to.axes(d).empty() && shape[d] != to.block(d)) {
        fail<ShardingError>(op.name(), "shards of an uneven dim must become addends along all of its axes",
                            str("dim ", d, " in blocks of ", shards.block, " and ", to.block(d)));
      }
      starts[d] = build_convert(builder(), emitter.shard_offset(shards), DType::kI64);
    }
    const ValueId neutral = build_splat(builder(), shape, exact_neutral(to.reducer(), type.dtype));
    return trimmed(builder(), build_dynamic_update_slice(builder(), neutral, operand, starts), to.local_shape());
  }

  // Reduces `value`. A float that one device has is received as its bits: adding zeros would make a signalling NaN
  // quiet. Formats of fewer bits than a byte have no NaN.
  template <class Reduce>
  ValueId reduced(ValueId value, Reduce&& reduce) const {
    const DType dtype = module().type(value).dtype;
    // Among the bits, −0 is 0: the integer sum is the element of the owner, NaNs included.
    const bool moves_bits = is_inexact(dtype) && bit_width(dtype) % 8 == 0 && from.is_owned();
    if (moves_bits) value = build_bits(builder(), value);
    value = with_cause(reduce(value));
    return moves_bits ? build_from_bits(builder(), value, dtype) : value;
  }

  ValueId all_reduce() const {
    const AxisList axes = resolve(mesh(), op.attrs().get<AxesAttr>("reduction_axes").axes);
    return reduced(operand,
                   [&](ValueId value) { return create_all_reduce(builder(), mesh(), value, axes, from.reducer()); });
  }

  ValueId reduce_scatter() const {
    const std::vector<AxisList> scatter = resolve(mesh(), op.attrs().get<AxesPerDimAttr>("reduce_scatter_axes"));
    return reduced(padded_to_split(scatter), [&](ValueId value) {
      std::vector<AxisList> dims = scatter;
      dims.resize(module().type(value).shape.size());  // the bits of a complex value have one more
      return create_reduce_scatter(builder(), mesh(), value, sort_and_merge(joined(scatter)), dims, from.reducer());
    });
  }
};

}  // namespace

void localize_collective(LocalEmitter& emitter, const OpView& op, const LocalValue& operand, LocalValue& result) {
  const Localizer localizer{emitter, op, operand, result};
  const auto set = [&](ValueId value) { result.value = value; };
  const auto set_moved = [&](ValueId value, bool with_zeros) {
    result.value = value;
    result.part.padding =
        moved_padding(localizer.from, localizer.to, operand.part.padding, with_zeros, op.operand_type(0).dtype);
  };
  switch (op.def().traits.collective) {
    case CollectiveKind::kAllGather: return set_moved(localizer.all_gather(), false);
    case CollectiveKind::kAllSlice: return set_moved(localizer.all_slice(), true);
    case CollectiveKind::kAllToAll: return set_moved(localizer.all_to_all(), true);
    case CollectiveKind::kCollectivePermute: return set_moved(localizer.collective_permute(), false);
    case CollectiveKind::kAllReduce: return set(localizer.all_reduce());
    case CollectiveKind::kReduceScatter: return set(localizer.reduce_scatter());
    case CollectiveKind::kExchange: return set(localizer.exchange());
    case CollectiveKind::kToUnreduced: {
      // One device keeps each element, whether the text says so or not.
      const bool is_owned = localizer.from.unreduced().empty() || localizer.from.is_owned();
      set(localizer.to_unreduced(is_owned));
      Placement placement = localizer.placement(result.part.placement);
      placement.is_owned = is_owned && placement.reducer == Reducer::kSum;
      result.part.placement = emitter.builder().context().intern(placement);
      return;
    }
    case CollectiveKind::kNone:
    case CollectiveKind::kAxisIndex: break;
  }
  fail<InternalError>(op.name(), "a collective of the global stage has a local form");
}

}  // namespace shardwise
