// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/exchanges/merge_exchanges.h"

#include <algorithm>
#include <optional>

#include "shardwise/cost/exchange_cost.h"
#include "shardwise/ops/collectives/exchange.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/partition/exchanges/exchange_in_progress.h"
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

// The fill of an exchange that reads where its maker reads; none if the two have different fills.
std::optional<ValueId> common_fill(const Module& module, const OpView& op, const ExchangeMap& map, ValueId fill,
                                   const OpView& maker, const ExchangeMap& inner) {
  if (needs_no_fill(inner) || same_fill(module, op.result_type().dtype, fill, fill_of(maker))) return fill;
  // One exchange has one fill. It can be the inner one's if the outer one fills nothing itself.
  return needs_no_fill(map) ? std::optional(fill_of(maker)) : std::nullopt;
}

// The operands of one exchange, each read where the exchanges that make it read. What else reads an operand keeps the
// exchange that makes it.
class OperandMerger {
 public:
  OperandMerger(Module& module, ChoicesInProgress& choices, OpId id)
      : module_(module), choices_(choices), op_(module, id), fill_(fill_of(op_)) {
    ExchangeMap map = exchange_map(op_);
    AxisList axes;
    for (size_t k = 0; k < map.from.size(); ++k) {
      operands_.push_back(op_.operand(k));
      for (OpId maker = maker_of(k); maker; maker = module_.value(module_.operands(maker)[0]).op) {
        if (!is_collective(module_, maker, CollectiveKind::kExchange)) break;
        const AxisList used = exchange_map(OpView(module_, maker)).axes();
        axes.insert(axes.end(), used.begin(), used.end());
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
    if (collective_mesh(op_) != collective_mesh(maker)) return false;
    const ExchangeMap inner = exchange_map(maker);
    auto from = composed_source(map(), k, inner);
    if (!from) return false;
    const auto fill = common_fill(module_, op_, map(), fill_, maker, inner);
    if (!fill) return false;
    // If the maker has no other user, its bytes are saved as well, unless what it is made for stays.
    const bool goes = goes_[k] && has_one_use(maker.result()) && module_.op(id).parent == module_.op(op_.id()).parent;
    const auto costs_no_more = [&] { return exchange_->costs_no_more(k, *from, goes ? &inner : nullptr); };
    if (!is_chosen(choices_, "merged", costs_no_more)) return false;
    exchange_->replace(k, std::move(*from));
    operands_[k] = maker.operand(0);
    fill_ = *fill;
    goes_[k] = goes;
    return true;
  }

  bool has_one_use(ValueId value) {
    size_t count = 0;
    for ([[maybe_unused]] const Use use : module_.uses(value)) {
      if (++count > 1) return false;
    }
    return count == 1;
  }

  Module& module_;
  ChoicesInProgress& choices_;
  OpView op_;
  std::vector<ValueId> operands_;
  std::vector<bool> goes_;  // by operand: whether all exchanges that were merged into it are unused now
  ValueId fill_;
  std::optional<ExchangeInProgress> exchange_;
};

class ExchangeMerger {
 public:
  ExchangeMerger(Module& module, ChoicesInProgress& choices) : module_(module), choices_(choices), rewrite_(module) {
    walk(module, [&](OpId id) {
      if (is_collective(module, id, CollectiveKind::kExchange)) exchanges_.push_back(id);
    });
  }

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
    if (collective_mesh(op) != collective_mesh(made_by)) return std::nullopt;
    Composition found{
        .user = user, .k = k, .by = made_by.operand(0), .fill = fill_of(op), .before = exchange_map(op), .map = {}};
    if (k >= found.before.from.size()) return std::nullopt;
    const ExchangeMap inner = exchange_map(made_by);
    auto map = composed(found.before, k, inner);
    if (!map) return std::nullopt;
    const auto fill = common_fill(module_, op, found.before, found.fill, made_by, inner);
    if (!fill) return std::nullopt;
    found.fill = *fill;
    found.map = std::move(*map);
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
    if (!is_chosen(choices_, "merged", costs_no_more)) return;
    for (const Composition& next : found) apply(next);
  }

  // Whether the only user is an exchange of several operands. It merges them together, each at the price of one.
  bool is_one_of_several_operands(ValueId value) {
    size_t count = 0, moved = 0;
    for (const Use use : module_.uses(value)) {
      if (++count > 1 || !is_collective(module_, use.op, CollectiveKind::kExchange)) return false;
      const OpView user(module_, use.op);
      moved = user.operand_count() - (has_fill(user) ? 1 : 0);
    }
    return moved > 1;
  }

  void merge_operands(OpId& id) {
    OperandMerger merger(module_, choices_, id);
    if (!merger.run()) return;
    const ValueId made = rewrite_.create(id, merger.operands(), merger.fill(), merger.map());
    const OpId old = std::exchange(id, module_.value(made).op);
    rewrite_.replace(old, made);
  }

  Module& module_;
  ChoicesInProgress& choices_;
  ExchangeRewrite rewrite_;
  std::vector<OpId> exchanges_;
};

}  // namespace

int64_t merge_exchanges(Module& module, ChoicesInProgress& choices) { return ExchangeMerger(module, choices).run(); }

}  // namespace shardwise
