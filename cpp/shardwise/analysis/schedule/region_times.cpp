// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/schedule/region_times.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "shardwise/analysis/collective_price.h"
#include "shardwise/analysis/fuse.h"
#include "shardwise/analysis/group_time.h"
#include "shardwise/base/quantity.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

bool is_transfer_task(const RegionTimes& region, uint32_t task) {
  return region.graph.tasks[task].kind == Task::Kind::kTransfer;
}

// The condition is the region of a loop that is not its body. The region of a function has no op.
bool is_condition_region(const Module& module, RegionId id) {
  const OpId owner = module.region(id).op;
  return owner && module.op(owner).def->regions == Regions::kLoop;
}

}  // namespace

TaskTime estimated_transfer(const CollectiveTime& transfer) {
  TaskTime time;
  for (const TierTime& tier : transfer.tiers) time.stages.push_back({static_cast<uint32_t>(tier.tier + 1), tier.ps});
  // Transfers of one stream follow each other: each has its own latency.
  if (!time.stages.empty()) time.stages[0].ps = saturated_sum(time.stages[0].ps, transfer.latency_ps);
  return time;
}

RegionTimer::RegionTimer(const Module& module, const Hardware& hardware, TimeMode mode)
    : module_(module),
      hardware_(hardware),
      mode_(mode),
      fusion_(fuse(module, {.fused_attention = hardware.fused_attention && mode != TimeMode::kUpper})) {}

const RegionTimes& RegionTimer::region(RegionId id) {
  const auto found = regions_.find(id);
  if (found != regions_.end()) return found->second;
  return regions_.emplace(id, new_region(id)).first->second;
}

int64_t RegionTimer::run() {
  const RegionTimes& main = region(module_.main().body);
  return std::max(main.length, mode_ == TimeMode::kLower ? *std::ranges::max_element(main.busy) : 0);
}

OpTime RegionTimer::kernel_time(uint32_t group) const { return group_time(module_, fusion_.groups[group], hardware_); }
CollectiveTime RegionTimer::transfer_time(OpId op) const {
  return collective_time(read_collective(OpView(module_, op)), hardware_);
}

// The regions that an op runs, each with its executions in one of the op.
std::vector<std::pair<RegionId, Executions>> RegionTimer::runs_of(OpId id) const {
  const OpView op(module_, id);
  if (is_call(module_, id)) return {{called_function(module_, id).body, {}}};
  std::vector<std::pair<RegionId, Executions>> runs;
  for (size_t r = 0; r < op.regions().size(); ++r) {
    runs.emplace_back(op.regions()[r], executions_inside(op, r, {}));
  }
  return runs;
}

bool RegionTimer::is_body(RegionId region) const {
  const OpId owner = module_.region(region).op;
  return owner && module_.op(owner).def->regions == Regions::kLoop && loop_parts(OpView(module_, owner)).body == region;
}

RegionTimes RegionTimer::new_region(RegionId id) {
  RegionTimes made;
  made.graph = task_graph(module_, id, fusion_);
  made.busy.assign(streams(), 0);
  const std::vector<bool> takes_no_time = mode_ == TimeMode::kUpper
                                              ? std::vector<bool>(made.graph.tasks.size())
                                              : shifts_beside_opposite(module_, made.graph, hardware_);
  for (const Task& task : made.graph.tasks) {
    std::vector<int64_t> busy(streams(), 0);
    made.times.push_back(takes_no_time[made.times.size()] ? TaskTime{} : time_of(task, busy));
    for (size_t s = 0; s < busy.size(); ++s) made.busy[s] = saturated_sum(made.busy[s], busy[s]);
  }
  switch (mode_) {
    case TimeMode::kLower: made.length = critical_path(made.graph, made.times); break;
    case TimeMode::kEstimate:
      made.schedule = schedule(made.graph, made.times, streams());
      made.length = made.schedule.length;
      break;
    case TimeMode::kUpper:
      for (const TaskTime& time : made.times) made.length = saturated_sum(made.length, time.ps());
      break;
  }
  if (is_body(id)) add_further_trips(made);
  return made;
}

// A further trip waits for the transfers of its longest chain from a carry to its next value, or for those on the
// busiest stream, whichever binds.
void RegionTimer::add_further_trips(RegionTimes& body) const {
  const RecurrencePath chain = recurrence_path(body.graph, body.times);
  const auto busiest = std::ranges::max_element(body.busy);
  if (mode_ != TimeMode::kEstimate) {
    body.further = mode_ == TimeMode::kUpper ? body.length : chain.length;
    return;
  }
  body.further = std::max(chain.length, *busiest);
  std::vector<double> waits(body.times.size(), 0);
  if (chain.length >= *busiest) {
    for (const uint32_t task : chain.tasks) {
      if (is_transfer_task(body, task)) waits[task] = static_cast<double>(body.times[task].ps());
    }
  } else {
    for (uint32_t task = 0; task < waits.size(); ++task) {
      for (const StreamStage& stage : body.times[task].stages) {
        const bool is_on_it = is_transfer_task(body, task) && stage.stream == busiest - body.busy.begin();
        if (is_on_it) waits[task] += static_cast<double>(stage.ps);
      }
    }
  }
  const double sum = std::accumulate(waits.begin(), waits.end(), 0.0);
  const auto exposed = static_cast<double>(body.further - body.busy[0]);
  for (double& wait : waits) wait = sum > 0 ? wait * exposed / sum : 0;
  body.further_exposed = std::move(waits);
}

// `busy`: how long it keeps each stream.
TaskTime RegionTimer::time_of(const Task& task, std::vector<int64_t>& busy) {
  TaskTime time;
  switch (task.kind) {
    case Task::Kind::kCarry: break;
    case Task::Kind::kKernel: {
      const OpTime kernel = kernel_time(task.group);
      time.stages = {{0, mode_ == TimeMode::kLower ? kernel.ps_without_launch() : kernel.ps()}};
      break;
    }
    case Task::Kind::kTransfer: time = time_of_transfer(transfer_time(task.op), busy); break;
    case Task::Kind::kRegions: return time_of_regions(task.op, busy);
  }
  if (task.kind != Task::Kind::kTransfer || mode_ != TimeMode::kLower) {
    for (const StreamStage& stage : time.stages) busy[stage.stream] = saturated_sum(busy[stage.stream], stage.ps);
  }
  return time;
}

TaskTime RegionTimer::time_of_transfer(const CollectiveTime& transfer, std::vector<int64_t>& busy) const {
  if (mode_ != TimeMode::kLower) return estimated_transfer(transfer);
  for (const TierTime& tier : transfer.tiers) {
    busy[tier.tier + 1] = saturated_sum(busy[tier.tier + 1], tier.ps);
  }
  // All tiers at once: the slowest counts.
  return {.stages = {{1, transfer.overlap()}}};
}

TaskTime RegionTimer::time_of_regions(OpId op, std::vector<int64_t>& busy) {
  int64_t length = 0;
  for (const auto& [id, runs] : runs_of(op)) {
    const RegionTimes& inside = region(id);
    length = saturated_sum(length, length_of(inside, id, runs));
    for (size_t s = 0; s < busy.size(); ++s) busy[s] = saturated_sum(busy[s], runs.times(inside.busy[s]));
  }
  // Nothing runs beside it.
  if (mode_ != TimeMode::kLower) std::ranges::fill(busy, length);
  return {.stages = {{0, length}}, .needs_all_streams = true};
}

int64_t RegionTimer::length_of(const RegionTimes& inside, RegionId id, const Executions& runs) const {
  if (!is_body(id))
    return mode_ == TimeMode::kLower && is_condition_region(module_, id) ? 0 : runs.times(inside.length);
  const int64_t trips = runs.times(1);
  if (trips == 0) return 0;
  const int64_t further = saturated_product(inside.further, trips - 1);
  // The chain of a lower bound need not begin where the trip does.
  if (mode_ == TimeMode::kLower) return std::max(inside.length, saturated_sum(further, inside.further));
  return saturated_sum(inside.length, further);
}

}  // namespace shardwise
