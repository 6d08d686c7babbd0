// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/collectives/row_moves.h"

#include <algorithm>
#include <map>
#include <optional>

#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

// row - source, if all rows have the same one; `wrap`: also those at the end.
struct Shift {
  int64_t distance = 0;
  bool wraps = false;
};

std::optional<Shift> shift_of(DimSpan sources) {
  const int64_t count = std::ssize(sources);
  for (const bool wraps : {false, true}) {
    for (int64_t distance = wraps ? 1 : 1 - count; distance < count; ++distance) {
      bool fits = true;
      for (int64_t row = 0; fits && row < count; ++row) {
        const int64_t from = row - distance;
        const bool exists = wraps || (from >= 0 && from < count);
        fits = sources[static_cast<size_t>(row)] == (exists ? (from + count) % count : -1);
      }
      if (fits) return Shift{distance, wraps};
    }
  }
  return std::nullopt;
}

ValueId shift_rows(Builder& builder, ValueId value, int64_t dim, const Shift& shift) {
  const TensorType type = builder.module().type(value);
  const auto d = static_cast<size_t>(dim);
  const int64_t kept = type.shape[d] - shift.distance;
  if (shift.wraps) {
    const ValueId last = build_slice_along(builder, value, d, kept, type.shape[d]);
    return build_concatenate(builder, {last, build_slice_along(builder, value, d, 0, kept)}, dim);
  }
  return build_pad_along(builder, value, 0, d, shift.distance, -shift.distance);
}

bool is_reversal(DimSpan sources) {
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] != std::ssize(sources) - 1 - static_cast<int64_t>(i)) return false;
  }
  return true;
}

ValueId gather_rows(Builder& builder, ValueId value, int64_t dim, DimSpan sources) {
  const TensorType type = builder.module().type(value);
  Dims slice = type.shape, places = to_dims(sources), received;
  slice[static_cast<size_t>(dim)] = 1;
  for (int64_t& place : places) {
    received.push_back(place >= 0 ? 1 : 0);
    place = std::max<int64_t>(place, 0);
  }
  const StructAttr numbers{"stablehlo.gather",
                           {{"offset_dims", other_dims(type.ndim(), Dims{dim})},
                            {"collapsed_slice_dims", Dims{dim}},
                            {"start_index_map", Dims{dim}},
                            {"index_vector_dim", IntAttr{1}}}};
  const ValueId indices = build_reshape(builder, build_list(builder, DType::kI64, places), Dims{std::ssize(places), 1});
  const ValueId rows = builder.create("stablehlo.gather", {value, indices},
                                      Attrs{{"dimension_numbers", numbers}, {"slice_sizes", slice}});
  if (!contains_dim(received, 0)) return rows;
  const ValueId mask = build_list(builder, DType::kBool, received);
  return builder.create("stablehlo.select",
                        {build_broadcast(builder, mask, type.shape, Dims{dim}), rows, build_zeros(builder, type)});
}

// The moves of blocks of `minor` rows, if each block moves as a whole.
std::optional<Dims> moves_of_blocks(DimSpan sources, int64_t minor) {
  Dims blocks;
  for (int64_t row = 0; row < std::ssize(sources); ++row) {
    const int64_t source = sources[static_cast<size_t>(row)];
    const bool is_first = row % minor == 0;
    if (is_first) blocks.push_back(source < 0 ? -1 : source / minor);
    if (source != (blocks.back() < 0 ? -1 : blocks.back() * minor + row % minor)) return std::nullopt;
  }
  return blocks;
}

// The moves of the rows of a block, if all blocks are alike.
std::optional<Dims> moves_in_blocks(DimSpan sources, int64_t minor) {
  const Dims inside(sources.begin(), sources.begin() + minor);
  for (int64_t row = 0; row < std::ssize(sources); ++row) {
    const int64_t source = inside[static_cast<size_t>(row % minor)];
    if (source >= minor || sources[static_cast<size_t>(row)] != (source < 0 ? -1 : row - row % minor + source)) {
      return std::nullopt;
    }
  }
  return inside;
}

// Moves blocks of rows, or rows in blocks: partners of a butterfly are neighbors in one of them.
ValueId move_by_blocks(Builder& builder, ValueId value, int64_t dim, DimSpan sources) {
  const Dims shape = builder.module().type(value).shape;
  const int64_t count = std::ssize(sources);
  for (int64_t minor = 2; minor <= count / 2; ++minor) {
    if (count % minor != 0) continue;
    const std::optional<Dims> blocks = moves_of_blocks(sources, minor);
    const std::optional<Dims> inside = blocks ? std::nullopt : moves_in_blocks(sources, minor);
    if (!blocks && !inside) continue;
    Dims split = shape;
    split[static_cast<size_t>(dim)] = count / minor;
    split.insert(split.begin() + dim + 1, minor);
    const ValueId apart = build_reshape(builder, value, split);
    return build_reshape(builder, move_rows(builder, apart, blocks ? dim : dim + 1, blocks ? *blocks : *inside), shape);
  }
  return {};
}

// One permutation of shards for each distance, as long as these are fewer than half of the rows.
ValueId move_by_distances(Builder& builder, ValueId value, int64_t dim, DimSpan sources) {
  const TensorType type = builder.module().type(value);
  const int64_t count = std::ssize(sources);
  std::map<int64_t, Dims> rows_at;  // by distance: 1 for the rows that come from there
  for (int64_t row = 0; row < count; ++row) {
    const int64_t source = sources[static_cast<size_t>(row)];
    if (source < 0) continue;
    Dims& rows = rows_at[(row - source + count) % count];
    rows.resize(static_cast<size_t>(count));
    rows[static_cast<size_t>(row)] = 1;
  }
  if (2 * std::ssize(rows_at) > count) return {};
  ValueId moved = build_zeros(builder, type);
  for (const auto& [distance, rows] : rows_at) {
    const ValueId near = distance == 0 ? value : shift_rows(builder, value, dim, {distance, true});
    const ValueId mask = build_list(builder, DType::kBool, rows);
    moved = builder.create("stablehlo.select", {build_broadcast(builder, mask, type.shape, Dims{dim}), near, moved});
  }
  return moved;
}

}  // namespace

ValueId move_rows(Builder& builder, ValueId value, int64_t dim, DimSpan sources) {
  if (std::ranges::all_of(sources, [](int64_t source) { return source < 0; })) {
    return build_zeros(builder, builder.module().type(value));
  }
  const std::optional<Shift> shift = shift_of(sources);
  if (shift) return shift->distance == 0 ? value : shift_rows(builder, value, dim, *shift);
  if (is_reversal(sources)) return build_reverse(builder, value, Dims{dim});
  if (const ValueId moved = move_by_blocks(builder, value, dim, sources)) return moved;
  if (const ValueId moved = move_by_distances(builder, value, dim, sources)) return moved;
  return gather_rows(builder, value, dim, sources);
}

}  // namespace shardwise
