// SPDX-License-Identifier: Apache-2.0
//
// The destination and order of a scatter's windows. Each element of the result gets its updates in the order of the
// updates tensor, on any number of threads.
//
//   ScatterPlan plan(context, indexing, 1);          // table (512, 32), ids (64, 1), updates (64, 32)
//   plan.run(context, [&] {                          // called once per piece of work: its state
//     return [&](int64_t count, int64_t to, int64_t to_stride, int64_t from, int64_t from_stride) {
//       for (int64_t i = 0; i < count; ++i) result[to + i * to_stride] += updates[from + i * from_stride];
//     };                                             // called with (32, 32 · id, 1, 32 · n, 1) for each n
// Runs with a member one(to, from) get windows of one element through it.
//   });
//
// Offsets count elements of the row-major result and updates.
#pragma once

#include "shardwise/base/thread_pool.h"
#include "shardwise/ops/indexing/index_places.h"

namespace shardwise {

class ScatterPlan {
 public:
  // `inputs` operands come before the indices; `indexing` must outlive the plan.
  ScatterPlan(KernelContext& context, const Indexing& indexing, size_t inputs);

  template <class MakeRun>
  void run(KernelContext& context, const MakeRun& make_run) const {
    const auto piece = [&](const Piece& part) {
      auto run = make_run();
      apply(part, run);
    };
    const Piece whole{0, span_, 0, split_ < 0 ? 0 : box_.dims[static_cast<size_t>(split_)].size};
    if (!worth_splitting_) return piece(whole);
    const int64_t pieces = thread_count();  // each piece reads all indices
    if (by_rows_) {
      context.parallel_for(span_, ceil_div(span_, pieces),
                           [&](int64_t begin, int64_t end) { piece({begin, end, whole.first, whole.last}); });
    } else {
      context.parallel_for(whole.last, ceil_div(whole.last, pieces),
                           [&](int64_t begin, int64_t end) { piece({whole.begin, whole.end, begin, end}); });
    }
  }

 private:
  static constexpr int64_t kDropped = INT64_MIN;

  // Windows that start at elements [begin, end) of the result, clipped to [first, last) of dim `split_` of the window.
  struct Piece {
    int64_t begin, end, first, last;
  };

  void place(int64_t begin, int64_t end, const Dims& out_strides, const Dims& strides);
  // Clips the box to the operand, and moves both offsets to its start.
  void cut(int64_t place, PairedDims& box, int64_t& from, int64_t& to) const;

  template <class Run>
  void apply(const Piece& piece, Run& run) const {
    PairedDims part = box_, box;
    int64_t from_shift = 0, to_shift = 0;
    if (split_ >= 0) {
      PairedDims::Dim& dim = part.dims[static_cast<size_t>(split_)];
      dim.size = piece.last - piece.first;
      from_shift = piece.first * dim.first;
      to_shift = piece.first * dim.second;
    }
    if (part.dims.empty()) part.add(1, 1, 1);
    box = part;
    const auto count = static_cast<int64_t>(to_.size());
    if constexpr (requires { run.one(int64_t{}, int64_t{}); }) {
      if (box_.dims.empty() && !may_cut_) {
        for (size_t i = 0; i < to_.size(); ++i) {
          if (to_[i] >= piece.begin && to_[i] < piece.end) run.one(to_[i], from_[i]);
        }
        return;
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      int64_t to = to_[static_cast<size_t>(i)], from = from_[static_cast<size_t>(i)];
      if (to == kDropped || (by_rows_ && (to < piece.begin || to >= piece.end))) continue;
      if (may_cut_) {
        box = part;
        cut(i, box, from, to);
      }
      run_box(box, from + from_shift, to + to_shift, run);
    }
  }

  template <class Run>
  static void run_box(const PairedDims& box, int64_t from, int64_t to, Run& run) {
    const PairedDims::Dim& inner = box.dims.back();
    if (box.dims.size() == 1) return run(inner.size, to, inner.second, from, inner.first);
    int64_t outer = 1;
    for (size_t d = 0; d + 1 < box.dims.size(); ++d) outer *= box.dims[d].size;
    for (int64_t i = 0; i < outer; ++i) {
      int64_t a = from, b = to, rest = i;
      for (size_t d = box.dims.size() - 1; d-- > 0;) {
        a += rest % box.dims[d].size * box.dims[d].first;
        b += rest % box.dims[d].size * box.dims[d].second;
        rest /= box.dims[d].size;
      }
      run(inner.size, b, inner.second, a, inner.first);
    }
  }

  const Indexing& indexing_;
  IndexVectors starts_;
  PairedDims box_;                   // one window: updates, result; merged unless windows may be clipped
  std::vector<int> box_components_;  // for each dim of an unmerged box: the component that moves it, or -1
  std::vector<int64_t> from_, to_;   // first element of each window; kDropped when all of it is out of bounds
  bool may_cut_ = false;
  bool by_rows_ = false;  // windows are disjoint or equal, so each piece may take some of them
  bool worth_splitting_ = false;
  int split_ = -1;  // else: the dim of the box that pieces share
  int64_t span_ = 0;
};

}  // namespace shardwise
