// SPDX-License-Identifier: Apache-2.0
#include "shardwise/emission/windowed_dot.h"

#include <algorithm>
#include <unordered_map>

#include "shardwise/emission/cause.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/collectives/exchange.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

std::optional<size_t> place_in(const Dims& dims, int64_t dim) {
  const auto found = std::ranges::find(dims, dim);
  if (found == dims.end()) return std::nullopt;
  return static_cast<size_t>(found - dims.begin());
}

// The dims that belong to dim `dim` of an operand.
WindowedDims dims_of_operand(const OpView& op, bool is_lhs, size_t dim) {
  const DotDims dims = dot_dims(op.attrs());
  const auto wanted = static_cast<int64_t>(dim);
  const Dims& batching = is_lhs ? dims.lhs_batching : dims.rhs_batching;
  const Dims& contracting = is_lhs ? dims.lhs_contracting : dims.rhs_contracting;
  WindowedDims found;
  (is_lhs ? found.lhs : found.rhs) = dim;
  std::optional<size_t>& other = is_lhs ? found.rhs : found.lhs;
  if (const auto at = place_in(batching, wanted)) {
    other = static_cast<size_t>((is_lhs ? dims.rhs_batching : dims.lhs_batching)[*at]);
    found.result = *at;
  } else if (const auto pair = place_in(contracting, wanted)) {
    other = static_cast<size_t>((is_lhs ? dims.rhs_contracting : dims.lhs_contracting)[*pair]);
  } else {
    const Dims lhs_free = dims.lhs_free(op.operand_type(0).ndim());
    const size_t first = batching.size() + (is_lhs ? 0 : lhs_free.size());
    found.result = first + *place_in(is_lhs ? lhs_free : dims.rhs_free(op.operand_type(1).ndim()), wanted);
  }
  return found;
}

WindowedDims dims_of_result(const OpView& op, size_t dim) {
  const DotDims dims = dot_dims(op.attrs());
  const Dims lhs_free = dims.lhs_free(op.operand_type(0).ndim());
  const size_t batch = dims.lhs_batching.size();
  if (dim < batch) return dims_of_operand(op, true, static_cast<size_t>(dims.lhs_batching[dim]));
  if (dim < batch + lhs_free.size()) return dims_of_operand(op, true, static_cast<size_t>(lhs_free[dim - batch]));
  const Dims rhs_free = dims.rhs_free(op.operand_type(1).ndim());
  return dims_of_operand(op, false, static_cast<size_t>(rhs_free[dim - batch - lhs_free.size()]));
}

// The only dim that has axes.
std::optional<size_t> only_dim(const std::vector<AxisList>& axes) {
  std::optional<size_t> found;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].empty()) continue;
    if (found) return std::nullopt;
    found = d;
  }
  return found;
}

// Whether an op only groups the elements of its operand otherwise, as a reshape or a transpose does.
bool regroups(const OpView& op) {
  const Traits& traits = op.def().traits;
  return traits.movement && traits.collective == CollectiveKind::kNone && op.operand_count() == 1 &&
         op.result_count() == 1 && !sharding_rule(op).empty() && !sharding_rule(op).has_ranges() &&
         op.operand_type(0).element_quantity() == op.result_type().element_quantity();
}

// The dim of another tensor of the op that has nothing but the factor of this one.
std::optional<size_t> same_dim(const OpView& op, size_t tensor, size_t dim, size_t other) {
  const ShardingRule& rule = sharding_rule(op);
  const auto factors = rule.dim(tensor, dim);
  if (factors.size() != 1 || rule.factors()[factors[0]].size < 2) return std::nullopt;
  for (size_t d = 0; d < rule.ndim(other); ++d) {
    if (std::ranges::equal(rule.dim(other, d), factors)) return d;
  }
  return std::nullopt;
}

std::optional<size_t> dim_before(const OpView& op, size_t dim) {
  return regroups(op) ? same_dim(op, sharding_rule(op).result_tensor(0), dim, 0) : std::nullopt;
}

struct GatheredDim {
  size_t dim = 0;
  AxisList axes = {};
};

bool is_in_place(const ExchangeTarget& to, const ExchangeSource& from) {
  return from.scale == 1 && from.offset == 0 && from.holes == 1 && from.begin == 0 && from.end >= to.size &&
         from.size == to.size;
}

// Returns the dim that an exchange gathers, if it does what an all_gather and a slice of its padding do.
std::optional<GatheredDim> gathered_by_exchange(const OpView& op) {
  const ExchangeMap map = exchange_map(op);
  if (map.is_across_meshes() || map.from.size() != 1 || op.operand_count() != 1) return std::nullopt;
  std::optional<GatheredDim> found;
  for (size_t d = 0; d < map.to.size(); ++d) {
    const ExchangeTarget& to = map.to[d];
    const ExchangeSource& from = map.from[0][d];
    if (!is_in_place(to, from)) return std::nullopt;
    if (to.axes == from.axes) {
      if (to.rows != from.block || to.step != to.rows) return std::nullopt;
    } else if (to.axes.empty() && !found) {
      found = {d, from.axes};
    } else {
      return std::nullopt;
    }
  }
  return found;
}

// The only dim that an op gathers, if it does nothing else.
std::optional<GatheredDim> gathered_dim(const OpView& op) {
  if (op.def().traits.collective == CollectiveKind::kExchange) return gathered_by_exchange(op);
  if (op.def().traits.collective != CollectiveKind::kAllGather) return std::nullopt;
  const std::vector<AxisList> axes = collective_dim_axes(op, "gather");
  const std::optional<size_t> dim = only_dim(axes);
  return dim ? std::optional(GatheredDim{*dim, axes[*dim]}) : std::nullopt;
}

bool is_dot(const OpView& op) { return op.name() == dot_general_ops().front().name; }

bool reads_in_place(const Range* range) {
  return range == nullptr ||
         (range->scale == 1 && range->offset == 0 && range->window == 1 && range->holes == 1 && range->is_static());
}

// Whether an op leaves all elements of operand 0 at their places, but for some at the end of one dim: a slice or a pad.
bool changes_end_of(const OpView& op, size_t dim) {
  const ShardingRule& rule = sharding_rule(op);
  if (!op.def().traits.movement || rule.empty() || op.result_count() != 1) return false;
  const size_t result = rule.result_tensor(0);
  if (rule.ndim(0) != rule.ndim(result)) return false;
  for (size_t d = 0; d < rule.ndim(0); ++d) {
    const Range* range = rule.has_ranges() ? rule.range(0, d) : nullptr;
    if (!std::ranges::equal(rule.dim(0, d), rule.dim(result, d)) || !reads_in_place(range)) return false;
    if (d != dim && op.operand_type(0).shape[d] != op.result_type().shape[d]) return false;
  }
  return true;
}

bool cuts_end_of(const OpView& op, size_t dim) {
  return op.operand_count() == 1 && changes_end_of(op, dim) &&
         op.result_type().shape[dim] <= op.operand_type(0).shape[dim];
}

bool pads_end_of(const OpView& op, size_t dim) {
  return op.operand_count() == 2 && op.operand_type(1).ndim() == 0 && changes_end_of(op, dim) &&
         op.result_type().shape[dim] >= op.operand_type(0).shape[dim];
}

class WindowSearch {
 public:
  WindowSearch(Module& module, bool splits) : module_(module), splits_(splits) {}

  std::vector<WindowedDot> run() {
    module_.uses({});
    for (const Function& function : module_.functions) visit(function.body);
    return std::move(found_);
  }

 private:
  void visit(RegionId region) {
    const std::vector<OpId> ops = module_.region(region).ops;
    for (size_t i = 0; i < ops.size(); ++i) place_[ops[i]] = i;
    for (const OpId id : ops) {
      const OpView op(module_, id);
      // A collective that no need of an op has caused is one that the user wrote.
      const bool is_caused = op.attrs().find(kCauseAttr) != nullptr;
      if (is_caused) add_gather(op);
      if (is_caused && op.def().traits.collective == CollectiveKind::kReduceScatter) add_reduction(op);
      for (const RegionId inner : op.regions()) visit(inner);
    }
  }

  // ---- gathers -----------------------------------------------------------------------------------------------------

  void add_gather(const OpView& op) {
    const std::optional<GatheredDim> gathers = gathered_dim(op);
    if (!gathers || !is_ring(op, gathers->dim, gathers->axes)) return;
    WindowedDot window = window_of(op, gathers->dim, gathers->axes);
    ValueId gathered = op.result();
    for (OpId next = mover(window, gathered); next; next = mover(window, gathered)) {
      window.dim = dim_after(OpView(module_, next), window.dim).value_or(window.dim);
      window.between.push_back(next);
      gathered = module_.result(next);
    }
    if (!add_readers(window, gathered) || window.products.empty()) return;
    add_placed(std::move(window));
  }

  // The only reader of the value, if it leaves the gathered dim whole or cuts its padding off.
  OpId mover(const WindowedDot& window, ValueId gathered) {
    const std::optional<Use> use = only_use(module_, gathered);
    if (!use || !use->op || module_.op(use->op).parent != module_.op(window.collective).parent) return {};
    const OpView op(module_, use->op);
    return cuts_end_of(op, window.dim) || dim_after(op, window.dim) ? op.id() : OpId{};
  }

  // False where anything else than a product of the same region reads the value.
  bool add_readers(WindowedDot& window, ValueId gathered) {
    const RegionId region = module_.op(window.collective).parent;
    for (const Use use : module_.uses(gathered)) {
      if (!use.op || module_.op(use.op).parent != region) return false;
      const OpView reader(module_, use.op);
      if (!is_dot(reader) || reader.operand(0) == reader.operand(1)) return false;
      const bool is_lhs = use.index == 0;
      window.products.push_back({reader.id(), dims_of_operand(reader, is_lhs, window.dim), is_lhs});
    }
    std::ranges::sort(window.products, {}, [&](const WindowedDot::Product& product) { return place_.at(product.op); });
    return true;
  }

  void add_placed(WindowedDot window) {
    if (are_made_before(window)) return found_.push_back(std::move(window));
    if (!splits_) return;
    for (const WindowedDot::Product& product : window.products) {
      WindowedDot one = window;
      one.products = {product};
      found_.push_back(std::move(one));
    }
  }

  // Whether the other operands of all products are made before the first of them.
  bool are_made_before(const WindowedDot& window) const {
    const OpId first = window.products.front().op;
    return std::ranges::all_of(window.products, [&](const WindowedDot::Product& product) {
      const OpId made = module_.value(OpView(module_, product.op).operand(product.gathers_lhs ? 1 : 0)).op;
      return !made || module_.op(made).parent != module_.op(first).parent || place_.at(made) < place_.at(first);
    });
  }

  // ---- reductions --------------------------------------------------------------------------------------------------

  void add_reduction(const OpView& op) {
    const std::vector<AxisList> axes = collective_dim_axes(op, "scatter");
    const std::optional<size_t> dim = only_dim(axes);
    // Along further axes it would be reduced without being scattered.
    if (!dim || !is_ring(op, *dim, axes[*dim]) || product(collective_axes(op)) != product(axes[*dim])) return;
    const Reducer reducer = collective_reducer(op);
    if (reducer != Reducer::kSum && reducer != Reducer::kOr) return;
    WindowedDot window = window_of(op, *dim, axes[*dim]);
    window.gathers = false;
    window.block = op.result_type().shape[*dim];
    OpId made = maker(op);
    for (; made; made = maker(OpView(module_, made))) {
      const OpView moved(module_, made);
      const std::optional<size_t> before = dim_before(moved, window.dim);
      if (!before && !pads_end_of(moved, window.dim)) break;
      window.dim = before.value_or(window.dim);
      window.between.insert(window.between.begin(), made);
    }
    if (!made || !is_dot(OpView(module_, made))) return;
    window.products.push_back({made, dims_of_result(OpView(module_, made), window.dim)});
    found_.push_back(std::move(window));
  }

  // The op of the same region that makes operand 0 for this op alone.
  OpId maker(const OpView& op) {
    const OpId made = module_.value(op.operand(0)).op;
    const bool is_here = made && module_.op(made).parent == module_.op(op.id()).parent;
    return is_here && only_use(module_, op.operand(0)) ? made : OpId{};
  }

  // ---- both ---------------------------------------------------------------------------------------------------------

  static bool is_ring(const OpView& op, size_t dim, const AxisList& axes) {
    return product(axes) > 1 && op.operand_type(0).shape[dim] > 0;
  }

  static WindowedDot window_of(const OpView& op, size_t dim, const AxisList& axes) {
    return {.collective = op.id(),
            .mesh = collective_mesh(op),
            .axes = axes,
            .dim = dim,
            .collective_dim = dim,
            .block = op.operand_type(0).shape[dim]};
  }

  Module& module_;
  const bool splits_;
  std::unordered_map<OpId, size_t> place_;  // in its region
  std::vector<WindowedDot> found_;
};

}  // namespace

std::vector<WindowedDot> windowed_dots(Module& local, bool splits) { return WindowSearch(local, splits).run(); }

std::optional<size_t> dim_after(const OpView& op, size_t dim) {
  return regroups(op) ? same_dim(op, 0, dim, sharding_rule(op).result_tensor(0)) : std::nullopt;
}

bool has_ring(const WindowedDot& dot, Ring ring) { return ring == Ring::kOneWay || dot.block > 1; }

WindowOperands window_operands(const Module& local, const WindowedDot& dot) {
  WindowOperands operands;
  if (dot.gathers) operands.shard = OpView(local, dot.collective).operand(0);
  for (const WindowedDot::Product& product : dot.products) {
    const OpView op(local, product.op);
    if (!dot.gathers || product.gathers_lhs) {
      if (!dot.gathers) operands.others.push_back(op.operand(0));
      operands.others.push_back(op.operand(1));
    } else {
      operands.others.push_back(op.operand(0));
    }
  }
  return operands;
}

}  // namespace shardwise
