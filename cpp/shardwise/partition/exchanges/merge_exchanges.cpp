// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/exchanges/merge_exchanges.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "shardwise/cost/exchange_cost.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/collectives/exchange.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/partition/exchanges/exchange_maps.h"
#include "shardwise/partition/exchanges/exchange_rewrite.h"

namespace shardwise {
namespace {

// An operand of an exchange, read where the exchange that makes it reads it.
struct Composition {
  OpId user;
  size_t k = 0;             // the operand
  std::vector<ValueId> by;  // instead of it
  ValueId fill;
  ExchangeMap before, map;
};

struct MergedRead {
  std::vector<ValueId> operands;
  std::vector<std::vector<ExchangeSource>> from;  // by operand
  ValueId fill;
};

// An exchange gets no more operands from those of others: each roll of a roll would have more of them.
constexpr size_t kMostMergedOperands = 16;

template <class T>
void replace_one(std::vector<T>& list, size_t k, const std::vector<T>& by) {
  if (by.size() == 1) {
    list[k] = by[0];
    return;
  }
  const auto at = list.erase(list.begin() + static_cast<std::ptrdiff_t>(k));
  list.insert(at, by.begin(), by.end());
}

// How an exchange with this map and fill reads its operand `k` where the exchange that makes it reads; none if no map
// does, or if the two have different fills. A join may become several operands.
std::optional<MergedRead> merged_read(const OpView& op, const ExchangeMap& map, ValueId fill, size_t k,
                                      const OpView& maker) {
  if (collective_mesh(op) != collective_mesh(maker)) return std::nullopt;
  const ExchangeMap inner = exchange_map(maker);
  const auto reads = composed_reads(map, k, inner);
  if (!reads || (reads->size() > 1 && map.from.size() + reads->size() - 1 > kMostMergedOperands)) return std::nullopt;
  if (!needs_no_fill(inner) && !same_fill(op.module(), op.result_type().dtype, fill, fill_of(maker))) {
    // One exchange has one fill. It can be the inner one's if the outer one fills nothing itself.
    if (!needs_no_fill(map)) return std::nullopt;
    fill = fill_of(maker);
  }
  MergedRead merged{.operands = {}, .from = {}, .fill = fill};
  for (const ComposedRead& read : *reads) {
    merged.operands.push_back(maker.operand(read.operand));
    merged.from.push_back(read.from);
  }
  return merged;
}

// An exchange whose operands are replaced one by one, and the elements that devices receive in it. A replacement is
// priced by its changes only, so n of them cost n times the positions, not n² times.
class ExchangeInProgress {
 public:
  using Sources = std::vector<std::vector<ExchangeSource>>;  // by operand
  struct Change {
    size_t k = 0;  // of increasing operands
    Sources from;  // instead of it
  };

  explicit ExchangeInProgress(ExchangeMap map) : map_(std::move(map)) { count_along(map_.axes()); }

  // `axes`: those that the next replacement has.
  void count_along(AxisSpan axes) {
    const auto is_known = [&](const AxisRef& axis) { return std::ranges::find(axes_, axis) != axes_.end(); };
    if (!axes_.empty() && std::ranges::all_of(axes, is_known)) return;
    for (const AxisRef& axis : axes) {
      if (!is_known(axis)) axes_.push_back(axis);
    }
    received_.clear();
    if (product(Coordinates(axes_).grid()) <= kMostPositions) received_ = counts(map_.from);
  }

  const ExchangeMap& map() const { return map_; }

  // Compares the most that any device receives with now, if operands are read as others. With too many positions and
  // operands to count, compares only these. `saved` is an exchange that becomes unused; it may be null.
  bool costs_no_more(std::span<const Change> changes, const ExchangeMap* saved) const {
    Sources old, made;
    for (const Change& change : changes) {
      old.push_back(map_.from[change.k]);
      made.insert(made.end(), change.from.begin(), change.from.end());
    }
    if (received_.empty()) {
      std::vector<ExchangeMap> before{only(old)}, after{only(made)};
      if (map_.from.size() <= kMostOperands) {
        before[0] = after[0] = map_;
        replace(after[0].from, changes);
      }
      if (saved != nullptr) before.push_back(*saved);
      return most_elements(after) <= most_elements(before);
    }
    const std::vector<double> less = counts(old), more = counts(made);
    Coordinates device(axes_);
    double before = 0, after = 0;
    for (size_t i = 0; i < received_.size(); ++i) {
      device.set_grid(static_cast<int64_t>(i));
      before = std::max(before, received_[i] + (saved == nullptr ? 0 : elements_at(*saved, device)));
      after = std::max(after, received_[i] - less[i] + more[i]);
    }
    return after <= before;
  }

  void apply(std::span<const Change> changes) {
    if (!received_.empty()) {
      for (const Change& change : changes) {
        const std::vector<double> less = counts({map_.from[change.k]}), more = counts(change.from);
        for (size_t i = 0; i < received_.size(); ++i) received_[i] += more[i] - less[i];
      }
    }
    replace(map_.from, changes);
  }

 private:
  static constexpr int64_t kMostPositions = 256;
  static constexpr size_t kMostOperands = 4;  // that are counted all for each replacement, with more positions

  static void replace(Sources& all, std::span<const Change> changes) {
    // The last one first: others keep their indices.
    for (const Change& change : changes | std::views::reverse) replace_one(all, change.k, change.from);
  }

  ExchangeMap only(Sources from) const { return {.to = map_.to, .from = std::move(from)}; }

  std::vector<double> counts(const Sources& from) const {
    const ExchangeMap map = only(from);
    Coordinates device(axes_);
    std::vector<double> found;
    for (int64_t i = 0; i < product(device.grid()); ++i) {
      device.set_grid(i);
      found.push_back(elements_at(map, device));
    }
    return found;
  }

  ExchangeMap map_;
  AxisList axes_;
  std::vector<double> received_;  // by position along `axes_`; empty: too many
};

// Whether the result has each element of the operand in its place. It may be a part of another value: tiles of 7 rows of
// 25 are also tiles of 26.
bool leaves_in_place(const OpView& op) {
  const Traits& traits = op.def().traits;
  if (!traits.movement || traits.side_effect || traits.annotates() || traits.barrier) return false;
  if (traits.collective != CollectiveKind::kNone) return false;
  if (op.operand_count() != 1 || op.result_count() != 1 || op.operand_type(0) != op.result_type()) return false;
  const ShardingRule& rule = sharding_rule(op);
  if (rule.empty()) return false;
  for (size_t d = 0; d < op.result_type().shape.size(); ++d) {
    if (op.result_type().shape[d] == 1) continue;
    const auto from = rule.dim(0, d), to = rule.dim(rule.result_tensor(0), d);
    const bool is_free = from.size() == 1 && rule.factors()[from[0]].kind == FactorKind::kPassThrough;
    if (!is_free || !std::ranges::equal(from, to)) return false;
  }
  return true;
}

// The operands of one exchange, each read where the exchanges that make it read. What else reads an operand keeps the
// exchange that makes it.
class OperandMerger {
 public:
  OperandMerger(Module& module, ExchangeChoices& choices, OpId id)
      : module_(module), choices_(choices), op_(module, id), fill_(fill_of(op_)) {
    ExchangeMap map = exchange_map(op_);
    for (size_t k = 0; k < map.from.size(); ++k) operands_.push_back(op_.operand(k));
    exchange_.emplace(std::move(map));
  }

  // Returns whether any was merged.
  bool run() {
    bool any = false;
    for (size_t k = 0; k < operands_.size(); ++k) {
      while (merge(k)) any = true;
    }
    return any;
  }
  const std::vector<ValueId>& operands() const { return operands_; }
  ValueId fill() const { return fill_; }
  const ExchangeMap& map() const { return exchange_->map(); }

 private:
  // An exchange, maybe followed by ops that leave its tiles as they are; none if there is no such exchange.
  OpId maker_of(ValueId value) const {
    OpId maker = module_.value(value).op;
    while (maker && leaves_in_place(OpView(module_, maker))) maker = module_.value(module_.operands(maker)[0]).op;
    return is_collective(module_, maker, CollectiveKind::kExchange) ? maker : OpId{};
  }

  // Whether nothing but this exchange will use what another one makes.
  bool goes(OpId maker) const {
    if (module_.op(maker).parent != module_.op(op_.id()).parent) return false;
    return std::ranges::all_of(module_.uses(module_.result(maker)), [&](const Use& use) {
      if (use.op == op_.id() || is_gone(use.op)) return true;
      return use.op && leaves_in_place(OpView(module_, use.op)) && goes(use.op);
    });
  }

  // Whether the op was merged, or only moves what such ops used.
  bool is_gone(OpId op) const {
    if (!op) return false;
    if (std::ranges::find(gone_, op) != gone_.end()) return true;
    const OpView view(module_, op);
    if (!is_collective(module_, op, CollectiveKind::kExchange) && !leaves_in_place(view)) return false;
    if (std::ranges::find(operands_, view.result()) != operands_.end()) return false;
    return std::ranges::all_of(module_.uses(view.result()), [&](const Use& use) { return is_gone(use.op); });
  }

  bool merge(size_t k) {
    const OpId maker = maker_of(operands_[k]);
    if (!maker) return false;
    if (!goes(maker)) return merge({k}, maker, false);
    // All that is read of it at once, so that its bytes are saved.
    const bool is_read_once = only_use(module_, module_.result(maker)).has_value();
    const std::vector<size_t> all = is_read_once ? std::vector<size_t>{k} : operands_of(maker);
    return merge(all, maker, true) || (all.size() > 1 && merge({k}, maker, false));
  }

  bool merge(const std::vector<size_t>& operands, OpId maker, bool goes) {
    const std::optional<Merge> merge = merged(operands, maker);
    if (!merge) return false;
    const ExchangeMap inner = exchange_map(OpView(module_, maker));
    exchange_->count_along(inner.axes());
    const auto costs_no_more = [&] { return exchange_->costs_no_more(merge->changes, goes ? &inner : nullptr); };
    if (!choices_.is_chosen(op_, "merged", costs_no_more)) return false;
    apply(*merge);
    if (goes) gone_.push_back(maker);
    return true;
  }

  std::vector<size_t> operands_of(OpId maker) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (maker_of(operands_[i]) == maker) found.push_back(i);
    }
    return found;
  }

  // Operands that are read where one exchange reads.
  struct Merge {
    std::vector<ExchangeInProgress::Change> changes;
    std::vector<std::vector<ValueId>> operands;  // by change
    ValueId fill;
  };

  std::optional<Merge> merged(const std::vector<size_t>& operands, OpId maker) const {
    Merge merge{.changes = {}, .operands = {}, .fill = fill_};
    for (const size_t k : operands) {
      auto read = merged_read(op_, map(), merge.fill, k, OpView(module_, maker));
      if (!read) return std::nullopt;
      merge.fill = read->fill;
      merge.changes.push_back({k, std::move(read->from)});
      merge.operands.push_back(std::move(read->operands));
    }
    return merge;
  }

  void apply(const Merge& merge) {
    exchange_->apply(merge.changes);
    for (size_t i = merge.changes.size(); i-- > 0;) replace_one(operands_, merge.changes[i].k, merge.operands[i]);
    fill_ = merge.fill;
  }

  Module& module_;
  ExchangeChoices& choices_;
  OpView op_;
  std::vector<ValueId> operands_;
  std::vector<OpId> gone_;  // exchanges that were merged, and that nothing else uses
  ValueId fill_;
  std::optional<ExchangeInProgress> exchange_;
};

class ExchangeMerger {
 public:
  ExchangeMerger(Module& module, ExchangeChoices& choices)
      : module_(module),
        choices_(choices),
        rewrite_(module),
        exchanges_(find_ops(module, [&](OpId id) { return is_collective(module, id, CollectiveKind::kExchange); })) {}

  int64_t run() {
    if (exchanges_.empty()) return 0;
    // The users of an exchange come after it, and may be replaced on the way.
    for (size_t i = 0; i < exchanges_.size(); ++i) merge_into_users(exchanges_[i]);
    for (size_t i = 0; i < exchanges_.size(); ++i) merge_operands(exchanges_[i]);
    return rewrite_.commit();
  }

 private:
  ValueId result(OpId id) const { return OpView(module_, id).result(); }

  // None if no map reads it.
  std::optional<Composition> composition(OpId user, size_t k, OpId maker) const {
    const OpView op(module_, user), made_by(module_, maker);
    const ExchangeMap before = exchange_map(op);
    if (k >= before.from.size()) return std::nullopt;
    auto read = merged_read(op, before, fill_of(op), k, made_by);
    if (!read) return std::nullopt;
    Composition found{
        .user = user, .k = k, .by = std::move(read->operands), .fill = read->fill, .before = before, .map = before};
    replace_one(found.map.from, k, read->from);
    return found;
  }

  void apply(const Composition& composition) {
    const OpView op(module_, composition.user);
    std::vector<ValueId> operands;
    for (size_t i = 0; i < composition.before.from.size(); ++i) operands.push_back(op.operand(i));
    replace_one(operands, composition.k, composition.by);
    const ValueId made = rewrite_.create(op.id(), operands, composition.fill, composition.map);
    // The steps that follow see the new op in place of the old one.
    *std::ranges::find(exchanges_, op.id()) = module_.value(made).op;
    rewrite_.replace(op.id(), made);
  }

  // All exchanges of this one's result read where it reads, if that costs no more.
  void merge_into_users(OpId id) {
    std::vector<Composition> found;
    if (is_one_of_several_operands(result(id))) return;
    std::vector<ExchangeMap> before{exchange_map(OpView(module_, id))}, after;
    for (const Use use : module_.uses(result(id))) {
      // A user in an inner loop would exchange in every trip.
      const bool is_near = is_collective(module_, use.op, CollectiveKind::kExchange) &&
                           module_.op(use.op).parent == module_.op(id).parent;
      if (!is_near || std::ranges::find(found, use.op, &Composition::user) != found.end()) return;
      auto next = composition(use.op, use.index, id);
      if (!next) return;
      before.push_back(next->before);
      after.push_back(next->map);
      found.push_back(std::move(*next));
    }
    if (found.empty()) return;
    const auto costs_no_more = [&] {
      double elements = most_elements(after);
      // join_ranges runs afterwards, and may make one exchange of all these.
      if (const auto hull = hull_of(after)) elements = std::min(elements, most_elements({&hull->map, 1}));
      return elements <= most_elements(before);
    };
    if (!choices_.is_chosen(OpView(module_, id), "merged", costs_no_more)) return;
    for (const Composition& next : found) apply(next);
  }

  // Whether the only user is an exchange of several operands. It merges them together, each at the price of one.
  bool is_one_of_several_operands(ValueId value) {
    const auto use = only_use(module_, value);
    return use && is_collective(module_, use->op, CollectiveKind::kExchange) &&
           exchange_map(OpView(module_, use->op)).from.size() > 1;
  }

  void merge_operands(OpId& id) {
    OperandMerger merger(module_, choices_, id);
    if (!merger.run()) return;
    const ValueId made = rewrite_.create(id, merger.operands(), merger.fill(), merger.map());
    const OpId old = std::exchange(id, module_.value(made).op);
    rewrite_.replace(old, made);
  }

  Module& module_;
  ExchangeChoices& choices_;
  ExchangeRewrite rewrite_;
  std::vector<OpId> exchanges_;
};

}  // namespace

int64_t merge_exchanges(Module& module, ExchangeChoices& choices) { return ExchangeMerger(module, choices).run(); }

}  // namespace shardwise
