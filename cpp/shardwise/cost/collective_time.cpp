// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/collective_time.h"

#include <algorithm>
#include <bit>

namespace shardwise {
namespace {

// A rational number of bytes or of links, exact as long as both parts fit 127 bits.
struct Ratio {
  Wide128 over = 0, under = 1;
};

// a * b / c without overflow for a, b, c of at most kSaturated.
int64_t scaled(int64_t a, int64_t b, int64_t c) {
  const Wide128 divisor = widened(std::max<int64_t>(c, 1));
  return saturated((widened(a) * widened(b) + divisor - 1) / divisor);
}

int64_t size_of(const TierCut& cut) {
  int64_t size = 1;
  for (const TierStage& stage : cut) size = saturated_product(size, stage.size);
  return size;
}

// Links into a device along a span: from both sides of a ring, and of two devices at opposite ends of one.
int64_t links(const TorusSpan& span) { return span.closes && (span.size > 2 || span.spacing > 1) ? 2 : 1; }

// The rate at which one device receives over the links of a span, in bytes per second.
int64_t span_rate(const Tier& tier, const TorusSpan& span) {
  return saturated_product(tier.bandwidth, links(span)) / span.spacing;
}

// The rate at which a device receives where the links of a span carry `over / under` bytes for each byte that it
// receives.
int64_t rate_of_load(const TierStage& stage, const Tier& tier, const TorusSpan& span, Ratio load) {
  load.over *= widened(saturated_product(span.spacing, stage.sharers));
  return std::max<int64_t>(1, saturated(widened(tier.bandwidth) * load.under / std::max<Wide128>(1, load.over)));
}

// ceil(n^2 / 4) pairs cross the middle of a line in each direction; a ring has two middles.
int64_t crossings(int64_t size) { return saturated(widened(size) * widened(size) / 4); }

// Each device sends operand / size to each other one of its stage, by the shortest way.
int64_t all_to_all_rate(const TierStage& stage, const Tier& tier) {
  int64_t rate = stage.spans.empty() ? tier.bandwidth : kSaturated;
  for (const TorusSpan& span : stage.spans) {
    const Ratio load{widened(crossings(span.size)), widened(span.size) * widened(links(span))};
    rate = std::min(rate, rate_of_load(stage, tier, span, load));
  }
  return rate;
}

// Each device sends to one that is as far away as it can be.
int64_t permute_rate(const TierStage& stage, const Tier& tier) {
  int64_t rate = stage.spans.empty() ? tier.bandwidth : kSaturated;
  for (const TorusSpan& span : stage.spans) {
    const Ratio load{widened(std::max<int64_t>(1, span.size / 2)), widened(links(span))};
    rate = std::min(rate, rate_of_load(stage, tier, span, load));
  }
  return rate;
}

int64_t shift_rate(const TierStage& stage, const Tier& tier) {
  int64_t rate = stage.spans.empty() ? tier.bandwidth : kSaturated;
  for (const TorusSpan& span : stage.spans) rate = std::min(rate, rate_of_load(stage, tier, span, {1, 1}));
  return rate;
}

// Messages between neighbors that a message of the most distant pair, or of a neighbor, waits for.
int64_t hops(TransferKind kind, const TierStage& stage) {
  const bool is_direct = kind != TransferKind::kAllGather && kind != TransferKind::kReduceScatter;
  if (stage.spans.empty()) return is_direct ? 1 : std::bit_width(static_cast<uint64_t>(stage.size - 1));
  int64_t sum = 0, most = 0;
  for (const TorusSpan& span : stage.spans) {
    const int64_t across = span.closes ? span.size / 2 : span.size - 1;
    sum = saturated_sum(sum, saturated_product(across, span.spacing));
    most = std::max(most, span.spacing);
  }
  return kind == TransferKind::kShift || kind == TransferKind::kChain ? most : sum;
}

class TimeOfTransfer {
 public:
  TimeOfTransfer(const TierCut& cut, const Hardware& hardware) : cut_(cut), hardware_(hardware), size_(size_of(cut)) {}

  CollectiveTime gather(TransferKind kind, int64_t whole) {
    int64_t inside = 1;
    for (const TierStage& stage : cut_) {
      inside = saturated_product(inside, stage.size);
      // whole (n - 1) / P
      time_.tiers.push_back({stage.tier, scaled(whole, stage.size - 1, inside), gather_time(stage, whole, inside)});
      add_latency(stage, hops(kind, stage));
    }
    return std::move(time_);
  }

  // Each device gets bytes / parts from each other one.
  CollectiveTime all_to_all(int64_t bytes, int64_t parts) {
    int64_t inside = 1;
    for (const TierStage& stage : cut_) {
      const int64_t before = inside;
      inside = saturated_product(inside, stage.size);
      // The load of a torus is by what all inside it exchange, the part that stays on a device included.
      const int64_t load = stage.spans.empty() ? 0 : scaled(bytes, inside, parts);
      add(stage, scaled(bytes, inside - before, parts), all_to_all_rate(stage, tier_of(stage)), load);
      add_latency(stage, hops(TransferKind::kAllToAll, stage));
    }
    return std::move(time_);
  }

  CollectiveTime permute(TransferKind kind, int64_t bytes) {
    const TierStage& stage = cut_.back();
    const Tier& tier = tier_of(stage);
    add(stage, bytes, kind == TransferKind::kShift ? shift_rate(stage, tier) : permute_rate(stage, tier));
    add_latency(stage, hops(kind, stage));
    return std::move(time_);
  }

  CollectiveTime chain(int64_t bytes) {
    int64_t inside = 1;
    for (const TierStage& stage : cut_) {
      inside = saturated_product(inside, stage.size);
      // Of the p - 1 messages, those between groups of the tiers inside.
      const int64_t messages = saturated_product(stage.size - 1, size_ / inside);
      add(stage, bytes, shift_rate(stage, tier_of(stage)));
      time_.tiers.back().ps = saturated_product(time_.tiers.back().ps, messages);
      add_latency(stage, saturated_product(messages, hops(TransferKind::kChain, stage)));
    }
    return std::move(time_);
  }

 private:
  const Tier& tier_of(const TierStage& stage) const { return hardware_.tiers[stage.tier]; }

  // Of a torus, the links of each set of dims must carry what the members that differ in these dims lack of each other:
  // m members receive whole (m - 1) / P. A slow dim alone may take longer than all dims together.
  int64_t gather_time(const TierStage& stage, int64_t whole, int64_t inside) const {
    const Tier& tier = tier_of(stage);
    if (stage.spans.empty()) return tier.efficiency.time(scaled(whole, stage.size - 1, inside), tier.bandwidth);
    int64_t most = 0;
    for (size_t dims = 1; dims < size_t{1} << stage.spans.size(); ++dims) {
      int64_t members = 1, rate = 0;
      for (size_t d = 0; d < stage.spans.size(); ++d) {
        if ((dims >> d & 1) == 0) continue;
        members = saturated_product(members, stage.spans[d].size);
        rate = saturated_sum(rate, span_rate(tier, stage.spans[d]));
      }
      const int64_t bytes = scaled(whole, members - 1, inside);
      most = std::max(most, tier.efficiency.time(bytes, std::max<int64_t>(1, rate / stage.sharers)));
    }
    return most;
  }

  // `load` is what the time follows from, if not the bytes.
  void add(const TierStage& stage, int64_t bytes, int64_t rate, int64_t load = 0) {
    time_.tiers.push_back({stage.tier, bytes, tier_of(stage).efficiency.time(load > 0 ? load : bytes, rate)});
  }
  void add_latency(const TierStage& stage, int64_t messages) {
    time_.latency_ps = saturated_sum(time_.latency_ps, saturated_product(messages, tier_of(stage).latency_ps));
  }

  const TierCut& cut_;
  const Hardware& hardware_;
  const int64_t size_;
  CollectiveTime time_;
};

CollectiveTime twice(CollectiveTime time) {
  for (TierTime& tier : time.tiers) {
    tier.bytes = saturated_product(tier.bytes, 2);
    tier.ps = saturated_product(tier.ps, 2);
  }
  time.latency_ps = saturated_product(time.latency_ps, 2);
  return time;
}

}  // namespace

int64_t CollectiveTime::total() const {
  int64_t sum = latency_ps;
  for (const TierTime& tier : tiers) sum = saturated_sum(sum, tier.ps);
  return sum;
}

int64_t CollectiveTime::overlap() const {
  int64_t most = 0;
  for (const TierTime& tier : tiers) most = std::max(most, tier.ps);
  return saturated_sum(latency_ps, most);
}

CollectiveTime collective_time(TransferKind kind, int64_t bytes, const TierCut& cut, const Hardware& hardware) {
  if (cut.empty()) return {};
  TimeOfTransfer time(cut, hardware);
  const int64_t size = size_of(cut);
  switch (kind) {
    case TransferKind::kAllGather: return time.gather(kind, saturated_product(bytes, size));
    case TransferKind::kReduceScatter: return time.gather(kind, bytes);
    case TransferKind::kAllReduce: return twice(time.gather(TransferKind::kReduceScatter, bytes));
    case TransferKind::kAllToAll: return time.all_to_all(bytes, size);
    case TransferKind::kExchange: return time.all_to_all(bytes, size - 1);
    case TransferKind::kShift:
    case TransferKind::kPermute: return time.permute(kind, bytes);
    case TransferKind::kChain: return time.chain(bytes);
  }
  return {};
}

Price collective_price(TransferKind kind, const DeviceTiers& tiers, const AxisList& axes, int64_t bytes,
                       int64_t item_size, const Hardware& hardware) {
  const int64_t size = product(axes);
  if (size <= 1) return {};
  return {.ps = collective_time(kind, bytes, tiers.cut(axes), hardware).total(),
          .bytes = whole_quantity(received_bytes(kind, static_cast<double>(bytes), size, item_size)),
          .rounds = transfer_rounds(kind, size)};
}

Price collective_price(TransferKind kind, const Mesh& mesh, const AxisList& axes, int64_t bytes, int64_t item_size,
                       const Hardware& hardware) {
  return collective_price(kind, *device_tiers(mesh, hardware), axes, bytes, item_size, hardware);
}

}  // namespace shardwise
