// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/merge_exchanges.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "shardwise/cost/exchange_cost.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/collectives/exchange.h"
#include "shardwise/ops/collectives/local_collectives.h"

namespace shardwise {
namespace {

bool is_exchange(const Module& module, OpId id) {
  return id && module.op(id).def->traits.collective == CollectiveKind::kExchange;
}

// Whether each element below the size of a tiled result is one of the operand.
bool is_whole(const ExchangeTarget& to, const ExchangeSource& from) {
  if (from.holes != 1 || from.begin > 0 || from.end < to.size || to.step != to.rows) return false;
  if (to.size == 0) return true;
  const int64_t first = from.offset, last = from.scale * (to.size - 1) + from.offset;
  return std::min(first, last) >= 0 && std::max(first, last) < from.size;
}

// The result indices t with 0 <= (scale·t + offset) / holes < size.
void cut_to(ExchangeSource& source, int64_t size) {
  const auto floor_div = [](int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); };
  const int64_t low = -source.offset, high = (size - 1) * source.holes - source.offset;  // of scale·t
  const int64_t scale = std::abs(source.scale);
  const int64_t begin = source.scale > 0 ? -floor_div(-low, scale) : -floor_div(high, scale);
  const int64_t end = source.scale > 0 ? floor_div(high, scale) + 1 : floor_div(-low, scale) + 1;
  source.begin = std::max(source.begin, begin);
  source.end = std::max(source.begin, std::min(source.end, end));
}

// `outer` reads the result of an exchange in the tiles of `to` from `inner`.
std::optional<ExchangeSource> composed(const ExchangeSource& outer, const ExchangeTarget& to,
                                       const ExchangeSource& inner) {
  if (!is_whole(to, inner) || outer.axes != to.axes || outer.size != to.size) return std::nullopt;
  if (std::gcd(inner.scale, outer.holes) != 1) return std::nullopt;
  ExchangeSource source = outer;
  cut_to(source, to.size);
  source.axes = inner.axes;
  source.block = inner.block;
  source.size = inner.size;
  source.scale = inner.scale * outer.scale;
  source.offset = inner.scale * outer.offset + inner.offset * outer.holes;
  return source;
}

// The map of `outer` if its operand `k` is read where `inner` reads it.
std::optional<ExchangeMap> composed(const ExchangeMap& outer, size_t k, const ExchangeMap& inner) {
  if (inner.from.size() != 1) return std::nullopt;
  ExchangeMap map = outer;
  for (size_t d = 0; d < map.to.size(); ++d) {
    const auto source = composed(outer.from[k][d], inner.to[d], inner.from[0][d]);
    if (!source) return std::nullopt;
    map.from[k][d] = *source;
  }
  return map;
}

bool merge_operand(Module& module, OpId id, size_t k) {
  const ValueId operand = module.operands(id)[k];
  const OpId maker = module.value(operand).op;
  if (!is_exchange(module, maker) || has_fill(OpView(module, maker))) return false;
  const OpView op(module, id), made_by(module, maker);
  if (collective_mesh(op) != collective_mesh(made_by)) return false;
  const ExchangeMap outer = exchange_map(op), inner = exchange_map(made_by);
  if (outer.is_across_meshes() || inner.is_across_meshes()) return false;
  const auto map = composed(outer, k, inner);
  if (!map) return false;
  size_t uses = 0;
  for ([[maybe_unused]] const Use use : module.uses(operand)) ++uses;
  const double saved = uses == 1 ? exchange_cost(inner).elements : 0;
  if (exchange_cost(*map).elements > exchange_cost(outer).elements + saved) return false;
  Attrs attrs = op.attrs();
  const Attrs merged = exchange_attrs(*collective_mesh(op), *map);
  for (const auto& [name, value] : merged.entries()) attrs.set(name, value);
  module.op(id).attrs = module.context().intern(attrs);
  module.set_operand(id, static_cast<uint32_t>(k), made_by.operand(0));
  return true;
}

}  // namespace

int64_t merge_exchanges(Module& module) {
  int64_t merged = 0;
  walk(module, [&](OpId id) {
    if (!is_exchange(module, id)) return;
    const size_t moved = exchange_map(OpView(module, id)).from.size();
    for (size_t k = 0; k < moved; ++k) {
      while (merge_operand(module, id, k)) ++merged;
    }
  });
  return merged;
}

}  // namespace shardwise
