// SPDX-License-Identifier: Apache-2.0
//
// Two loops. Where the innermost dim of the result runs over a slice, slices are copied one by one, by memcpy where
// they lie side by side. Where it runs over indices (x[:, ids]), each element of a slice is fetched for all of them.
#include <cstring>

#include "shardwise/base/strided_copy.h"
#include "shardwise/ops/index_places.h"
#include "shardwise/ops/indexing.h"

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
    slice_ = slice_.merged();
    from_.resize(static_cast<size_t>(starts_.count()));
    to_.resize(from_.size());
    context_.parallel_for(starts_.count(), 1 << 12, [&](int64_t begin, int64_t end) { place(begin, end); });
  }

  void run() {
    const int64_t item = item_size(result_.dtype());
    const bool slices_are_runs = !slice_.dims.empty() && slice_.dims.back().second == item;
    if (slices_are_runs) return copy_slices(item);
    switch (item) {
      case 1: return fetch<uint8_t>();
      case 2: return fetch<uint16_t>();
      case 4: return fetch<uint32_t>();
      default: return fetch<uint64_t>();
    }
  }

 private:
  // Offsets of slices [begin, end) in the operand and in the result.
  void place(int64_t begin, int64_t end) {
    const IndexingDims& dims = indexing_.dims;
    PairedDims batch;
    const Dims out_dims = indexing_.batch_dims(), indices_dims = indexing_.indices_dims();
    for (size_t i = 0; i < out_dims.size(); ++i) {
      int64_t from = 0;  // of a batching dim: its stride in the operand
      for (size_t k = 0; k < dims.indices_batching.size(); ++k) {
        if (dims.indices_batching[k] == indices_dims[i])
          from = operand_.strides()[static_cast<size_t>(dims.operand_batching[k])];
      }
      batch.add(starts_.batch_shape()[i], from, result_.strides()[static_cast<size_t>(out_dims[i])]);
    }
    int64_t place = begin;
    for_each_offset(batch, begin, end, [&](int64_t from, int64_t to) {
      const int64_t* start = starts_[place];
      for (size_t k = 0; k < dims.index_map.size(); ++k) {
        const auto dim = static_cast<size_t>(dims.index_map[k]);
        const int64_t limit = indexing_.operand[dim] - indexing_.slice[dim];
        from += std::clamp<int64_t>(start[k], 0, limit) * operand_.strides()[dim];
      }
      from_[static_cast<size_t>(place)] = from;
      to_[static_cast<size_t>(place)] = to;
      ++place;
    });
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
    if (elements > 1) {
      const int64_t rows = std::max<int64_t>(grain / std::max<int64_t>(places, 1), 1);
      context_.parallel_for(elements, rows,
                            [&](int64_t begin, int64_t end) { fetch_elements<T>(begin, end, 0, places); });
    } else {
      context_.parallel_for(places, grain,
                            [&](int64_t begin, int64_t end) { fetch_elements<T>(0, elements, begin, end); });
    }
  }

  template <class T>
  void fetch_elements(int64_t begin, int64_t end, int64_t first, int64_t last) {
    for_each_offset(slice_, begin, end, [&](int64_t from, int64_t to) {
      for (int64_t i = first; i < last; ++i) {
        const auto place = static_cast<size_t>(i);
        std::memcpy(result_.data() + to_[place] + to, operand_.data() + from_[place] + from, sizeof(T));
      }
    });
  }

  KernelContext& context_;
  const Indexing& indexing_;
  const NdArray operand_, result_;
  const IndexVectors starts_;
  PairedDims slice_;
  std::vector<int64_t> from_, to_;  // byte offsets per index vector
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
