// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/row_moves.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

NdArray integers(DType dtype, DimSpan values) {
  const NdArray array = NdArray::empty(dtype, {std::ssize(values)});
  for (int64_t i = 0; i < array.size(); ++i) {
    store(scalar_of(dtype, values[static_cast<size_t>(i)]), array.data() + i * item_size(dtype));
  }
  return array;
}

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

ValueId slice_rows(Builder& builder, ValueId value, int64_t dim, int64_t start, int64_t limit) {
  const Dims shape = builder.module().type(value).shape;
  Dims first(shape.size(), 0), last = shape;
  const Dims strides(shape.size(), 1);
  first[static_cast<size_t>(dim)] = start;
  last[static_cast<size_t>(dim)] = limit;
  return build_slice(builder, value, first, last, strides);
}

ValueId shift_rows(Builder& builder, ValueId value, int64_t dim, const Shift& shift) {
  const TensorType type = builder.module().type(value);
  const int64_t count = type.shape[static_cast<size_t>(dim)];
  if (shift.wraps) {
    const ValueId last = slice_rows(builder, value, dim, count - shift.distance, count);
    return build_concatenate(builder, {last, slice_rows(builder, value, dim, 0, count - shift.distance)}, dim);
  }
  Dims low(type.shape.size(), 0), high = low;
  const Dims interior = low;
  low[static_cast<size_t>(dim)] = shift.distance;
  high[static_cast<size_t>(dim)] = -shift.distance;
  return build_pad(builder, value, build_zeros(builder, {type.dtype, {}}), low, high, interior);
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
  const ValueId indices =
      build_reshape(builder, build_constant(builder, integers(DType::kI64, places)), Dims{std::ssize(places), 1});
  const ValueId rows = builder.create("stablehlo.gather", {value, indices},
                                      Attrs{{"dimension_numbers", numbers}, {"slice_sizes", slice}});
  if (!contains_dim(received, 0)) return rows;
  const ValueId mask = build_constant(builder, integers(DType::kBool, received));
  return builder.create("stablehlo.select",
                        {build_broadcast(builder, mask, type.shape, Dims{dim}), rows, build_zeros(builder, type)});
}

}  // namespace

ValueId move_rows(Builder& builder, ValueId value, int64_t dim, DimSpan sources) {
  if (std::ranges::all_of(sources, [](int64_t source) { return source < 0; })) {
    return build_zeros(builder, builder.module().type(value));
  }
  const std::optional<Shift> shift = shift_of(sources);
  if (shift) return shift->distance == 0 ? value : shift_rows(builder, value, dim, *shift);
  if (is_reversal(sources)) return build_reverse(builder, value, Dims{dim});
  return gather_rows(builder, value, dim, sources);
}

}  // namespace shardwise
