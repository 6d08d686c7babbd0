// SPDX-License-Identifier: Apache-2.0
//
// The loops of reduce, for any item type and combination. Only reduce_kernels*.cpp include this.
//
// The order in which elements are combined depends only on the shape and strides, never on threads:
//
//   along memory    the innermost stride is reduced: 16 lanes over 128 elements, lanes combined pairwise; then a
//                   cascade, in which two partial results of the same number of elements combine to one of twice
//                   as many
//   across memory   the innermost stride is kept: 8 rows are combined element by element; then the same cascade over
//                   rows
//
// Combinations that are exact in any order (integers, minimum and maximum) take the order that is fastest.
//
// Float sums thus lose little precision: about log2(n) roundings for n elements. Long reductions are cut into pieces of
// kPieceItems elements, which threads share; the cascade continues over the pieces.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "shardwise/base/dims.h"
#include "shardwise/ops/shared/reduce_operations.h"
#include "shardwise/tile/reductions.h"

namespace shardwise::reduce_loops {

inline constexpr int64_t kChunk = kChunkItems;
inline constexpr int64_t kLanes = kChunkLanes;
inline constexpr int64_t kRows = 8;
inline constexpr int64_t kSegment = 1024;  // kept elements that are combined together: a page of float32
inline constexpr int64_t kPieceItems = 1 << 16;
inline constexpr int64_t kShortLine = 32;  // shorter lines do not pay for a call

struct LoopDim {
  int64_t size;
  int64_t stride;    // bytes
  int64_t position;  // of a kept dim: its row-major stride in the result, in elements
};

// A reduction over memory: kept and reduced dims by falling stride, nesting neighbors merged, none of size 1.
struct Plan {
  const std::byte* data;
  std::vector<LoopDim> kept, reduced;
  int64_t kept_count, reduced_count;
  bool along() const;  // else across
};

using RunPieces = std::function<void(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body)>;

int64_t offset_of(std::span<const LoopDim> dims, int64_t index);
// The position in the result of element `index` of the kept dims.
int64_t position_of(const Plan& plan, int64_t index);

// The vector loops for items that are `stride` bytes apart; null where there are none.
template <class Op>
struct Lines {
  static constexpr int kColumn = line_column<typename Op::Item>();
  static bool adjacent(int64_t stride) { return stride == static_cast<int64_t>(sizeof(typename Op::Item)); }
  static FoldRows rows(int64_t stride) {
    return adjacent(stride) ? line_kernels().fold_rows[Op::kFold][kColumn] : nullptr;
  }
  static FoldLine line(int64_t stride) {
    return adjacent(stride) ? line_kernels().fold_line[Op::kFold][kColumn] : nullptr;
  }
  static FoldChunks chunks(int64_t stride) {
    return adjacent(stride) ? reduction_kernels().fold_chunks[Op::kFold][kColumn] : nullptr;
  }
};

// Partial results, each of 2^level pushed ones. Equal levels combine.
template <class Op>
class Cascade {
 public:
  using Value = typename Op::Value;
  explicit Cascade(int64_t width) : width_(static_cast<size_t>(width)), stack_(kUsualLevels * width_) {}

  // `values` has `width` entries.
  void push(const Value* values) {
    const auto levels = static_cast<size_t>(std::countr_one(count_++));
    if (stack_.size() < (levels + 1) * width_) stack_.resize((levels + 1) * width_);
    const Value* sum = values;
    for (size_t level = 0; level < levels; ++level) {
      combine_into(at(level), sum);
      sum = at(level);
    }
    std::copy_n(sum, width_, at(levels));
  }
  // Combines all levels, from the smallest to the largest, into `values`. Gives the identity when nothing was pushed.
  void finish(Value* values) {
    bool empty = true;
    size_t level = 0;
    for (uint64_t bits = count_; bits != 0; bits >>= 1, ++level) {
      if (!(bits & 1)) continue;
      if (!empty) combine_into(at(level), values);
      std::copy_n(at(level), width_, values);
      empty = false;
    }
    if (empty) std::fill_n(values, width_, Op::identity());
    count_ = 0;
  }

 private:
  static constexpr size_t kUsualLevels = 8;
  Value* at(size_t level) { return stack_.data() + level * width_; }
  // Values that came earlier, with later ones.
  void combine_into(Value* earlier, const Value* values) const {
    if constexpr (std::is_same_v<Value, typename Op::Item>) {
      if (const FoldRows fold = Lines<Op>::rows(sizeof(Value)); fold != nullptr) {
        return fold(earlier, values, 0, 1, static_cast<int64_t>(width_));
      }
    }
    for (size_t i = 0; i < width_; ++i) earlier[i] = Op::combine(earlier[i], values[i]);
  }
  size_t width_;
  uint64_t count_ = 0;
  std::vector<Value> stack_;
};

template <class Op>
typename Op::Value load_item(const std::byte* from) {
  typename Op::Item item;
  std::memcpy(&item, from, sizeof(item));
  return Op::load(item);
}

// Combines up to kChunk elements with one stride.
template <class Op>
typename Op::Value combine_chunk(const std::byte* data, int64_t stride, int64_t count) {
  using Value = typename Op::Value;
  Value lanes[kLanes];
  std::fill_n(lanes, kLanes, Op::identity());
  int64_t i = 0;
  const auto add_lanes = [&](int64_t step) __attribute__((always_inline)) {
    for (; i + kLanes <= count; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] = Op::combine(lanes[lane], load_item<Op>(data + (i + lane) * step));
      }
    }
  };
  // Strides that compile to vector code: adjacent items, and parts of complex numbers.
  constexpr auto kItem = static_cast<int64_t>(sizeof(typename Op::Item));
  if (stride == kItem) {
    add_lanes(kItem);
  } else if (stride == 2 * kItem) {
    add_lanes(2 * kItem);
  } else {
    add_lanes(stride);
  }
  for (; i < count; ++i) lanes[i % kLanes] = Op::combine(lanes[i % kLanes], load_item<Op>(data + i * stride));
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    if (half >= count) continue;  // the upper lanes hold the identity
    for (int64_t lane = 0; lane < half; ++lane) lanes[lane] = Op::combine(lanes[lane], lanes[lane + half]);
  }
  return lanes[0];
}

// The cascade of one line, which needs no memory: chunks are pushed in order.
template <class Op>
class LineCascade {
 public:
  using Value = typename Op::Value;

  // Pushes the first chunks of `count` elements, and returns how many elements they have.
  int64_t push_some(const std::byte* items, int64_t stride, int64_t count, FoldChunks fold) {
    const int64_t together = std::min(count / kChunk, kTogether);
    if (fold == nullptr || together == 0) {
      const int64_t few = std::min(count, kChunk);
      push(combine_chunk<Op>(items, stride, few));
      return few;
    }
    Value values[kTogether];
    fold(items, together, values);
    for (int64_t i = 0; i < together; ++i) push(values[i]);
    return together * kChunk;
  }
  Value finish() const {
    Value total = Op::identity();
    bool is_empty = true;
    size_t level = 0;
    for (uint64_t bits = count_; bits != 0; bits >>= 1, ++level) {
      if (!(bits & 1)) continue;
      total = is_empty ? stack_[level] : Op::combine(stack_[level], total);
      is_empty = false;
    }
    return total;
  }

 private:
  static constexpr int64_t kTogether = 16;
  void push(Value value) {
    size_t level = 0;
    for (uint64_t bit = count_++; bit & 1; bit >>= 1, ++level) value = Op::combine(stack_[level], value);
    stack_[level] = value;
  }
  uint64_t count_ = 0;
  Value stack_[64];  // by level; those of the bits of count_
};

// Combines the reduced elements [begin, end) of one kept element, in runs along the innermost reduced dim.
template <class Op>
typename Op::Value combine_along(const Plan& plan, const std::byte* data, int64_t begin, int64_t end) {
  const LoopDim inner = plan.reduced.empty() ? LoopDim{1, 0, 0} : plan.reduced.back();
  const int64_t in_first_run = begin < end ? inner.size - begin % inner.size : 0;  // the size may be 0
  const FoldLine line = end - begin < kShortLine ? nullptr : Lines<Op>::line(inner.stride);
  if (line != nullptr) {
    auto total = Op::identity();
    while (begin < end) {
      const int64_t count = std::min(inner.size - begin % inner.size, end - begin);
      line(&total, data + offset_of(plan.reduced, begin), count);
      begin += count;
    }
    return total;
  }
  if (begin < end && end - begin <= std::min(kChunk, in_first_run)) {
    return combine_chunk<Op>(data + offset_of(plan.reduced, begin), inner.stride, end - begin);
  }
  LineCascade<Op> cascade;
  const FoldChunks chunks = Lines<Op>::chunks(inner.stride);
  while (begin < end) {
    const int64_t run = std::min(inner.size - begin % inner.size, end - begin);
    const std::byte* items = data + offset_of(plan.reduced, begin);
    for (int64_t done = 0; done < run;)
      done += cascade.push_some(items + done * inner.stride, inner.stride, run - done, chunks);
    begin += run;
  }
  return cascade.finish();
}

// Combines rows [begin, end) of reduced elements with `values`, in order.
template <class Op>
void combine_rows(const Plan& plan, const std::byte* data, int64_t width, int64_t begin, int64_t end, FoldRows fold,
                  typename Op::Value* values) {
  const LoopDim inner = plan.reduced.back();
  while (begin < end) {
    const int64_t count = std::min(inner.size - begin % inner.size, end - begin);
    fold(values, data + offset_of(plan.reduced, begin), inner.stride, count, width);
    begin += count;
  }
}

// The same for `width` adjacent kept elements, as a cascade.
template <class Op>
void combine_across(const Plan& plan, const std::byte* data, int64_t width, int64_t begin, int64_t end,
                    typename Op::Value* total) {
  const int64_t stride = plan.kept.back().stride;
  const FoldRows fold = plan.reduced.empty() ? nullptr : Lines<Op>::rows(stride);
  if (fold != nullptr && Lines<Op>::line(stride) != nullptr) {  // any order
    std::fill_n(total, width, Op::identity());
    return combine_rows<Op>(plan, data, width, begin, end, fold, total);
  }
  typename Op::Value values[kSegment];
  Cascade<Op> cascade(width);
  while (begin < end) {
    const int64_t stop = std::min(begin + kRows, end);
    std::fill_n(values, width, Op::identity());
    if (fold != nullptr) {
      combine_rows<Op>(plan, data, width, begin, stop, fold, values);
      begin = stop;
    }
    for (; begin < stop; ++begin) {
      const std::byte* row = data + offset_of(plan.reduced, begin);
      if (stride == static_cast<int64_t>(sizeof(typename Op::Item))) {
        for (int64_t i = 0; i < width; ++i) {
          values[i] = Op::combine(values[i], load_item<Op>(row + i * static_cast<int64_t>(sizeof(typename Op::Item))));
        }
      } else {
        for (int64_t i = 0; i < width; ++i) values[i] = Op::combine(values[i], load_item<Op>(row + i * stride));
      }
    }
    cascade.push(values);
  }
  cascade.finish(total);
}

// How results are shared out. A unit is up to kSegment neighbors of the innermost kept dim, whose rows are combined
// across memory; along memory, it is one result.
struct Units {
  template <class AnyPlan>
  explicit Units(const AnyPlan& plan)
      : across(!plan.along()),
        row(across ? plan.kept.back().size : 1),
        segments(ceil_div(row, kSegment)),
        width(std::min(row, kSegment)),
        count(plan.kept_count / row * segments) {}

  int64_t first_kept(int64_t unit) const { return across ? unit / segments * row + unit % segments * kSegment : unit; }
  int64_t width_of(int64_t unit) const { return across ? std::min(kSegment, row - unit % segments * kSegment) : 1; }
  int64_t grain(int64_t rows) const { return std::max<int64_t>(kPieceItems / std::max<int64_t>(width * rows, 1), 1); }

  bool across;
  int64_t row, segments, width, count;
};

template <class Op>
class Reduction {
 public:
  using Item = typename Op::Item;
  using Value = typename Op::Value;

  Reduction(const Plan& plan, Item init, Item* result, const RunPieces& run)
      : plan_(plan), init_(Op::load(init)), result_(result), run_(run), units_(plan) {
    // A power of two: the pieces of shards that are reduced together then end where those of each shard do, and the
    // cascade is the same.
    piece_ = std::bit_floor(static_cast<uint64_t>(kPieceItems / units_.width));
    pieces_ = std::max<int64_t>(ceil_div(plan.reduced_count, piece_), 1);
  }

  void run() {
    if (plan_.kept_count == 0) return;
    const int64_t grain = units_.grain(std::min(piece_, plan_.reduced_count)), width = units_.width;
    if (pieces_ == 1) {
      return run_(units_.count, grain, [&](int64_t begin, int64_t end) {
        Value total[kSegment];
        for (int64_t unit = begin; unit < end; ++unit) {
          combine(unit, 0, total);
          write(unit, total);
        }
      });
    }
    std::vector<Value> partial(static_cast<size_t>(units_.count * pieces_ * width));
    run_(units_.count * pieces_, grain, [&](int64_t begin, int64_t end) {
      // All units of a piece together: the parts of complex numbers share their memory.
      for (int64_t i = begin; i < end; ++i) {
        const int64_t unit = i % units_.count, piece = i / units_.count;
        combine(unit, piece, partial.data() + (unit * pieces_ + piece) * width);
      }
    });
    for (int64_t unit = 0; unit < units_.count; ++unit) {
      Cascade<Op> cascade(width);
      for (int64_t i = unit * pieces_; i < (unit + 1) * pieces_; ++i) cascade.push(partial.data() + i * width);
      Value total[kSegment];
      cascade.finish(total);
      write(unit, total);
    }
  }

 private:
  void combine(int64_t unit, int64_t piece, Value* total) const {
    const int64_t begin = piece * piece_;
    const int64_t end = std::min(begin + piece_, plan_.reduced_count);
    const std::byte* data = plan_.data + offset_of(plan_.kept, units_.first_kept(unit));
    if (units_.across) {
      combine_across<Op>(plan_, data, units_.width_of(unit), begin, end, total);
    } else {
      *total = combine_along<Op>(plan_, data, begin, end);
    }
  }
  void write(int64_t unit, const Value* total) const {
    const int64_t first = units_.first_kept(unit), width = units_.width_of(unit);
    const int64_t step = units_.across ? plan_.kept.back().position : 1;
    Item* result = result_ + position_of(plan_, first);
    for (int64_t i = 0; i < width; ++i) result[i * step] = Op::store(Op::combine(init_, total[i]));
  }

  const Plan& plan_;
  Value init_;
  Item* result_;
  const RunPieces& run_;
  Units units_;
  int64_t piece_ = 1, pieces_ = 1;
};

}  // namespace shardwise::reduce_loops
