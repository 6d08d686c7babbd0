// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/exchanges/merge_exchanges.h"

#include <algorithm>
#include <optional>

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
  size_t k = 0;  // the operand
  ValueId by;    // instead of it
  ValueId fill;
  ExchangeMap before, map;
};

struct MergedRead {
  std::vector<ExchangeSource> from;
  ValueId fill;
};

// How an exchange with this map and fill reads its operand `k` where the exchange that makes it reads; none if no map
// does, or if the two have different fills.
std::optional<MergedRead> merged_read(const OpView& op, const ExchangeMap& map, ValueId fill, size_t k,
                                      const OpView& maker) {
  if (collective_mesh(op) != collective_mesh(maker)) return std::nullopt;
  const ExchangeMap inner = exchange_map(maker);
  auto from = composed_source(map, k, inner);
  if (!from) return std::nullopt;
  if (!needs_no_fill(inner) && !same_fill(op.module(), op.result_type().dtype, fill, fill_of(maker))) {
    // One exchange has one fill. It can be the inner one's if the outer one fills nothing itself.
    if (!needs_no_fill(map)) return std::nullopt;
    fill = fill_of(maker);
  }
  return MergedRead{std::move(*from), fill};
}

// An exchange whose operands are replaced one by one, and the elements that devices receive in it. A replacement is
// priced by its changes only, so n of them cost n times the positions, not n² times.
class ExchangeInProgress {
 public:
  // `axes`: all axes that a replacement may have.
  ExchangeInProgress(ExchangeMap map, AxisSpan axes) : map_(std::move(map)), axes_(axes.begin(), axes.end()) {
    append(axes_, map_.axes());
    const int64_t positions = product(Coordinates(axes_).grid());
    if (positions > kMostPositions) return;
    received_.assign(static_cast<size_t>(positions), 0);
    for (const std::vector<ExchangeSource>& from : map_.from) {
      const std::vector<double> own = counts(from);
      for (size_t i = 0; i < own.size(); ++i) received_[i] += own[i];
    }
  }

  const ExchangeMap& map() const { return map_; }

  // Compares the most that any device receives, if operand `k` is read as `from`, with now. With too many positions and
  // operands to count, compares only operand `k`. `saved` is an exchange that becomes unused; it may be null.
  bool costs_no_more(size_t k, const std::vector<ExchangeSource>& from, const ExchangeMap* saved) const {
    if (received_.empty()) {
      ExchangeMap old = alone(map_.from[k]), made = alone(from);
      if (map_.from.size() <= kMostOperands) {
        old = made = map_;
        made.from[k] = from;
      }
      std::vector<ExchangeMap> before{std::move(old)};
      if (saved != nullptr) before.push_back(*saved);
      return most_elements({&made, 1}) <= most_elements(before);
    }
    const std::vector<double> old = counts(map_.from[k]), made = counts(from);
    Coordinates device(axes_);
    double before = 0, after = 0;
    for (size_t i = 0; i < received_.size(); ++i) {
      device.set_grid(static_cast<int64_t>(i));
      before = std::max(before, received_[i] + (saved == nullptr ? 0 : elements_at(*saved, device)));
      after = std::max(after, received_[i] - old[i] + made[i]);
    }
    return after <= before;
  }

  void replace(size_t k, std::vector<ExchangeSource> from) {
    if (!received_.empty()) {
      const std::vector<double> old = counts(map_.from[k]), made = counts(from);
      for (size_t i = 0; i < received_.size(); ++i) received_[i] += made[i] - old[i];
    }
    map_.from[k] = std::move(from);
  }

 private:
  static constexpr int64_t kMostPositions = 256;
  static constexpr size_t kMostOperands = 4;  // that are counted all for each replacement, with more positions

  ExchangeMap alone(std::vector<ExchangeSource> from) const { return {.to = map_.to, .from = {std::move(from)}}; }

  std::vector<double> counts(const std::vector<ExchangeSource>& from) const {
    const ExchangeMap map = alone(from);
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

// The operands of one exchange, each read where the exchanges that make it read. What else reads an operand keeps the
// exchange that makes it.
class OperandMerger {
 public:
  OperandMerger(Module& module, ExchangeChoices& choices, OpId id)
      : module_(module), choices_(choices), op_(module, id), fill_(fill_of(op_)) {
    ExchangeMap map = exchange_map(op_);
    AxisList axes;
    for (size_t k = 0; k < map.from.size(); ++k) {
      operands_.push_back(op_.operand(k));
      for (OpId maker = maker_of(k); maker; maker = module_.value(module_.operands(maker)[0]).op) {
        if (!is_collective(module_, maker, CollectiveKind::kExchange)) break;
        append(axes, exchange_map(OpView(module_, maker)).axes());
      }
    }
    goes_.assign(operands_.size(), true);
    exchange_.emplace(std::move(map), axes);
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
  OpId maker_of(size_t k) const { return module_.value(operands_[k]).op; }

  bool merge(size_t k) {
    const OpId id = maker_of(k);
    if (!is_collective(module_, id, CollectiveKind::kExchange)) return false;
    const OpView maker(module_, id);
    auto read = merged_read(op_, map(), fill_, k, maker);
    if (!read) return false;
    // If the maker has no other user, its bytes are saved as well, unless what it is made for stays.
    const bool goes =
        goes_[k] && only_use(module_, maker.result()) && module_.op(id).parent == module_.op(op_.id()).parent;
    const ExchangeMap inner = exchange_map(maker);
    const auto costs_no_more = [&] { return exchange_->costs_no_more(k, read->from, goes ? &inner : nullptr); };
    if (!choices_.is_chosen(op_, "merged", costs_no_more)) return false;
    exchange_->replace(k, std::move(read->from));
    operands_[k] = maker.operand(0);
    fill_ = read->fill;
    goes_[k] = goes;
    return true;
  }

  Module& module_;
  ExchangeChoices& choices_;
  OpView op_;
  std::vector<ValueId> operands_;
  std::vector<bool> goes_;  // by operand: whether all exchanges that were merged into it are unused now
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
        .user = user, .k = k, .by = made_by.operand(0), .fill = read->fill, .before = before, .map = before};
    found.map.from[k] = std::move(read->from);
    return found;
  }

  void apply(const Composition& composition) {
    const OpView op(module_, composition.user);
    std::vector<ValueId> operands;
    for (size_t i = 0; i < composition.before.from.size(); ++i) operands.push_back(op.operand(i));
    operands[composition.k] = composition.by;
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
