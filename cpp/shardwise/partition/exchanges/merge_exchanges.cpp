// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/exchanges/merge_exchanges.h"

#include <algorithm>
#include <optional>

#include "shardwise/cost/exchange_cost.h"
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
    const DType dtype = op.result_type().dtype;
    if (!needs_no_fill(inner) && !same_fill(module_, dtype, found.fill, fill_of(made_by))) {
      // One exchange has one fill. It can be the inner one's if the outer one fills nothing itself.
      if (!needs_no_fill(found.before)) return std::nullopt;
      found.fill = fill_of(made_by);
    }
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

  void merge_operands(OpId& id) {
    const size_t moved = exchange_map(OpView(module_, id)).from.size();
    for (size_t k = 0; k < moved; ++k) {
      while (merge_operand(id, k)) {
      }
    }
  }

  // What else reads the operand keeps the exchange that makes it.
  bool merge_operand(OpId& id, size_t k) {
    const OpId maker = module_.value(module_.operands(id)[k]).op;
    if (!is_collective(module_, maker, CollectiveKind::kExchange)) return false;
    const auto found = composition(id, k, maker);
    if (!found) return false;
    std::vector<ExchangeMap> before{found->before};
    size_t uses = 0;
    for ([[maybe_unused]] const Use use : module_.uses(result(maker))) ++uses;
    // If the maker has no other user, its bytes are saved as well.
    const bool goes = uses == 1 && module_.op(maker).parent == module_.op(id).parent;
    if (goes) before.push_back(exchange_map(OpView(module_, maker)));
    const auto costs_no_more = [&] { return most_elements({&found->map, 1}) <= most_elements(before); };
    if (!is_chosen(choices_, "merged", costs_no_more)) return false;
    apply(*found);
    return true;
  }

  Module& module_;
  ChoicesInProgress& choices_;
  ExchangeRewrite rewrite_;
  std::vector<OpId> exchanges_;
};

}  // namespace

int64_t merge_exchanges(Module& module, ChoicesInProgress& choices) { return ExchangeMerger(module, choices).run(); }

}  // namespace shardwise
