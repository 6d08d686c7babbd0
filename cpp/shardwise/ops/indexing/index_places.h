// SPDX-License-Identifier: Apache-2.0
//
// Shared by the kernels of gather and scatter: index vectors as numbers, and loops over dims with two strides.
//
//   IndexVectors starts(context, indices, indexing.dims);     // 64 vectors of one component
//   starts[3][0]                                              // ids[3, 0], of any integer dtype
//
//   PairedDims dims;                                          // dims of a slice in the operand and in the result
//   dims.add(32, 4, 4);                                       // 32 floats, adjacent in both
//   for_each_offset(dims, 0, 32, [](int64_t a, int64_t b) {});  // 0 0, 4 4, …, 124 124
//   for_each_run(dims, 0, 32, [](int64_t a, int64_t b, int64_t count) {});  // 0 0 32
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shardwise/base/ndarray.h"
#include "shardwise/ops/indexing/indexing.h"

namespace shardwise {

// Row-major over the batch dims. Unsigned numbers beyond int64 become the largest int64, which is always out of bounds.
class IndexVectors {
 public:
  IndexVectors(KernelContext& context, const NdArray& indices, const IndexingDims& dims);
  int64_t count() const { return count_; }
  const int64_t* operator[](int64_t vector) const { return numbers_ + vector * components_; }
  const Dims& batch_shape() const { return batch_shape_; }

 private:
  NdArray array_;
  Dims batch_shape_;
  const int64_t* numbers_ = nullptr;
  int64_t count_ = 0, components_ = 0;
};

// Whether all indices are in [0, limit], where limit is not negative.
inline bool all_inside(const int64_t* indices, int64_t count, int64_t limit) {
  // The sign of either term tells that an index is outside. Signs need no comparison of 64 bits, which SSE2 lacks.
  uint64_t signs = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<uint64_t>(indices[i]);
    signs |= index | (static_cast<uint64_t>(limit) - index);
  }
  return static_cast<int64_t>(signs) >= 0;
}

// Dims, outermost first, with one stride for each of two arrays.
struct PairedDims {
  struct Dim {
    int64_t size, first, second;
  };
  std::vector<Dim> dims;

  void add(int64_t size, int64_t first, int64_t second) { dims.push_back({size, first, second}); }
  int64_t count() const {
    int64_t product = 1;
    for (const Dim& dim : dims) product *= dim.size;
    return product;
  }
  Dim last() const { return dims.empty() ? Dim{1, 0, 0} : dims.back(); }
  // The same elements with fewer dims. The dim with the smallest second stride is innermost.
  PairedDims merged() const;
};

// Calls body(first offset, second offset, count) for elements [begin, end) in row-major order, in runs along the last
// dim: the other elements of a run are last().first and last().second apart.
template <class Body>
void for_each_run(const PairedDims& paired, int64_t begin, int64_t end, Body&& body) {
  const std::vector<PairedDims::Dim>& dims = paired.dims;
  if (dims.empty()) {
    if (begin < end) body(int64_t{0}, int64_t{0}, int64_t{1});
    return;
  }
  constexpr size_t kMaxDims = 16;
  int64_t small[kMaxDims];
  std::vector<int64_t> large(dims.size() > kMaxDims ? dims.size() : 0);
  int64_t* index = large.empty() ? small : large.data();
  int64_t first = 0, second = 0, rest = begin;
  for (size_t d = dims.size(); d-- > 0;) {
    index[d] = dims[d].size == 0 ? 0 : rest % dims[d].size;
    rest = dims[d].size == 0 ? 0 : rest / dims[d].size;
    first += index[d] * dims[d].first;
    second += index[d] * dims[d].second;
  }
  const size_t last = dims.size() - 1;
  while (begin < end) {
    const int64_t count = std::min(dims[last].size - index[last], end - begin);
    body(first, second, count);
    begin += count;
    first -= index[last] * dims[last].first;
    second -= index[last] * dims[last].second;
    index[last] = 0;
    for (size_t d = last; d-- > 0;) {
      first += dims[d].first;
      second += dims[d].second;
      if (++index[d] < dims[d].size) break;
      index[d] = 0;
      first -= dims[d].size * dims[d].first;
      second -= dims[d].size * dims[d].second;
    }
  }
}

// Calls body(first offset, second offset) for each of these elements.
template <class Body>
void for_each_offset(const PairedDims& paired, int64_t begin, int64_t end, Body&& body) {
  const PairedDims::Dim last = paired.last();
  for_each_run(paired, begin, end, [&](int64_t first, int64_t second, int64_t count) {
    for (int64_t i = 0; i < count; ++i) body(first + i * last.first, second + i * last.second);
  });
}

}  // namespace shardwise
