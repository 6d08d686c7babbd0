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

// Where the windows of a scatter start: first elements in the updates and in the result.
class WindowPlaces {
 public:
  static constexpr int64_t kDropped = INT64_MIN;  // of a window that is out of bounds

  WindowPlaces(KernelContext& context, const NdArray& indices, const Indexing& indexing);
  int64_t count() const { return starts_.count(); }
  int64_t start(int64_t window, size_t component) const { return starts_[window][component]; }

  // Calls body(from, to) for windows [begin, end).
  template <class Body>
  void for_each(int64_t begin, int64_t end, Body&& body) const {
    components_.size() == 1 ? for_each_of<1>(begin, end, body) : for_each_of<0>(begin, end, body);
  }

 private:
  struct Component {
    int64_t after, before, stride;  // a window that starts outside of (after, before) is dropped
  };

  static constexpr int64_t kBlock = 512;

  template <size_t kComponents, class Body>  // 0: any number
  void for_each_of(int64_t begin, int64_t end, Body& body) const {
    const size_t count = kComponents != 0 ? kComponents : components_.size();
    const Component only = kComponents == 1 ? components_[0] : Component{};  // a copy stays in registers
    const Component* const components = kComponents == 1 ? &only : components_.data();
    const int64_t* start = starts_[begin];
    const PairedDims::Dim last = batch_.last();
    for_each_run(batch_, begin, end, [&](int64_t from, int64_t to, int64_t run) {
      for (int64_t first = 0; first < run; first += kBlock) {
        const int64_t block = std::min(kBlock, run - first);
        // Blocks of indices that need no test of their own.
        const bool inside = kComponents == 1 && all_inside(start, block, only.before - 1);
        for (int64_t i = 0; i < block; ++i, from += last.first, to += last.second, start += count) {
          if (kComponents == 1 && inside) {
            body(from, to + *start * only.stride);
          } else {
            body(from, place(start, components, count, to));
          }
        }
      }
    });
  }

  static int64_t place(const int64_t* start, const Component* components, size_t count, int64_t to) {
    for (size_t k = 0; k < count; ++k) {
      if (start[k] <= components[k].after || start[k] >= components[k].before) return kDropped;
      to += start[k] * components[k].stride;
    }
    return to;
  }

  IndexVectors starts_;
  PairedDims batch_;  // of the indices: updates, result
  std::vector<Component> components_;
};

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
  // Windows that start at elements [begin, end) of the result, clipped to [first, last) of dim `split_` of the window.
  struct Piece {
    int64_t begin, end, first, last;
  };

  void place_all(KernelContext& context);
  // Clips the box to the operand, and moves both offsets to its start.
  void cut(int64_t place, PairedDims& box, int64_t& from, int64_t& to) const;

  // Windows of one element are written as their indices are read, without from_ and to_.
  bool has_elements() const { return !may_cut_ && box_.dims.empty(); }
  template <class Run>
  void apply_elements(const Piece& piece, Run& run) const {
    places_.for_each(0, places_.count(), [&, begin = piece.begin, end = piece.end](int64_t from, int64_t to) {
      if (to < begin || to >= end) return;
      if constexpr (requires { run.one(to, from); }) {
        run.one(to, from);
      } else {
        run(1, to, 1, from, 1);
      }
    });
  }

  template <class Run>
  void apply(const Piece& piece, Run& run) const {
    if (has_elements()) return apply_elements(piece, run);
    PairedDims part = box_, box;
    int64_t from_shift = 0, to_shift = 0;
    if (split_ >= 0) {
      PairedDims::Dim& dim = part.dims[static_cast<size_t>(split_)];
      dim.size = piece.last - piece.first;
      from_shift = piece.first * dim.first;
      to_shift = piece.first * dim.second;
    }
    box = part;
    const auto count = static_cast<int64_t>(to_.size());
    for (int64_t i = 0; i < count; ++i) {
      int64_t to = to_[static_cast<size_t>(i)], from = from_[static_cast<size_t>(i)];
      if (to == WindowPlaces::kDropped || (by_rows_ && (to < piece.begin || to >= piece.end))) continue;
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
  WindowPlaces places_;
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
