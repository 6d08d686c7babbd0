// SPDX-License-Identifier: Apache-2.0
//
// Gathers and scatters without the index components that are known (ir/known_integers.h):
//
//   %1 = gather %x, [[0], [1], …, [63]], each with its row %r        x[arange(64), %t]: dim 0 of %x is a batching dim
//   %1 = gather %x, [[3, %i]]                                        row 3 of %x, then %i of it
//   %1 = gather %x, [[1], [0], [3], [2], …]                          blocks of two rows, reversed (known_rows.h)
//   %1 = scatter %c, [[%i, 0]], windows as large as dim 1            dim 1 begins at 0: no component is needed
//
// JAX wraps negative indices of such columns: select(i < 0, i + n, i).
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/indexing/indexing.h"
#include "shardwise/ops/indexing/known_rows.h"
#include "shardwise/ops/indexing/known_writes.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/known_integers.h"

namespace shardwise {
namespace {

// Whether the op has attributes of its own only: a sharding rule of the user numbers the dims of this very op.
bool has_only(const OpView& op, std::initializer_list<std::string_view> own) {
  return std::ranges::all_of(op.attrs().entries(),
                             [&](const auto& entry) { return std::ranges::find(own, entry.first) != own.end(); });
}

// What is known about the index components, which are taken away one by one.
class Components {
 public:
  Components(Builder& builder, ValueId indices, const Indexing& indexing)
      : builder_(builder),
        indices_(indices),
        indexing_(indexing),
        dims_(indexing.dims.index_map),
        is_kept_(dims_.size(), true) {}

  size_t count() const { return is_kept_.size(); }
  int64_t dim(size_t component) const { return dims_[component]; }

  KnownIntegers known(size_t component) const {
    Dims at(indexing_.indices.size(), kAnyPlace);
    const int64_t vector_dim = indexing_.dims.index_vector_dim;
    if (vector_dim < std::ssize(at)) at[static_cast<size_t>(vector_dim)] = static_cast<int64_t>(component);
    return known_integers(builder_.module(), indices_, at);
  }

  void take_away(size_t component) { is_kept_[component] = false; }
  void move_to(size_t component, int64_t dim) { dims_[component] = dim; }
  bool are_as_before() const { return std::ranges::count(is_kept_, false) == 0 && dims_ == indexing_.dims.index_map; }
  bool is_last(size_t component) const { return is_kept_[component] && std::ranges::count(is_kept_, true) == 1; }
  bool is_any_kept() const { return std::ranges::count(is_kept_, true) != 0; }

  // The indices with the components that are left, for these dimension numbers.
  ValueId kept(IndexingDims& dims) const {
    dims.index_map.clear();
    const auto vector_dim = static_cast<size_t>(dims.index_vector_dim);
    std::vector<ValueId> columns;
    for (size_t i = 0; i < is_kept_.size(); ++i) {
      if (!is_kept_[i]) continue;
      dims.index_map.push_back(dim(i));
      const auto column = static_cast<int64_t>(i);
      columns.push_back(is_kept_.size() == 1 ? indices_
                                             : build_slice_along(builder_, indices_, vector_dim, column, column + 1));
    }
    if (!columns.empty()) return build_concatenate(builder_, columns, dims.index_vector_dim);
    TensorType none = builder_.module().type(indices_);
    none.shape.resize(std::max(none.shape.size(), vector_dim + 1));
    none.shape[vector_dim] = 0;
    return build_zeros(builder_, none);
  }

 private:
  Builder& builder_;
  ValueId indices_;
  const Indexing& indexing_;
  Dims dims_;  // of the operand, by component
  std::vector<bool> is_kept_;
};

// The dim of the operand gets its index from the place in a dim of the indices, which has as many.
void pair_dims(IndexingDims& dims, int64_t of_operand, int64_t of_indices) {
  std::erase(dims.collapsed, of_operand);
  const auto after = std::ranges::upper_bound(dims.operand_batching, of_operand);
  const auto place = after - dims.operand_batching.begin();
  dims.operand_batching.insert(after, of_operand);
  dims.indices_batching.insert(dims.indices_batching.begin() + place, of_indices);
}

bool can_be_paired(const IndexingDims& dims, int64_t of_operand, int64_t of_indices) {
  return of_indices >= 0 && contains_dim(dims.collapsed, of_operand) &&
         !contains_dim(dims.indices_batching, of_indices);
}

bool counts_from_zero(const std::vector<int64_t>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// start, start + step, …: a slice, which is no larger than its operand.
bool are_ascending_steps(const std::vector<int64_t>& rows) {
  if (rows.size() < 2) return true;
  const int64_t step = rows[1] - rows[0];
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] - rows[i - 1] != step) return false;
  }
  return step > 0;
}

// ---- gather ---------------------------------------------------------------------------------------------------------

class GatherFold {
 public:
  GatherFold(Builder& builder, const OpView& op)
      : builder_(builder),
        indexing_(gather_indexing(op)),
        components_(builder, op.operand(1), indexing_),
        dims_(indexing_.dims),
        operand_(op.operand(0)),
        slice_(indexing_.slice) {}

  ValueId run() {
    for (size_t i = 0; i < components_.count(); ++i) {
      if (is_taken_away(i)) components_.take_away(i);
    }
    if (components_.are_as_before()) return {};
    const ValueId indices = components_.kept(dims_);
    return components_.is_any_kept() ? build_gather(builder_, operand_, indices, dims_, slice_) : moved();
  }

 private:
  bool is_taken_away(size_t component) {
    const int64_t dim = components_.dim(component);
    const auto d = static_cast<size_t>(dim);
    const int64_t limit = indexing_.operand[d] - slice_[d];
    const auto clamped_to = [&](int64_t index) { return std::clamp<int64_t>(index, 0, limit); };
    const KnownIntegers known = components_.known(component);
    if (clamped_to(known.low) == clamped_to(known.high)) {
      const int64_t start = clamped_to(known.low);
      operand_ = build_slice_along(builder_, operand_, d, start, start + slice_[d]);
      return true;
    }
    if (!known.line || slice_[d] != 1) return false;
    pair_first_dim(component, known);
    if (!can_be_paired(dims_, dim, known.dim)) return false;
    std::vector<int64_t> rows = numbers_of(*known.line);
    std::ranges::transform(rows, rows.begin(), clamped_to);
    const bool is_whole = std::ssize(rows) == indexing_.operand[d] && counts_from_zero(rows);
    // Rows are taken of the whole operand, of which other components may read a small part.
    if (!is_whole && !components_.is_last(component) && !are_ascending_steps(rows)) return false;
    const ValueId moved = is_whole ? operand_ : build_known_rows(builder_, operand_, d, rows);
    if (!moved) return false;
    operand_ = moved;
    pair_dims(dims_, dim, known.dim);
    return true;
  }

  // x[i, i] for each i: the first of the two dims is paired, and the second one keeps the index.
  void pair_first_dim(size_t component, const KnownIntegers& known) {
    const int64_t dim = components_.dim(component);
    const auto pair = std::ranges::find(dims_.indices_batching, known.dim) - dims_.indices_batching.begin();
    if (known.dim < 0 || pair == std::ssize(dims_.indices_batching)) return;
    const int64_t paired = dims_.operand_batching[static_cast<size_t>(pair)];
    const bool counts = known.line->size() == indexing_.operand[static_cast<size_t>(dim)];
    if (!counts || paired < dim || !contains_dim(dims_.collapsed, dim)) return;
    if (slice_[static_cast<size_t>(paired)] != 1 || !counts_from_zero(numbers_of(*known.line))) return;
    dims_.operand_batching.erase(dims_.operand_batching.begin() + pair);
    dims_.indices_batching.erase(dims_.indices_batching.begin() + pair);
    dims_.collapsed.insert(std::ranges::upper_bound(dims_.collapsed, paired), paired);
    pair_dims(dims_, dim, known.dim);
    components_.move_to(component, paired);
  }

  // Without components, the slices are at fixed places: nothing is left but to move dims.
  ValueId moved() {
    Dims start(slice_.size(), 0), limit = builder_.module().type(operand_).shape;
    for (size_t d = 0; d < limit.size(); ++d) {
      if (!contains_dim(dims_.operand_batching, static_cast<int64_t>(d))) limit[d] = slice_[d];
    }
    Indexing left = indexing_;
    left.dims = dims_;
    const Dims window = left.window_dims(), batch = left.batch_dims(), indices = left.indices_dims();
    Dims shape;   // of the operand without collapsed dims
    Dims places;  // of its dims in the result
    for (size_t d = 0; d < limit.size(); ++d) {
      const auto dim = static_cast<int64_t>(d);
      if (contains_dim(dims_.collapsed, dim)) continue;
      shape.push_back(limit[d]);
      const auto of_window = std::ranges::find(window, dim);
      if (of_window != window.end()) {
        places.push_back(dims_.offset[static_cast<size_t>(of_window - window.begin())]);
        continue;
      }
      const auto pair = std::ranges::find(dims_.operand_batching, dim) - dims_.operand_batching.begin();
      const auto paired = std::ranges::find(indices, dims_.indices_batching[static_cast<size_t>(pair)]);
      places.push_back(batch[static_cast<size_t>(paired - indices.begin())]);
    }
    const ValueId rows = build_reshape(builder_, build_slice(builder_, operand_, start, limit), shape);
    // In the order of the result, as a broadcast has them.
    Dims order = identity_dims(std::ssize(places));
    std::ranges::sort(order, {}, [&](int64_t i) { return places[static_cast<size_t>(i)]; });
    const ValueId ordered = build_transpose(builder_, rows, order);
    std::ranges::sort(places);
    return build_broadcast(builder_, ordered, indexing_.out, places);
  }

  Builder& builder_;
  const Indexing indexing_;
  Components components_;
  IndexingDims dims_;
  ValueId operand_;
  Dims slice_;
};

}  // namespace

ValueId fold_gather(Builder& builder, const OpView& op) {
  if (!has_only(op, {"dimension_numbers", "slice_sizes", "indices_are_sorted"})) return {};
  if (op.result_type().size() == 0) return {};
  return GatherFold(builder, op).run();
}

// An index out of bounds is dropped, not clamped.
ValueId fold_scatter(Builder& builder, const OpView& op) {
  if (!has_only(op, {"scatter_dimension_numbers", "indices_are_sorted", "unique_indices"})) return {};
  if (op.result_count() != 1 || op.operand_type(2).size() == 0) return {};
  const Indexing indexing = scatter_indexing(op);
  Components components(builder, op.operand(1), indexing);
  IndexingDims dims = indexing.dims;
  for (size_t i = 0; i < components.count(); ++i) {
    const int64_t dim = components.dim(i);
    const KnownIntegers known = components.known(i);
    // A window smaller than the dim needs its start, where it is cut into shards.
    const auto d = static_cast<size_t>(dim);
    if (known.number() == 0 && indexing.slice[d] == indexing.operand[d]) {
      components.take_away(i);
    } else if (known.number() && components.count() == 1) {
      if (const ValueId written = build_known_window(builder, op, *known.number())) return written;
    } else if (known.line && can_be_paired(dims, dim, known.dim)) {
      const std::vector<int64_t> rows = numbers_of(*known.line);
      if (std::ssize(rows) != indexing.operand[static_cast<size_t>(dim)] || !counts_from_zero(rows)) {
        if (components.count() != 1) continue;
        if (const ValueId written = build_known_writes(builder, op, rows)) return written;
        continue;
      }
      pair_dims(dims, dim, known.dim);
      components.take_away(i);
    }
  }
  if (components.are_as_before()) return {};
  const std::array operands{op.operand(0), components.kept(dims), op.operand(2)};
  Attrs attrs = op.attrs();
  attrs.set("scatter_dimension_numbers", scatter_attribute(dims));
  attrs.erase("indices_are_sorted");
  const OpId made = create_again(builder, op, operands, builder.context().intern(std::move(attrs)));
  return builder.module().result(made, 0);
}

}  // namespace shardwise
