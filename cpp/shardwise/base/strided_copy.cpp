// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/strided_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "shardwise/base/moved_item.h"
#include "shardwise/base/nested_dims.h"
#include "shardwise/base/xtensor_line.h"

namespace shardwise {
namespace {

struct CopyDim {
  int64_t size;
  int64_t to;    // bytes
  int64_t from;  // bytes
};

constexpr int64_t kTileBytes = 64;  // one cache line

// Orders dims as in the destination's memory, drops dims of size 1, and merges neighbors that nest.
std::vector<CopyDim> normalised(DimSpan shape, DimSpan to_strides, DimSpan from_strides) {
  std::vector<CopyDim> dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) dims.push_back({shape[d], to_strides[d], from_strides[d]});
  }
  // The destination decides: writes that jump cost more than reads, as each one first loads its cache line.
  const auto stride = [](const CopyDim& dim) { return dim.to; };
  // Two dims nest if a step of the outer one is an entire pass of the inner one: strides {12, 4} of {2, 3} floats are 6
  // in a row. Contiguous arrays become a single memcpy.
  const auto nests = [](const CopyDim& outer, const CopyDim& inner) {
    return outer.to == inner.to * inner.size && outer.from == inner.from * inner.size;
  };
  sort_and_merge(dims, stride, nests);
  return dims;
}

// Calls body(to, from) for every index of `dims`.
template <class F>
void for_each(std::span<const CopyDim> dims, std::byte* to, const std::byte* from, F&& body) {
  std::vector<int64_t> index(dims.size(), 0);
  while (true) {
    body(to, from);
    size_t d = dims.size();
    while (d-- > 0) {
      if (++index[d] < dims[d].size) {
        to += dims[d].to;
        from += dims[d].from;
        break;
      }
      to -= dims[d].to * (dims[d].size - 1);
      from -= dims[d].from * (dims[d].size - 1);
      index[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

template <class T>
void copy_row(const CopyDim& row, std::byte* to, const std::byte* from) {
  constexpr int64_t kItem = sizeof(T);
  if (row.to == kItem && row.from == kItem) {
    std::memcpy(to, from, static_cast<size_t>(row.size * kItem));
    return;
  }
  auto* target = reinterpret_cast<T*>(to);
  const auto* source = reinterpret_cast<const T*>(from);
  if (row.to == kItem) {  // a separate case, so that the compiler knows the stride of the stores
    auto line = xtensor_line(target, row.size);
    // A broadcast source has stride 0: one load serves the whole row.
    if (row.from == 0) {
      line.fill(*source);
    } else {
      xt::noalias(line) = xtensor_line(source, row.size, row.from / kItem);
    }
  } else {
    auto line = xtensor_line(target, row.size, row.to / kItem);
    xt::noalias(line) = xtensor_line(source, row.size, row.from / kItem);
  }
}

// `row` follows the destination's memory and `column` the source's. A tile that stays in registers and L1 touches each
// cache line of either side once. Reading down a column with a power-of-two stride would evict every line before its
// second element is used.
template <class T>
void copy_transposed(const CopyDim& row, const CopyDim& column, std::byte* to, const std::byte* from) {
  constexpr int64_t kItem = sizeof(T);
  constexpr int64_t kTile = kTileBytes / kItem;
  T tile[kTile][kTile];
  for (int64_t r = 0; r < row.size; r += kTile) {
    const int64_t rows = std::min(kTile, row.size - r);
    for (int64_t c = 0; c < column.size; c += kTile) {
      const int64_t columns = std::min(kTile, column.size - c);
      const std::byte* source = from + r * row.from + c * kItem;
      for (int64_t i = 0; i < rows; ++i) {
        std::memcpy(tile[i], source + i * row.from, static_cast<size_t>(columns * kItem));
      }
      std::byte* target = to + r * row.to + c * column.to;
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t i = 0; i < rows; ++i) {
          std::memcpy(target + j * column.to + i * row.to, &tile[i][j], sizeof(T));
        }
      }
    }
  }
}

template <class T>
void copy_items(std::vector<CopyDim> dims, std::byte* to, const std::byte* from) {
  constexpr int64_t kItem = sizeof(T);
  if (dims.empty()) {
    std::memcpy(to, from, sizeof(T));
    return;
  }
  const CopyDim row = dims.back();
  dims.pop_back();
  // Another dim that is dense in the source makes this a transpose. A row of stride 0 reads one item only, so it has no
  // cache lines to save.
  const auto column = std::find_if(dims.begin(), dims.end(), [](const CopyDim& dim) { return dim.from == kItem; });
  if (row.from != kItem && row.from != 0 && column != dims.end()) {
    const CopyDim along_source = *column;
    dims.erase(column);
    for_each(dims, to, from, [&](std::byte* t, const std::byte* f) { copy_transposed<T>(row, along_source, t, f); });
  } else {
    for_each(dims, to, from, [&](std::byte* t, const std::byte* f) { copy_row<T>(row, t, f); });
  }
}

bool is_aligned(int64_t item_size, std::span<const CopyDim> dims, const std::byte* to, const std::byte* from) {
  const auto fits = [&](int64_t stride) { return stride % item_size == 0; };
  const auto starts = [&](const std::byte* address) {  // a complex128 starts where its real part may
    return reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(std::min<int64_t>(item_size, 8)) == 0;
  };
  return starts(to) && starts(from) &&
         std::ranges::all_of(dims, [&](const CopyDim& dim) { return fits(dim.to) && fits(dim.from); });
}

}  // namespace

void copy_strided(int64_t item_size, DimSpan shape, std::byte* to, DimSpan to_strides, const std::byte* from,
                  DimSpan from_strides) {
  if (element_count(shape) == 0) return;
  std::vector<CopyDim> dims = normalised(shape, to_strides, from_strides);
  if (!is_aligned(item_size, dims, to, from)) {  // a misaligned user array: copy byte by byte
    // The bytes of an item are one more dim, the innermost one, dense on both sides.
    dims.push_back({item_size, 1, 1});
    item_size = 1;
  }
  dispatch_moved(item_size, [&]<class T>() { copy_items<T>(std::move(dims), to, from); });
}

}  // namespace shardwise
