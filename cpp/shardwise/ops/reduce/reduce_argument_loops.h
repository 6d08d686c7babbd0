// SPDX-License-Identifier: Apache-2.0
//
// The loops of argmax and argmin over one dim. Only reduce_argument_kernels*.cpp include this.
//
//   along memory    the values of one result are adjacent: a search finds the largest of up to 2,048 values; indices
//                   are read only if it reaches the best value so far
//   across memory   values of neighboring results are adjacent, or each result has few: row by row, 1,024 results
//                   at once
//
// Rows are combined in order, so that the first NaN wins whatever the indices are. Long rows are cut into pieces of
// kPieceItems elements, which threads share; the pieces are combined in order.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "shardwise/base/dims.h"
#include "shardwise/base/dtype.h"
#include "shardwise/mesh/sharding.h"
#include "shardwise/ops/reduce/reduce_loops.h"
#include "shardwise/tile/reductions.h"

namespace shardwise::reduce_loops {

inline constexpr int64_t kScanned = 8;  // values after the first one that equals the extreme, compared one by one

// One operand or result per entry: values, indices. The results' strides are in elements.
struct ArgumentDim {
  int64_t size;
  int64_t value_stride, index_stride, result_stride;
};

struct ArgumentPlan {
  const std::byte* values;
  const std::byte* indices;
  std::vector<ArgumentDim> kept;  // by falling stride of the values
  ArgumentDim reduced;
  int64_t kept_count;
  bool along() const;  // else across
};

struct ArgumentResults {
  const std::byte* init_value;
  const std::byte* init_index;
  std::byte* values;  // row-major
  std::byte* indices;
};

template <class T>
T load_as(const std::byte* from) {
  T item;
  std::memcpy(&item, from, sizeof(T));
  return item;
}

// The items at `from`, contiguous: in place, or copied to `buffer`.
template <class T>
const std::byte* side_by_side(const std::byte* from, int64_t stride, int64_t count, T* buffer) {
  if (stride == static_cast<int64_t>(sizeof(T))) return from;
  for (int64_t k = 0; k < count; ++k) buffer[k] = load_as<T>(from + k * stride);
  return reinterpret_cast<const std::byte*>(buffer);
}

// Whether several results read the same indices, and these ascend, as those of iota do. Of equal values, the first one
// then has the smallest index.
template <class I>
bool reads_ascending(const ArgumentPlan& plan) {
  const auto index = [&](int64_t k) { return load_as<I>(plan.indices + k * plan.reduced.index_stride); };
  for (const ArgumentDim& dim : plan.kept) {
    if (dim.index_stride != 0) return false;
  }
  for (int64_t k = 1; k < plan.reduced.size; ++k) {
    if (plan.kept_count <= 1 || index(k - 1) >= index(k)) return false;
  }
  return true;
}

// Which of two (value, index) pairs wins: a NaN, else the better value, else the smaller index.
template <class V, class I, bool kMax>
struct ArgumentOrder {
  static bool better(V a, V b) { return kMax ? a > b : a < b; }
  static bool is_nan(V value) { return value != value; }

  // The region itself, with (value, index) on the left and (right_value, right_index) on the right.
  static void combine(V& value, I& index, V right_value, I right_index) {
    const bool keep = better(value, right_value) | is_nan(value);
    const I of_equal = std::min(index, right_index);
    const I other = value == right_value ? of_equal : right_index;
    index = keep ? index : other;
    value = keep ? value : right_value;
  }
  static void combine_rows(int64_t width, const V* right_values, const I* right_indices, V* values, I* indices) {
    for (int64_t k = 0; k < width; ++k) combine(values[k], indices[k], right_values[k], right_indices[k]);
  }
};

// The smallest index of the values in [begin, size) of a chunk that equal `top`; the largest integer if none does.
template <class V, class I>
I smallest_index(const std::byte* chunk, const std::byte* index, int64_t index_stride, int64_t begin, int64_t size,
                 V top) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(V));
  const FindEqual find = line_kernels().find_equal[line_column<V>()];
  I smallest = std::numeric_limits<I>::max();
  // Twice as many after each one found: few searches where many values are equal.
  for (int64_t scanned = kScanned; begin < size; scanned *= 2) {
    begin += find(chunk + begin * kItem, size - begin, &top);
    const int64_t end = std::min(begin + scanned, size);
    for (; begin < end; ++begin) {  // without branches: many values may be equal
      const I other = load_as<I>(index + begin * index_stride);
      smallest = std::min(smallest, load_as<V>(chunk + begin * kItem) == top ? other : std::numeric_limits<I>::max());
    }
  }
  return smallest;
}

template <class V, class I, bool kMax>
class ArgumentReduction {
 public:
  ArgumentReduction(const ArgumentPlan& plan, const ArgumentResults& results, const RunPieces& run)
      : plan_(plan), results_(results), run_(run), units_(plan) {
    piece_ = std::max<int64_t>(kPieceItems / units_.width, kRows);
    pieces_ = std::max<int64_t>(ceil_div(plan.reduced.size, piece_), 1);
    ascending_ = !units_.across && reads_ascending<I>(plan);
    find_ = reduction_kernels().find_extreme[kMax ? kFindMax : kFindMin][line_column<V>()];
  }

  void run() {
    const int64_t grain = units_.grain(std::min(piece_, plan_.reduced.size)), width = units_.width;
    if (pieces_ == 1) {
      return run_(units_.count, grain, [&](int64_t begin, int64_t end) {
        if (!units_.across) return find_each(begin, end);
        V values[kSegment];
        I indices[kSegment];
        for (int64_t unit = begin; unit < end; ++unit) {
          start(units_.width_of(unit), values, indices);
          if (plan_.reduced.size > 0) combine_piece(unit, 0, true, values, indices);
          write(unit, values, indices);
        }
      });
    }
    std::vector<V> values(static_cast<size_t>(units_.count * pieces_ * width));
    std::vector<I> indices(values.size());
    run_(units_.count * pieces_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        combine_piece(i / pieces_, i % pieces_, false, values.data() + i * width, indices.data() + i * width);
      }
    });
    for (int64_t unit = 0; unit < units_.count; ++unit) {
      V total[kSegment];
      I index[kSegment];
      start(units_.width_of(unit), total, index);
      for (int64_t i = unit * pieces_; i < (unit + 1) * pieces_; ++i) {
        Order::combine_rows(units_.width_of(unit), values.data() + i * width, indices.data() + i * width, total, index);
      }
      write(unit, total, index);
    }
  }

 private:
  using Order = ArgumentOrder<V, I, kMax>;

  // Offsets of the first kept element of a unit.
  ArgumentDim place(int64_t unit) const {
    int64_t rest = units_.first_kept(unit);
    ArgumentDim place{1, 0, 0, 0};
    for (size_t d = plan_.kept.size(); d-- > 0;) {
      const ArgumentDim& dim = plan_.kept[d];
      const int64_t position = d == 0 ? rest : rest % dim.size;  // saves the division for the usual plan of one dim
      if (d > 0) rest /= dim.size;
      place.value_stride += position * dim.value_stride;
      place.index_stride += position * dim.index_stride;
      place.result_stride += position * dim.result_stride;
    }
    return place;
  }

  // Results of one element each.
  void find_each(int64_t begin, int64_t end) const {
    const V init = load_as<V>(results_.init_value);
    const I init_index = load_as<I>(results_.init_index);
    for (int64_t unit = begin; unit < end; ++unit) {
      const ArgumentDim first = place(unit);
      V best = init;
      I best_index = init_index;
      combine_along(plan_.values + first.value_stride, plan_.indices + first.index_stride, plan_.reduced.size, best,
                    best_index);
      reinterpret_cast<V*>(results_.values)[first.result_stride] = best;
      reinterpret_cast<I*>(results_.indices)[first.result_stride] = best_index;
    }
  }

  void start(int64_t width, V* values, I* indices) const {
    std::fill_n(values, width, load_as<V>(results_.init_value));
    std::fill_n(indices, width, load_as<I>(results_.init_index));
  }
  void write(int64_t unit, const V* values, const I* indices) const {
    const int64_t first = place(unit).result_stride;
    const int64_t step = units_.across ? plan_.kept.back().result_stride : 1;
    for (int64_t k = 0; k < units_.width_of(unit); ++k) {
      reinterpret_cast<V*>(results_.values)[first + k * step] = values[k];
      reinterpret_cast<I*>(results_.indices)[first + k * step] = indices[k];
    }
  }

  // Combines one piece of a unit's rows into `values` and `indices`, or replaces them.
  void combine_piece(int64_t unit, int64_t piece, bool onto, V* values, I* indices) const {
    const ArgumentDim first = place(unit);
    int64_t begin = piece * piece_;
    const int64_t end = std::min(begin + piece_, plan_.reduced.size);
    const std::byte* value = plan_.values + first.value_stride + begin * plan_.reduced.value_stride;
    const std::byte* index = plan_.indices + first.index_stride + begin * plan_.reduced.index_stride;
    if (!onto) {
      for (int64_t k = 0; k < units_.width_of(unit); ++k) {
        values[k] = load_as<V>(value + (units_.across ? k * plan_.kept.back().value_stride : 0));
        indices[k] = load_as<I>(index + (units_.across ? k * plan_.kept.back().index_stride : 0));
      }
      ++begin;
      value += plan_.reduced.value_stride;
      index += plan_.reduced.index_stride;
    }
    if (units_.across) {
      combine_across(value, index, units_.width_of(unit), end - begin, values, indices);
    } else {
      combine_along(value, index, end - begin, *values, *indices);
    }
  }

  void combine_across(const std::byte* value, const std::byte* index, int64_t width, int64_t rows, V* values,
                      I* indices) const {
    V value_buffer[kSegment];
    I index_buffer[kSegment];
    const ArgumentDim& inner = plan_.kept.back();
    for (; rows > 0; --rows) {
      const std::byte* right = side_by_side<V>(value, inner.value_stride, width, value_buffer);
      if (inner.index_stride == 0) {
        const I same = load_as<I>(index);
        for (int64_t k = 0; k < width; ++k) Order::combine(values[k], indices[k], at(right, k), same);
      } else {
        const std::byte* right_index = side_by_side<I>(index, inner.index_stride, width, index_buffer);
        for (int64_t k = 0; k < width; ++k) {
          Order::combine(values[k], indices[k], at(right, k),
                         load_as<I>(right_index + k * static_cast<int64_t>(sizeof(I))));
        }
      }
      value += plan_.reduced.value_stride;
      index += plan_.reduced.index_stride;
    }
  }

  // A NaN on the left wins over everything that follows.
  void combine_along(const std::byte* value, const std::byte* index, int64_t count, V& best, I& best_index) const {
    V buffer[kMostSearched];
    while (count > 0 && !Order::is_nan(best)) {
      const int64_t size = std::min(count, kMostSearched);
      if (size < kShortLine) return combine_few(value, index, size, best, best_index);
      const std::byte* chunk = side_by_side<V>(value, plan_.reduced.value_stride, size, buffer);
      const int64_t found = find_(chunk, size, &best);
      if (found < size) take(chunk, index, found, size, best, best_index);
      count -= size;
      value += size * plan_.reduced.value_stride;
      index += size * plan_.reduced.index_stride;
    }
  }

  void combine_few(const std::byte* value, const std::byte* index, int64_t count, V& best, I& best_index) const {
    V top = best;
    I top_index = best_index;
    for (int64_t k = 0; k < count; ++k) {
      Order::combine(top, top_index, load_as<V>(value + k * plan_.reduced.value_stride),
                     load_as<I>(index + k * plan_.reduced.index_stride));
    }
    best = top;
    best_index = top_index;
  }

  static V at(const std::byte* chunk, int64_t k) { return load_as<V>(chunk + k * static_cast<int64_t>(sizeof(V))); }

  // The value at `found` is the first NaN, or the first of the best ones of the chunk and at least as good as `best`.
  void take(const std::byte* chunk, const std::byte* index, int64_t found, int64_t size, V& best, I& best_index) const {
    const V top = at(chunk, found);
    const I first = load_as<I>(index + found * plan_.reduced.index_stride);
    best_index = best == top ? std::min(best_index, first) : first;
    best = top;
    if (Order::is_nan(top)) return;
    if (!ascending_) {
      const int64_t stride = plan_.reduced.index_stride;
      best_index = std::min(best_index, smallest_index<V, I>(chunk, index, stride, found + 1, size, top));
    }
    if (top != V{0}) return;
    // Among equal values, -0 and +0, the last one is kept.
    int64_t last = size - 1;
    while (at(chunk, last) != top) --last;
    best = at(chunk, last);
  }

  const ArgumentPlan& plan_;
  const ArgumentResults& results_;
  const RunPieces& run_;
  Units units_;
  bool ascending_ = false;
  FindExtreme find_;
  int64_t piece_ = 1, pieces_ = 1;
};

template <class V, class I>
void reduce_argument(const ArgumentPlan& plan, Reducer reducer, const ArgumentResults& results, const RunPieces& run) {
  if (reducer == Reducer::kMax) return ArgumentReduction<V, I, true>(plan, results, run).run();
  ArgumentReduction<V, I, false>(plan, results, run).run();
}

template <class V>
void reduce_argument(const ArgumentPlan& plan, Reducer reducer, DType index, const ArgumentResults& results,
                     const RunPieces& run) {
  switch (index) {
    case DType::kI32: return reduce_argument<V, int32_t>(plan, reducer, results, run);
    case DType::kI64: return reduce_argument<V, int64_t>(plan, reducer, results, run);
    default: return reduce_argument<V, uint32_t>(plan, reducer, results, run);
  }
}

// For float32 and float64, and for integers. Indices are int32, int64 or uint32.
void reduce_float_arguments(const ArgumentPlan& plan, Reducer reducer, DType value, DType index,
                            const ArgumentResults& results, const RunPieces& run);
void reduce_integer_arguments(const ArgumentPlan& plan, Reducer reducer, DType value, DType index,
                              const ArgumentResults& results, const RunPieces& run);

}  // namespace shardwise::reduce_loops
