// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>

#include "shardwise/base/moved_item.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/region_tiles.h"
#include "shardwise/ops/shared/strided_kernels.h"
#include "shardwise/ops/sort/sort.h"
#include "shardwise/ops/sort/sort_keys.h"

namespace shardwise {
namespace {

using Arrays = std::vector<NdArray>;

constexpr int64_t kSortGrain = 1 << 14;
constexpr int64_t kCountedItems = 1 << 10;  // of one byte
constexpr int64_t kMostMerges = 2048;       // that run side by side, so that their operands stay in the cache
constexpr int64_t kMostPlaces = std::numeric_limits<uint32_t>::max();

// All operands with the sorted dim last, row-major: `rows` rows of `n` items.
struct Rows {
  Arrays from, to;
  int64_t rows = 0, n = 0;

  std::byte* row(const NdArray& array, int64_t i) const { return array.data() + i * n * item_size(array.dtype()); }
};

template <class Index>
void gather_row(const Rows& rows, int64_t row, const Index* order) {
  for (size_t i = 0; i < rows.from.size(); ++i) {
    dispatch_moved(item_size(rows.from[i].dtype()), [&]<class T>() {
      const auto* from = reinterpret_cast<const T*>(rows.row(rows.from[i], row));
      auto* to = reinterpret_cast<T*>(rows.row(rows.to[i], row));
      // The keys find the order once; every operand follows it.
      for (int64_t k = 0; k < rows.n; ++k) to[k] = from[order[k]];
    });
  }
}

// ---- by keys -------------------------------------------------------------------------------------------------------

// One thread's workspace for rows that are sorted by typed keys.
class KeySort {
 public:
  KeySort(const Rows& rows, const std::vector<SortKey>& keys) : rows_(rows), keys_(keys) {}

  void sort_row(int64_t row) {
    const bool alone = keys_.size() == 1 && rows_.from.size() == 1;
    if (alone && dispatch_key(key_size(keys_[0]), [&]<class U>() { return sort_alone<U>(row); })) return;
    order_.resize(static_cast<size_t>(rows_.n));
    // Stable sorts by one key after the other, the most significant one last.
    for (size_t k = keys_.size(); k-- > 0;) {
      const bool first = k + 1 == keys_.size();
      dispatch_key(key_size(keys_[k]), [&]<class U>() { order_by<U>(row, keys_[k], first); });
    }
    gather_row(rows_, row, order_.data());
  }

 private:
  int64_t key_size(const SortKey& key) const { return item_size(rows_.from[key.operand].dtype()); }

  template <class Item>
  Item* items() {
    const size_t bytes = 2 * static_cast<size_t>(rows_.n) * sizeof(Item);
    if (memory_.size() < bytes) memory_.resize(bytes);
    return reinterpret_cast<Item*>(memory_.data());
  }

  // Items that their keys tell apart are made from the sorted keys. Returns whether they could be.
  template <class U>
  bool sort_alone(int64_t row) {
    const KeyOrder<U> order(rows_.from[0].dtype(), keys_[0]);
    const auto* from = reinterpret_cast<const U*>(rows_.row(rows_.from[0], row));
    auto* to = reinterpret_cast<U*>(rows_.row(rows_.to[0], row));
    if constexpr (sizeof(U) == 1) {
      if (rows_.n >= kCountedItems) return sort_bytes(order, from, to);
    }
    U* keys = items<U>();
    U lost = 0;
    for (int64_t i = 0; i < rows_.n; ++i) {
      keys[i] = order.key(from[i]);
      // A key may stand for two items (-0 and 0). Then the sorted keys cannot give the items
      // back, and places are sorted instead.
      lost = static_cast<U>(lost | (order.bits(keys[i]) ^ from[i]));
    }
    if (lost != 0) return false;
    sort_items(keys, keys + rows_.n, rows_.n);
    for (int64_t i = 0; i < rows_.n; ++i) to[i] = order.bits(keys[i]);
    return true;
  }

  // Keys of a byte are counted.
  bool sort_bytes(const KeyOrder<uint8_t>& order, const uint8_t* from, uint8_t* to) const {
    std::array<std::array<int64_t, 256>, 4> counts{};  // several, so that equal neighbours do not wait for each other
    for (int64_t i = 0; i < rows_.n; ++i) ++counts[static_cast<size_t>(i % 4)][from[i]];
    std::array<int64_t, 256> by_key{};
    for (size_t item = 0; item < 256; ++item) {
      const auto bits = static_cast<uint8_t>(item);
      const int64_t count = counts[0][item] + counts[1][item] + counts[2][item] + counts[3][item];
      if (count != 0 && order.bits(order.key(bits)) != bits) return false;
      by_key[order.key(bits)] += count;
    }
    for (size_t key = 0; key < 256; ++key) {
      std::memset(to, order.bits(static_cast<uint8_t>(key)), static_cast<size_t>(by_key[key]));
      to += by_key[key];
    }
    return true;
  }

  template <class U>
  void order_by(int64_t row, const SortKey& key, bool first) {
    const KeyOrder<U> order(rows_.from[key.operand].dtype(), key);
    const auto* from = reinterpret_cast<const U*>(rows_.row(rows_.from[key.operand], row));
    if constexpr (sizeof(U) == 1) {
      if (first) return count_places(order, from);
    }
    KeyAt<U>* found = items<KeyAt<U>>();
    for (int64_t i = 0; i < rows_.n; ++i) {
      // The order so far: later keys, which are sorted earlier, stay in order among equal ones.
      const uint32_t place = first ? static_cast<uint32_t>(i) : order_[static_cast<size_t>(i)];
      found[i] = {order.key(from[place]), place};
    }
    sort_items(found, found + rows_.n, rows_.n);
    for (int64_t i = 0; i < rows_.n; ++i) order_[static_cast<size_t>(i)] = found[i].place;
  }

  void count_places(const KeyOrder<uint8_t>& order, const uint8_t* from) {
    std::array<uint32_t, 256> next{};
    for (int64_t i = 0; i < rows_.n; ++i) ++next[order.key(from[i])];
    uint32_t begin = 0;
    // Counts become the first place of each key.
    for (uint32_t& count : next) begin += std::exchange(count, begin);
    for (int64_t i = 0; i < rows_.n; ++i) order_[next[order.key(from[i])]++] = static_cast<uint32_t>(i);
  }

  const Rows& rows_;
  const std::vector<SortKey>& keys_;
  std::vector<uint32_t> order_;
  std::vector<std::byte> memory_;
};

// ---- by a region ---------------------------------------------------------------------------------------------------

// One thread's merge sort of a row. Merges of one level run side by side: a step takes one item in each.
class RegionSort {
 public:
  RegionSort(const Rows& rows, const TileProgram& program) : rows_(rows), runner_(program) {
    for (const NdArray& array : rows.from) {
      for (int side = 0; side < 2; ++side) {
        pairs_.emplace_back(static_cast<size_t>(kMostMerges * item_size(array.dtype())));
        inputs_.push_back(pairs_.back().data());
      }
    }
    takes_right_.resize(static_cast<size_t>(kMostMerges));
    order_.resize(static_cast<size_t>(rows.n));
    merged_.resize(static_cast<size_t>(rows.n));
  }

  void sort_row(int64_t row) {
    for (int64_t i = 0; i < rows_.n; ++i) order_[static_cast<size_t>(i)] = i;
    // Bottom-up: all merges of one width are independent, and thousands of comparisons make one call of the evaluator.
    for (int64_t width = 1; width < rows_.n; width *= 2) {
      for (int64_t begin = 0; begin < rows_.n;) {
        active_.clear();
        for (; begin < rows_.n && static_cast<int64_t>(active_.size()) < kMostMerges; begin += 2 * width) {
          add_merge(begin, std::min(begin + width, rows_.n), std::min(begin + 2 * width, rows_.n));
        }
        while (!active_.empty()) step(row);
      }
      order_.swap(merged_);
    }
    gather_row(rows_, row, order_.data());
  }

 private:
  struct Merge {
    int64_t left, left_end, right, right_end, out;
  };

  void add_merge(int64_t begin, int64_t middle, int64_t end) {
    const Merge merge{begin, middle, middle, end, begin};
    if (!finish(merge)) active_.push_back(merge);
  }

  // Copies what is left if one side is empty.
  bool finish(const Merge& merge) {
    if (merge.left != merge.left_end && merge.right != merge.right_end) return false;
    const auto out = merged_.begin() + merge.out;
    std::copy(order_.begin() + merge.right, order_.begin() + merge.right_end,
              std::copy(order_.begin() + merge.left, order_.begin() + merge.left_end, out));
    return true;
  }

  // The right item goes first only if it is smaller, which keeps equal items in order.
  void step(int64_t row) {
    const auto count = static_cast<int64_t>(active_.size());
    for (size_t i = 0; i < rows_.from.size(); ++i) {
      dispatch_moved(item_size(rows_.from[i].dtype()), [&]<class T>() {
        const auto* from = reinterpret_cast<const T*>(rows_.row(rows_.from[i], row));
        auto* right = reinterpret_cast<T*>(pairs_[2 * i].data());
        auto* left = reinterpret_cast<T*>(pairs_[2 * i + 1].data());
        for (int64_t m = 0; m < count; ++m) {
          right[m] = from[order_[static_cast<size_t>(active_[static_cast<size_t>(m)].right)]];
          left[m] = from[order_[static_cast<size_t>(active_[static_cast<size_t>(m)].left)]];
        }
      });
    }
    void* const output = takes_right_.data();
    runner_.run(inputs_, {&output, 1}, count);
    size_t kept = 0;
    for (size_t m = 0; m < active_.size(); ++m) {
      Merge merge = active_[m];
      int64_t& taken = takes_right_[m] != 0 ? merge.right : merge.left;
      merged_[static_cast<size_t>(merge.out++)] = order_[static_cast<size_t>(taken++)];
      if (!finish(merge)) active_[kept++] = merge;
    }
    active_.resize(kept);
  }

  const Rows& rows_;
  TileRunner runner_;
  std::vector<std::vector<std::byte>> pairs_;
  std::vector<const void*> inputs_;
  std::vector<uint8_t> takes_right_;
  std::vector<int64_t> order_, merged_;
  std::vector<Merge> active_;
};

// ---- the kernel ----------------------------------------------------------------------------------------------------

struct PreparedSort {
  size_t dim;
  std::vector<SortKey> keys;              // empty: by the program
  std::optional<TileProgram> comparator;  // none: by keys
};

void sort_rows(KernelContext& context, const PreparedSort& sort, const Rows& rows) {
  const int64_t grain = std::max<int64_t>(kSortGrain / rows.n, 1);
  context.parallel_for(rows.rows, grain, [&](int64_t begin, int64_t end) {
    if (sort.comparator) {
      RegionSort sorter(rows, *sort.comparator);
      for (int64_t row = begin; row < end; ++row) sorter.sort_row(row);
    } else {
      KeySort sorter(rows, sort.keys);
      for (int64_t row = begin; row < end; ++row) sorter.sort_row(row);
    }
  });
}

void run_sort(KernelContext& context, const PreparedSort& sort, size_t count) {
  const Dims shape = context.operand(0).shape();
  Dims order = other_dims(static_cast<int64_t>(shape.size()), Dims{static_cast<int64_t>(sort.dim)});
  order.push_back(static_cast<int64_t>(sort.dim));
  const bool is_last = sort.dim + 1 == shape.size();
  Rows rows;
  Arrays results;
  for (size_t i = 0; i < count; ++i) {
    results.push_back(context.allocate_result(i));
    // All operands have one shape: either all are empty, or none.
    if (results[i].size() == 0) continue;
    rows.from.push_back(contiguous_array(context, permuted(context.operand(i), order)));
    rows.to.push_back(is_last ? results[i] : NdArray::empty(results[i].dtype(), rows.from[i].shape()));
  }
  if (rows.from.empty()) return;
  rows.n = shape[sort.dim];
  rows.rows = results[0].size() / rows.n;
  sort_rows(context, sort, rows);
  for (size_t i = 0; !is_last && i < count; ++i) copy_array(context, permuted(results[i], order), rows.to[i]);
}

// ---- the first elements of each row --------------------------------------------------------------------------------

// Equal keys in the order of their places, as chlo.top_k and a stable sort have them.
template <class U>
bool is_before(const KeyAt<U>& a, const KeyAt<U>& b) {
  return a.key != b.key ? a.key < b.key : a.place < b.place;
}

// One thread's workspace for the first k of n items, 0 < k <= n, in linear time.
template <class U>
class FirstOfRow {
 public:
  FirstOfRow(const KeyOrder<U>& order, int64_t n, int64_t k)
      : order_(order), n_(n), k_(k), found_(static_cast<size_t>(std::min(n, 2 * k + kSpareItems))) {}

  std::span<const KeyAt<U>> of(const U* items) {
    const KeyOrder<U> order = order_;  // copies stay in registers
    KeyAt<U>* const found = found_.data();
    const auto room = static_cast<int64_t>(found_.size());
    for (int64_t i = 0; i < room; ++i) found[i] = {order.key(items[i]), static_cast<uint32_t>(i)};
    U last = drop_others(room);
    int64_t count = k_;
    for (int64_t i = room; i < n_; ++i) {
      const U key = order.key(items[i]);
      if (key >= last) continue;  // of equal keys, the earlier one stays
      found[count++] = {key, static_cast<uint32_t>(i)};
      if (count < room) continue;
      last = drop_others(count);
      count = k_;
    }
    drop_others(count);
    std::sort(found, found + k_, is_before<U>);
    return {found, static_cast<size_t>(k_)};
  }

 private:
  static constexpr int64_t kSpareItems = 64;

  // Moves the first k of `count` items to the front. The largest of their keys.
  U drop_others(int64_t count) {
    std::nth_element(found_.begin(), found_.begin() + k_ - 1, found_.begin() + count, is_before<U>);
    return found_[static_cast<size_t>(k_ - 1)].key;
  }

  const KeyOrder<U>& order_;
  int64_t n_, k_;
  std::vector<KeyAt<U>> found_;
};

// Items of `dtype`, as which the operand is compared.
template <class U>
void select_rows(KernelContext& context, const KeyOrder<U>& order, DType dtype, int64_t k) {
  const NdArray from = contiguous_array(context, converted(context, context.operand(0), dtype));
  const NdArray result = context.allocate_result(0), places = context.allocate_result(1);
  const NdArray values = result.dtype() == dtype ? result : NdArray::empty(dtype, result.shape());
  const int64_t n = from.shape().back(), rows = k == 0 ? 0 : values.size() / k;
  const int64_t grain = std::max<int64_t>(kSortGrain / std::max<int64_t>(n, 1), 1);
  context.parallel_for(rows, grain, [&](int64_t row, int64_t end) {
    FirstOfRow<U> first(order, n, k);
    for (; row < end; ++row) {
      const auto* items = reinterpret_cast<const U*>(from.data()) + row * n;
      auto* value = reinterpret_cast<U*>(values.data()) + row * k;
      auto* place = reinterpret_cast<int32_t*>(places.data()) + row * k;
      for (const KeyAt<U>& found : first.of(items)) {
        *value++ = items[found.place];
        *place++ = static_cast<int32_t>(found.place);
      }
    }
  });
  if (result.dtype() != dtype) convert_into(context, result, values);
}

}  // namespace

Kernel select_first(const SortKey& key, int64_t k) {
  return [key, k](KernelContext& context) {
    const DType given = context.operand(0).dtype();
    // Narrow floats and integers are compared in the dtype that they are computed in.
    const DType dtype = item_size(given) == 1 ? computed_in(given) : given;
    dispatch_key(item_size(dtype), [&]<class U>() { select_rows(context, KeyOrder<U>(dtype, key), dtype, k); });
  };
}

std::optional<Kernel> prepare_sort(const OpView& op, const KernelTypes& types) {
  PreparedSort sort{static_cast<size_t>(sorted_dim(op.attrs(), op.operand_type(0).ndim())), {}, std::nullopt};
  const std::optional<std::vector<SortKey>> keys = lexicographic_keys(op.module(), op.regions()[0]);
  // Places have 32 bits, to halve the memory that a sort moves.
  if (keys && types.operands[0].shape[sort.dim] <= kMostPlaces) {
    sort.keys = *keys;
  } else {
    sort.comparator = region_tiles(op.module(), op.regions()[0]);
  }
  return
      [sort = std::move(sort), count = op.operand_count()](KernelContext& context) { run_sort(context, sort, count); };
}

}  // namespace shardwise
