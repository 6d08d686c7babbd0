// SPDX-License-Identifier: Apache-2.0
//
// Three loops. Slices of one element (x[ids]) are fetched as their indices are read. Where the innermost dim of the
// result runs over a slice, slices are copied one by one, by memcpy where they lie side by side. Where it runs over
// indices (x[:, ids]), each element of a slice is fetched for all of them.
#include <algorithm>
#include <cstring>

#include "shardwise/base/moved_item.h"
#include "shardwise/base/strided_copy.h"
#include "shardwise/ops/indexing/index_places.h"
#include "shardwise/ops/indexing/indexing.h"

namespace shardwise {
namespace {

constexpr int64_t kGrainBytes = 1 << 16;

class Gather {
 public:
  Gather(KernelContext& context, const Indexing& indexing, const NdArray& result)
      : context_(context),
        indexing_(indexing),
        operand_(context.operand(0)),
        result_(result),
        starts_(context, context.operand(1), indexing_.dims) {
    const Dims window = indexing_.window_dims();
    for (size_t i = 0; i < window.size(); ++i) {
      const auto from = static_cast<size_t>(window[i]), to = static_cast<size_t>(indexing_.dims.offset[i]);
      slice_.add(indexing_.slice[from], operand_.strides()[from], result_.strides()[to]);
    }
    // Merged, so that runs are as long as the strides of both arrays allow.
    slice_ = slice_.merged();
    pair_batch_dims();
    for (const int64_t dim : indexing_.dims.index_map) {
      const auto d = static_cast<size_t>(dim);
      steps_.push_back({indexing_.operand[d] - indexing_.slice[d], operand_.strides()[d]});
    }
    // Slices of one element compute their place as they are fetched. Others use it several times.
    if (slice_.count() == 1) return;
    from_.resize(static_cast<size_t>(starts_.count()));
    to_.resize(from_.size());
    context_.parallel_for(starts_.count(), 1 << 12, [&](int64_t begin, int64_t end) { place(begin, end); });
  }

  void run() {
    const int64_t item = item_size(result_.dtype());
    if (slice_.count() == 1) {
      return dispatch_moved(item, [&]<class T>() {
        switch (steps_.size()) {
          case 1: return fetch_elements<T, 1>();
          case 2: return fetch_elements<T, 2>();
          default: return fetch_elements<T, 0>();
        }
      });
    }
    const bool slices_are_runs = !slice_.dims.empty() && slice_.dims.back().second == item;
    if (slices_are_runs) return copy_slices(item);
    dispatch_moved(item, [&]<class T>() { fetch<T>(); });
  }

 private:
  struct Step {
    int64_t limit, stride;  // of an index component
  };

  // Dims of the indices: in the operand, which only a batching dim has, and in the result.
  void pair_batch_dims() {
    const Dims out_dims = indexing_.batch_dims(), indices_dims = indexing_.indices_dims();
    for (size_t i = 0; i < out_dims.size(); ++i) {
      const std::optional<size_t> paired = indexing_.paired(indices_dims[i]);
      const int64_t from = paired ? operand_.strides()[*paired] : 0;
      batch_.add(starts_.batch_shape()[i], from, result_.strides()[static_cast<size_t>(out_dims[i])]);
    }
  }

  static int64_t offset_of(const int64_t* start, const Step* steps, size_t components) {
    int64_t offset = 0;
    for (size_t k = 0; k < components; ++k) {
      // StableHLO clamps the start of a slice so that all of it is in bounds.
      offset += std::clamp<int64_t>(start[k], 0, steps[k].limit) * steps[k].stride;
    }
    return offset;
  }

  // Offsets of slices [begin, end) in the operand and in the result.
  void place(int64_t begin, int64_t end) {
    int64_t place = begin;
    for_each_offset(batch_, begin, end, [&](int64_t from, int64_t to) {
      from_[static_cast<size_t>(place)] = from + offset_of(starts_[place], steps_.data(), steps_.size());
      to_[static_cast<size_t>(place)] = to;
      ++place;
    });
  }

  // Slices of one element; kComponents is 0 for any number of index components.
  template <class T, size_t kComponents>
  void fetch_elements() const {
    context_.parallel_for(starts_.count(), kGrainBytes / 8, [&](int64_t begin, int64_t end) {
      const int64_t* start = starts_[begin];
      for_each_run(batch_, begin, end, [&](int64_t from, int64_t to, int64_t count) {
        fetch_run<T, kComponents>(start, steps_.data(), steps_.size(), batch_.last(), operand_.data() + from,
                                  result_.data() + to, count);
        start += count * static_cast<int64_t>(steps_.size());
      });
    });
  }

  // Copies stay in registers: the processor then looks further ahead for elements that are not in the cache.
  template <class T, size_t kComponents>
  static void fetch_run(const int64_t* start, const Step* steps, size_t components, PairedDims::Dim strides,
                        const std::byte* source, std::byte* target, int64_t count) {
    constexpr auto kItem = static_cast<int64_t>(sizeof(T));
    if (kComponents == 1 && steps[0].stride == kItem && strides.first == 0 && strides.second == kItem) {
      return fetch_adjacent<T>(start, steps[0].limit, source, target, count);
    }
    Step copies[std::max<size_t>(kComponents, 1)];
    std::copy_n(steps, kComponents, copies);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t offset =
          kComponents > 0 ? offset_of(start, copies, kComponents) : offset_of(start, steps, components);
      std::memcpy(target, source + offset, sizeof(T));
      start += kComponents > 0 ? kComponents : components;
      source += strides.first;
      target += strides.second;
    }
  }

  // Elements of a vector. A block of indices is clamped only if one of them is outside.
  template <class T>
  static void fetch_adjacent(const int64_t* start, int64_t limit, const std::byte* source, std::byte* target,
                             int64_t count) {
    constexpr int64_t kBlock = 512;
    const auto fetch = [&](int64_t to, int64_t index) {
      std::memcpy(target + to * static_cast<int64_t>(sizeof(T)), source + index * static_cast<int64_t>(sizeof(T)),
                  sizeof(T));
    };
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, count);
      if (all_inside(start + begin, end - begin, limit)) {
        for (int64_t i = begin; i < end; ++i) fetch(i, start[i]);
      } else {
        for (int64_t i = begin; i < end; ++i) fetch(i, std::clamp<int64_t>(start[i], 0, limit));
      }
    }
  }

  void copy_slices(int64_t item) {
    const int64_t bytes = slice_.count() * item;
    const bool one_run = slice_.dims.size() == 1 && slice_.dims[0].first == item;
    Dims shape, from_strides, to_strides;
    for (const PairedDims::Dim& dim : slice_.dims) {
      shape.push_back(dim.size);
      from_strides.push_back(dim.first);
      to_strides.push_back(dim.second);
    }
    const int64_t grain = std::max<int64_t>(kGrainBytes / std::max<int64_t>(bytes, 1), 1);
    context_.parallel_for(starts_.count(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const std::byte* from = operand_.data() + from_[static_cast<size_t>(i)];
        std::byte* to = result_.data() + to_[static_cast<size_t>(i)];
        if (one_run) {
          std::memcpy(to, from, static_cast<size_t>(bytes));
        } else {
          copy_strided(item, shape, to, to_strides, from, from_strides);
        }
      }
    });
  }

  template <class T>
  void fetch() {
    const int64_t elements = slice_.count(), places = starts_.count();
    const int64_t grain = std::max<int64_t>(kGrainBytes / static_cast<int64_t>(sizeof(T)), 1);
    const int64_t rows = std::max<int64_t>(grain / std::max<int64_t>(places, 1), 1);
    context_.parallel_for(elements, rows, [&](int64_t begin, int64_t end) {
      for_each_offset(slice_, begin, end, [&](int64_t from, int64_t to) {
        for (size_t i = 0; i < from_.size(); ++i) {
          std::memcpy(result_.data() + to_[i] + to, operand_.data() + from_[i] + from, sizeof(T));
        }
      });
    });
  }

  KernelContext& context_;
  const Indexing& indexing_;
  const NdArray operand_, result_;
  const IndexVectors starts_;
  PairedDims slice_, batch_;
  std::vector<Step> steps_;
  std::vector<int64_t> from_, to_;  // byte offsets per index vector, unless slices have one element
};

}  // namespace

// The sizes of a slice are those of one shard: merged dims of the operand must not be in slices.
std::optional<Kernel> prepare_gather(const OpView& op, const KernelTypes& types) {
  Indexing indexing = gather_indexing(op.attrs(), types);
  const Dims window = indexing.window_dims();
  for (size_t i = 0; i < window.size(); ++i) {
    const auto out_dim = static_cast<size_t>(indexing.dims.offset[i]);
    if (indexing.out[out_dim] != indexing.slice[static_cast<size_t>(window[i])]) return std::nullopt;
  }
  return [indexing = std::move(indexing)](KernelContext& context) {
    const NdArray result = context.allocate_result();
    if (result.size() != 0) Gather(context, indexing, result).run();
  };
}

}  // namespace shardwise
