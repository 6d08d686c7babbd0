// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/combine/combined_groups.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "shardwise/analysis/collective_price.h"
#include "shardwise/base/quantity.h"
#include "shardwise/ir/rewrite/again.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/use_lists.h"

namespace shardwise {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// Transfers that cannot join a group, behind which others are still tried.
constexpr int kMostRefused = 8;
// Transfers behind a group that are looked at: whether it delays what waits for them.
constexpr int kMostDelayed = 32;

// Collectives with one key differ only in their operands and causes. 0: combined with none.
class MessageKeys {
 public:
  explicit MessageKeys(const Module& module) : module_(module) {}

  size_t of(OpId id) {
    if (!is_combinable(module_, id)) return 0;
    const OpView op(module_, id);
    Attrs attrs = op.attrs();
    attrs.erase(kCauseAttr);
    const size_t kind = static_cast<size_t>(op.def().traits.collective),
                 dtype = static_cast<size_t>(op.operand_type(0).dtype);
    const size_t key = module_.context().intern(attrs).index;
    const auto [found, is_new] = numbers_.try_emplace({key, kind, dtype}, numbers_.size() + 1);
    return found->second;
  }

 private:
  struct Key {
    size_t attrs, kind, dtype;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const { return hash_combine(hash_combine(key.attrs, key.kind), key.dtype); }
  };
  const Module& module_;
  std::unordered_map<Key, size_t, Hash> numbers_;
};

// Where an op may stand in its region: behind the makers of its operands, in front of the users of its results. Those that
// became a part of a group stand where that does.
class Places {
 public:
  Places(const Module& module, const UseLists& uses, RegionId region) : module_(module), region_(region), uses_(uses) {
    const std::vector<OpId>& ops = module.region(region).ops;
    end_ = std::ssize(ops);
    for (int64_t i = 0; i < end_; ++i) places_.emplace(ops[static_cast<size_t>(i)], i);
  }

  int64_t earliest(OpId op) const {
    int64_t place = 0;
    for (const ValueId operand : module_.operands(op)) {
      const auto maker = places_.find(module_.value(operand).op);
      if (maker == places_.end()) continue;  // an argument, or made around the region
      const auto moved = moved_.find(maker->first);
      place = std::max(place, moved == moved_.end() ? maker->second + 1 : moved->second);
    }
    return place;
  }

  int64_t latest(OpId op) const {
    int64_t place = end_;
    for (uint32_t i = 0; i < module_.op(op).result_count; ++i) {
      for (const Use& use : UseRange(module_, uses_, module_.result(op, i))) {
        const OpId user = in_region(use);
        if (!user) continue;  // the region returns it
        const auto moved = moved_.find(user);
        place = std::min(place, moved == moved_.end() ? places_.at(user) : moved->second - 1);
      }
    }
    return place;
  }

  int64_t of(OpId op) const { return places_.at(op); }
  void move(OpId op, int64_t place) { moved_[op] = place; }

 private:
  // The op of the region that uses a value, or has the use inside.
  OpId in_region(const Use& use) const {
    RegionId region = use.op ? module_.op(use.op).parent : use.region;
    OpId op = use.op;
    while (region != region_) {
      op = module_.region(region).op;
      region = module_.op(op).parent;
    }
    return op;
  }

  const Module& module_;
  const RegionId region_;
  const UseLists& uses_;
  std::unordered_map<OpId, int64_t> places_, moved_;
  int64_t end_ = 0;
};

// A transfer of the schedule of single transfers.
struct Transfer {
  OpId op;
  size_t key = 0;
  int64_t start = 0;
  int64_t ready = 0;        // the end of the last task that it waits for
  int64_t needed = kNever;  // the start of the first task that waits for it
  int64_t operand_bytes = 0, result_bytes = 0;
  bool is_taken = false;
  TaskTime time = {};
  LocalCollective collective = {};
};

// Transfers that travel together.
struct Message {
  int64_t ready = 0, needed = kNever;
  int64_t operand_bytes = 0, result_bytes = 0;
  int64_t earliest = 0, latest = kNever;  // its place in the region
};

class GroupMaker {
 public:
  GroupMaker(const Module& module, const UseLists& uses, RegionId region, const RegionTimes& times,
             const Hardware& hardware, MemoryHeadroom& headroom, int64_t most_bytes)
      : module_(module),
        region_(region),
        times_(times),
        hardware_(hardware),
        headroom_(headroom),
        most_bytes_(most_bytes),
        places_(module, uses, region),
        free_(1 + hardware.tiers.size(), 0) {
    read_transfers();
  }

  std::vector<CombinedGroup> run() {
    std::vector<CombinedGroup> found;
    bool is_any_combined = false;
    int64_t place = 0;  // behind the messages so far
    for (size_t i = 0; i < transfers_.size(); ++i) {
      if (transfers_[i].is_taken) continue;
      members_ = {};
      const Message message = message_from(i);
      send(members_.size() == 1 ? transfers_[i].time : time_of(message), message.ready, free_);
      const OpId first = transfers_[i].op;
      if (members_.size() == 1 && (places_.of(first) >= place || times_before(module_, first) > 0)) {
        place = std::max(place, places_.of(first) + 1);
        continue;
      }
      // Links send in the order of the program.
      place = std::max(place, std::min(std::max(message.earliest, place), message.latest));
      is_any_combined |= members_.size() > 1;
      found.push_back(placed(std::min(place, message.latest)));
    }
    return is_any_combined ? found : std::vector<CombinedGroup>();
  }

 private:
  void read_transfers() {
    const std::vector<Task>& tasks = times_.graph.tasks;
    std::vector<int64_t> needed(tasks.size(), times_.schedule.length);
    for (size_t i = 0; i < tasks.size(); ++i) {
      for (const uint32_t made : tasks[i].after) needed[made] = std::min(needed[made], times_.schedule.start[i]);
    }
    MessageKeys keys(module_);
    for (uint32_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].kind != Task::Kind::kTransfer) continue;
      Transfer transfer{.op = tasks[i].op, .key = keys.of(tasks[i].op)};
      transfer.start = times_.schedule.start[i];
      for (const uint32_t made : tasks[i].after) transfer.ready = std::max(transfer.ready, end_of(made));
      transfer.needed = needed[i];
      transfer.time = times_.times[i];
      transfer.collective = read_collective(OpView(module_, tasks[i].op));
      transfer.operand_bytes = transfer.collective.operand_bytes;
      for (uint32_t r = 0; r < module_.op(tasks[i].op).result_count; ++r) {
        transfer.result_bytes += module_.type(module_.result(tasks[i].op, r)).byte_quantity();
      }
      transfers_.push_back(std::move(transfer));
    }
    std::ranges::stable_sort(transfers_, {}, &Transfer::start);
  }

  int64_t end_of(uint32_t task) const {
    const std::vector<int64_t>& stages = times_.schedule.stages[task];
    if (stages.empty()) return times_.schedule.start[task];
    return saturated_sum(stages.back(), times_.times[task].stages.back().ps);
  }

  Message message_from(size_t first) {
    collective_ = transfers_[first].collective;
    Message message = joined({}, transfers_[first]);
    take(first);
    if (transfers_[first].key == 0) return message;
    int64_t limit = kNever;  // the start of a transfer that the message passes
    int refused = 0;
    for (size_t next = first + 1; next < transfers_.size() && refused < kMostRefused; ++next) {
      const Transfer& other = transfers_[next];
      if (other.is_taken) continue;
      if (other.key == transfers_[first].key && may_join(message, next, limit)) {
        message = joined(message, other);
        take(next);
        continue;
      }
      limit = std::min(limit, other.start);
      ++refused;
    }
    return message;
  }

  CombinedGroup placed(int64_t place) {
    CombinedGroup made{.region = region_, .ops = {}, .before = static_cast<size_t>(place)};
    for (const size_t member : members_) {
      made.ops.push_back(transfers_[member].op);
      places_.move(transfers_[member].op, place);
    }
    return made;
  }

  void take(size_t index) {
    transfers_[index].is_taken = true;
    members_.push_back(index);
  }

  Message joined(const Message& message, const Transfer& transfer) const {
    return {.ready = std::max(message.ready, transfer.ready),
            .needed = std::min(message.needed, transfer.needed),
            .operand_bytes = saturated_sum(message.operand_bytes, transfer.operand_bytes),
            .result_bytes = saturated_sum(message.result_bytes, transfer.result_bytes),
            .earliest = std::max(message.earliest, places_.earliest(transfer.op)),
            .latest = std::min(message.latest, places_.latest(transfer.op))};
  }

  bool may_join(const Message& message, size_t index, int64_t limit) {
    const Transfer& transfer = transfers_[index];
    const Message made = joined(message, transfer);
    if (made.earliest > made.latest || reads_a_member(transfer)) return false;
    if (std::max(made.operand_bytes, made.result_bytes) > most_bytes_) return false;
    std::vector<int64_t> free = free_;
    const int64_t end = send(time_of(made), made.ready, free);
    return end <= std::min(made.needed, limit) && !delays_others(index, free) && fits(made, transfer);
  }

  bool reads_a_member(const Transfer& transfer) const {
    const OpId maker = module_.value(module_.operands(transfer.op)[0]).op;
    return std::ranges::any_of(members_, [&](size_t member) { return transfers_[member].op == maker; });
  }

  // Alone, each other member has its operand or its result in memory while one is sent.
  bool fits(const Message& made, const Transfer& transfer) {
    const int64_t both = saturated_sum(made.operand_bytes, made.result_bytes);
    const int64_t alone = saturated_sum(std::min(made.operand_bytes, made.result_bytes),
                                        std::max(transfer.operand_bytes, transfer.result_bytes));
    return both - alone <= headroom_.at(region_, static_cast<size_t>(made.earliest));
  }

  // Whether one of the next transfers, sent behind a message, would end after the first kernel that needs it starts.
  bool delays_others(size_t last, std::vector<int64_t> free) const {
    int looked_at = 0;
    for (size_t i = last + 1; i < transfers_.size() && looked_at < kMostDelayed; ++i) {
      const Transfer& next = transfers_[i];
      if (next.is_taken) continue;
      ++looked_at;
      if (std::ranges::all_of(free, [&](int64_t until) { return until <= next.ready; })) return false;
      if (send(next.time, next.ready, free) > next.needed) return true;
    }
    return false;
  }

  TaskTime time_of(const Message& message) const {
    LocalCollective whole = collective_;
    whole.operand_bytes = message.operand_bytes;
    return estimated_transfer(collective_time(whole, hardware_));
  }

  // Returns when it ends; `free`: by stream, until when it sends what was sent before.
  static int64_t send(const TaskTime& time, int64_t ready, std::vector<int64_t>& free) {
    int64_t at = ready;
    for (const StreamStage& stage : time.stages) {
      at = saturated_sum(std::max(at, free[stage.stream]), stage.ps);
      free[stage.stream] = at;
    }
    return at;
  }

  const Module& module_;
  const RegionId region_;
  const RegionTimes& times_;
  const Hardware& hardware_;
  MemoryHeadroom& headroom_;
  const int64_t most_bytes_;
  Places places_;
  std::vector<int64_t> free_;  // by stream: until when it sends what was taken so far
  std::vector<Transfer> transfers_;
  std::vector<size_t> members_;  // of the message at hand
  LocalCollective collective_;   // the first of them
};

}  // namespace

bool is_combinable(const Module& module, OpId id) {
  const OpView op(module, id);
  if (!may_combine(op.def().traits.collective) || op.operand_count() != 1) return false;
  // What is gathered again stays where it saves memory. Another mesh numbers its devices otherwise.
  return times_before(module, id) == 0 && collective_mesh(op)->same_devices(*module.meshes.front());
}

std::vector<RegionId> regions_to_combine(const Module& module) {
  std::vector<RegionId> regions;
  std::unordered_map<RegionId, std::unordered_set<size_t>> known;
  MessageKeys keys(module);
  walk(module, [&](OpId op) {
    const size_t key = keys.of(op);
    const RegionId region = module.op(op).parent;
    if (key == 0 || known[region].insert(key).second) return;
    if (std::ranges::find(regions, region) == regions.end()) regions.push_back(region);
  });
  return regions;
}

std::vector<CombinedGroup> combined_groups(const Module& module, const UseLists& uses, RegionId region,
                                           const RegionTimes& times, const Hardware& hardware, MemoryHeadroom& headroom,
                                           int64_t most_bytes) {
  return GroupMaker(module, uses, region, times, hardware, headroom, most_bytes).run();
}

}  // namespace shardwise
