// SPDX-License-Identifier: Apache-2.0
//
// Known reducers combine dim by dim: a prefix in one pass, any other window as one strided view per place in it. Other
// regions combine all places of the window at once, in row-major order.
#include <array>

#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/region_tiles.h"
#include "shardwise/ops/shared/strided_kernels.h"
#include "shardwise/ops/shared/windows.h"
#include "shardwise/ops/slicing/slicing.h"
#include "shardwise/ops/window/cumulative_kernels.h"
#include "shardwise/ops/window/reduce_window.h"
#include "shardwise/tile/program.h"

namespace shardwise {
namespace {

// The operand with padding and holes filled with init values; itself when there are none.
NdArray padded(KernelContext& context, const NdArray& operand, const NdArray& init, const Window& window) {
  Dims shape = operand.shape();
  bool changes = false;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    shape[dim] = window.padded_size(dim, shape[dim]);
    changes = changes || window.is_padded(dim);
  }
  if (!changes) return operand;
  const NdArray result = NdArray::empty(operand.dtype(), shape);
  pad_into(context, result, operand, init, window.low, window.interior());
  return result;
}

// Element `place` of the window at every position: what the window's elements are for results of this shape.
NdArray place_view(const NdArray& operand, DimSpan place, const Window& window, const Dims& shape) {
  Dims start;
  for (size_t dim = 0; dim < place.size(); ++dim) start.push_back(place[dim] * window.dilations[dim]);
  return region(operand, start, shape, window.strides);
}

// ---- known reducers ------------------------------------------------------------------------------------------------

TileCode code_of(Reducer reducer) {
  switch (reducer) {
    case Reducer::kSum: return TileCode::kAdd;
    case Reducer::kProd: return TileCode::kMultiply;
    case Reducer::kMax: return TileCode::kMaximum;
    case Reducer::kMin: return TileCode::kMinimum;
    case Reducer::kAnd: return TileCode::kAnd;
    default: return TileCode::kOr;
  }
}

// A prepared reduce_window with a known reducer.
struct PreparedWindows {
  Window window;
  Reducer reducer;
  DType wide;  // in which it computes
  TileProgram combine;
  TensorType result;

  PreparedWindows(const OpView& op, Reducer known, const TensorType& type)
      : window(Window::of(op)), reducer(known), wide(computed_in(type.dtype)), result(type) {
    TileBuilder tiles;
    const uint32_t lhs = tiles.input(wide), rhs = tiles.input(wide);
    tiles.output(tiles.emit(code_of(reducer), {lhs, rhs}, wide));
    combine = std::move(tiles).build();
  }
};

class KnownWindows {
 public:
  KnownWindows(KernelContext& context, const PreparedWindows& prepared)
      : context_(context),
        prepared_(prepared),
        window_(prepared.window),
        init_(converted(context, context.operand(1), prepared.wide)) {}

  void run() {
    NdArray value = scanned(converted(context_, context_.operand(0), prepared_.wide));
    if (!done_) value = windowed(padded(context_, value, init_, window_));
    if (!is_in_result()) convert_into(context_, context_.allocate_result(), value);
  }

 private:
  bool is_in_result() const { return prepared_.wide == prepared_.result.dtype; }
  // What is computed last is computed in the result, unless it is rounded once more.
  NdArray last(const Dims& shape) {
    return is_in_result() ? context_.allocate_result() : NdArray::empty(prepared_.wide, shape);
  }

  // One pass for each dim of prefix form. A sum or product counts its init value for each place of padding, so that
  // there must be nothing to count.
  NdArray scanned(NdArray value) {
    const bool repeatable = is_idempotent(prepared_.reducer) ? has_scan(prepared_.wide, prepared_.reducer)
                                                             : is_neutral(prepared_.reducer, init_.scalar_at());
    bool is_last = repeatable;  // nothing is left for `windowed`
    for (size_t dim = 0; dim < window_.sizes.size(); ++dim) {
      is_last = is_last && (window_.is_trivial(dim) || window_.prefix(dim, value.shape()[dim]) != Prefix::kNone);
    }
    for (size_t dim = 0; dim < window_.sizes.size() && repeatable; ++dim) {
      const Prefix prefix = window_.prefix(dim, value.shape()[dim]);
      if (prefix == Prefix::kNone) continue;
      const NdArray from = done_any_ ? value : contiguous_array(context_, value);
      if (!done_any_) value = is_last ? last(from.shape()) : NdArray::empty(prepared_.wide, from.shape());
      scan(context_, from, value, dim, prefix, prepared_.reducer, init_);
      window_.set_prefix(dim, 1, prefix);
      done_any_ = true;
    }
    done_ = done_any_ && is_last;
    return value;
  }

  NdArray windowed(NdArray value) {
    for (size_t dim = 0; dim < window_.sizes.size(); ++dim) {
      Dims shape = value.shape();
      shape[dim] = prepared_.result.shape[dim];
      Window window = Window::trivial(value.ndim());
      window.dilations[dim] = window_.dilations[dim];
      window.strides[dim] = window_.strides[dim];
      if (window_.sizes[dim] == 1) {
        value = region(value, Dims(shape.size(), 0), shape, window.strides);
        continue;
      }
      const NdArray total = NdArray::empty(prepared_.wide, shape);
      Dims place(shape.size(), 0);
      copy_array(context_, total, place_view(value, place, window, shape));
      for (place[dim] = 1; place[dim] < window_.sizes[dim]; ++place[dim]) {
        combine(total, place_view(value, place, window, shape), total);
      }
      value = total;
    }
    const NdArray result = last(value.shape());
    combine(broadcast_scalar(init_, value.shape()), value, result);
    return result;
  }

  void combine(const NdArray& lhs, const NdArray& rhs, const NdArray& to) {
    run_tiles(prepared_.combine, std::array{lhs, rhs}, std::array{to}, pool_of(context_));
  }

  KernelContext& context_;
  const PreparedWindows& prepared_;
  Window window_;  // trivial along the dims that are done
  NdArray init_;
  bool done_any_ = false, done_ = false;
};

// ---- other regions -------------------------------------------------------------------------------------------------

void run_by_region(KernelContext& context, const Window& window, const TileProgram& program, size_t count,
                   const Dims& shape) {
  std::vector<NdArray> totals, operands;
  for (size_t i = 0; i < count; ++i) {
    const NdArray& init = context.operand(count + i);
    totals.push_back(context.allocate_result(i));
    copy_array(context, totals[i], broadcast_scalar(init, shape));
    operands.push_back(padded(context, context.operand(i), init, window));
  }
  Dims place(shape.size(), 0);
  do {
    std::vector<NdArray> inputs = totals;
    for (const NdArray& operand : operands) inputs.push_back(place_view(operand, place, window, shape));
    run_tiles(program, inputs, totals, pool_of(context));
  } while (next_index(place, window.sizes));
}

}  // namespace

// A merged dim must have a window of one element.
std::optional<Kernel> prepare_reduce_window(const OpView& op, const KernelTypes& types) {
  const Window window = Window::of(op);
  const Dims& shape = types.results[0].shape;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] != window.result_size(dim, types.operands[0].shape[dim])) return std::nullopt;
  }
  const size_t count = types.results.size();
  if (types.results[0].size() == 0) {
    return [count](KernelContext& context) {
      for (size_t i = 0; i < count; ++i) context.allocate_result(i);
    };
  }
  if (const std::optional<Reducer> reducer = op_reducer(op)) {
    return [prepared = PreparedWindows(op, *reducer, types.results[0])](KernelContext& context) {
      KnownWindows(context, prepared).run();
    };
  }
  return [window, program = region_tiles(op.module(), op.regions()[0]), count, shape](KernelContext& context) {
    run_by_region(context, window, program, count, shape);
  };
}

}  // namespace shardwise
