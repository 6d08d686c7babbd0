// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/exchanges/join_ranges.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "shardwise/cost/exchange_cost.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/collectives/exchange.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/partition/exchanges/exchange_maps.h"
#include "shardwise/partition/exchanges/exchange_rewrite.h"

namespace shardwise {
namespace {

// Expresses an all_gather as an exchange whose tiles are the entire value, with these sizes.
ExchangeMap gather_map(const OpView& gather, std::span<const ExchangeSource> sizes) {
  ExchangeMap map{.to = {}, .from = {{}}};
  const std::vector<AxisList> axes = collective_dim_axes(gather, "gather");
  for (size_t d = 0; d < axes.size(); ++d) {
    const int64_t rows = gather.result_type().shape[d], block = gather.operand_type(0).shape[d];
    map.to.push_back({.axes = {}, .rows = rows, .step = rows, .size = rows});
    map.from[0].push_back({.axes = axes[d], .block = block, .size = sizes[d].size});
  }
  return map;
}

int64_t tile_elements(const ExchangeMap& map) {
  int64_t count = 1;
  for (const ExchangeTarget& to : map.to) count *= to.rows;
  return count;
}

// Those that may be parts of one tile.
struct Ranges {
  std::vector<OpId> ops;
  std::vector<ExchangeMap> maps;
};

class RangeJoiner {
 public:
  RangeJoiner(Module& module, ExchangeChoices& choices) : module_(module), choices_(choices), rewrite_(module) {}

  int64_t run() {
    walk(module_, [&](OpId id) {
      if (is_collective(module_, id, CollectiveKind::kExchange)) exchanges_.push_back(id);
      if (!is_collective(module_, id, CollectiveKind::kAllGather)) return;
      gathers_[module_.operands(id)[0]].push_back({.op = id, .exchanges_before = exchanges_.size()});
    });
    if (exchanges_.empty()) return 0;
    for (size_t i = 0; i < exchanges_.size(); ++i) {
      if (slice_gathered(exchanges_[i], i)) exchanges_[i] = {};
    }
    std::erase(exchanges_, OpId{});
    for (const OpId id : exchanges_) add(id);
    for (const auto& [key, all] : by_value_) {
      for (const Ranges& ranges : all) join(ranges);
    }
    return rewrite_.commit();
  }

 private:
  struct Gather {
    OpId op;
    size_t exchanges_before = 0;
  };

  // Whether an all_gather of the same value brings all that the exchange does, which comes after `index` others.
  bool slice_gathered(OpId id, size_t index) {
    const OpView op(module_, id);
    const auto gathers = gathers_.find(op.operand(0));
    if (gathers == gathers_.end()) return false;
    const ExchangeMap map = exchange_map(op);
    if (!needs_no_fill(map)) return false;  // a gathered value has none
    for (Gather& gather : gathers->second) {
      const ExchangeMap maps[] = {gather_map(OpView(module_, gather.op), map.from[0]), map};
      const auto hull = hull_of(maps);
      // A hull that equals the gather's map: the gathered tile has all rows that the exchange needs.
      if (module_.op(gather.op).parent != module_.op(id).parent || !hull || hull->map != maps[0]) continue;
      // An exchange that receives nothing is no better as a slice.
      if (!choices_.is_chosen(op, "sliced", [&] { return exchange_cost(map).elements > 0; })) return false;
      if (gather.exchanges_before > index) {
        // The gather comes later in the region. It reads only the operand of the exchange, so it can come first.
        rewrite_.move_before(gather.op, id);
        gather.exchanges_before = index;
      }
      slice(id, OpView(module_, gather.op).result(), hull->parts[1]);
      return true;
    }
    return false;
  }

  void slice(OpId id, ValueId whole, const Hull::Part& part) {
    const TypeId type = module_.value(OpView(module_, id).result()).type;
    rewrite_.replace_by_local(id, [&](Builder& builder) {
      const ValueId found = build_slice(builder, whole, part.starts, part.limits, part.strides);
      if (found != whole) return found;
      // The same elements are another part of a global value.
      return builder.create("stablehlo.reshape", {whole}, {}, {type});
    });
  }

  void add(OpId id) {
    const OpView op(module_, id);
    const ExchangeMap map = exchange_map(op);
    if (map.from.size() != 1) return;
    std::vector<Ranges>& known = by_value_[{op.operand(0), module_.op(id).parent}];
    const auto found = std::ranges::find_if(known, [&](const Ranges& ranges) { return may_join(ranges, id, map); });
    Ranges& ranges = found == known.end() ? known.emplace_back() : *found;
    ranges.ops.push_back(id);
    ranges.maps.push_back(map);
  }

  bool may_join(const Ranges& ranges, OpId id, const ExchangeMap& map) const {
    const OpView first(module_, ranges.ops[0]), op(module_, id);
    // Only with the first of the group, which keeps this linear; join() tests all of them together.
    const ExchangeMap pair[] = {ranges.maps[0], map};
    return collective_mesh(first) == collective_mesh(op) && hull_of(pair) &&
           same_fill(module_, op.result_type().dtype, fill_of(first), fill_of(op));
  }

  void join(const Ranges& ranges) {
    std::vector<ExchangeMap> distinct;
    int64_t elements = 0;
    for (const ExchangeMap& map : ranges.maps) {
      if (std::ranges::find(distinct, map) != distinct.end()) continue;
      distinct.push_back(map);
      elements += tile_elements(map);
    }
    if (distinct.size() < 2) return;
    const auto hull = hull_of(ranges.maps);
    // Two far ranges of a long dim would make a tile of everything between them.
    const auto sends_less = [&] {
      return tile_elements(hull->map) <= elements && most_elements({&hull->map, 1}) < most_elements(distinct);
    };
    if (!hull || !choices_.is_chosen(module_, module_.operands(ranges.ops[0])[0], "joined", sends_less)) return;
    const OpView first(module_, ranges.ops[0]);
    const ValueId operand = first.operand(0);
    const ValueId tile = rewrite_.create(first.id(), {&operand, 1}, fill_of(first), hull->map);
    for (size_t k = 0; k < ranges.ops.size(); ++k) slice(ranges.ops[k], tile, hull->parts[k]);
  }

  Module& module_;
  ExchangeChoices& choices_;
  ExchangeRewrite rewrite_;
  std::vector<OpId> exchanges_;
  std::unordered_map<ValueId, std::vector<Gather>> gathers_;              // by operand
  std::map<std::pair<ValueId, RegionId>, std::vector<Ranges>> by_value_;  // the operand, and where they are
};

}  // namespace

int64_t join_ranges(Module& module, ExchangeChoices& choices) { return RangeJoiner(module, choices).run(); }

}  // namespace shardwise
