// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/step_estimate.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "shardwise/analysis/collective_price.h"
#include "shardwise/analysis/fuse.h"
#include "shardwise/analysis/group_time.h"
#include "shardwise/analysis/stream_schedule.h"
#include "shardwise/base/quantity.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

enum class Mode : uint8_t { kLower, kEstimate, kUpper };

// A region, timed once.
struct RegionTimes {
  TaskGraph graph;
  std::vector<TaskTime> times;  // by task
  StreamSchedule schedule;      // kEstimate
  int64_t length = 0;           // of one execution, alone
  std::vector<int64_t> busy;    // by stream
  // The body of a loop takes this long in each trip after the first, and waits so long for each task.
  int64_t further = 0;
  std::vector<double> further_exposed;
};

class StepTimer {
 public:
  StepTimer(const Module& module, const Hardware& hardware, Mode mode)
      : module_(module),
        hardware_(hardware),
        mode_(mode),
        fusion_(fuse(module, {.fused_attention = hardware.fused_attention && mode != Mode::kUpper})) {}

  const RegionTimes& region(RegionId id) {
    const auto found = regions_.find(id);
    if (found != regions_.end()) return found->second;
    return regions_.emplace(id, new_region(id)).first->second;
  }

  int64_t run() {
    const RegionTimes& main = region(module_.main().body);
    return std::max(main.length, mode_ == Mode::kLower ? *std::ranges::max_element(main.busy) : 0);
  }

  const Fusion& fusion() const { return fusion_; }
  OpTime kernel_time(uint32_t group) const { return group_time(module_, fusion_.groups[group], hardware_); }
  CollectiveTime transfer_time(OpId op) const {
    return collective_time(read_collective(OpView(module_, op)), hardware_);
  }

  // The regions that an op runs, each with its executions in one of the op.
  std::vector<std::pair<RegionId, Executions>> runs_of(OpId id) const {
    const OpView op(module_, id);
    if (is_call(module_, id)) return {{called_function(module_, id).body, {}}};
    std::vector<std::pair<RegionId, Executions>> runs;
    for (size_t r = 0; r < op.regions().size(); ++r) {
      runs.emplace_back(op.regions()[r], executions_inside(op, r, {}));
    }
    return runs;
  }

  bool is_body(RegionId region) const {
    const OpId owner = module_.region(region).op;
    return owner && module_.op(owner).def->regions == Regions::kLoop &&
           loop_parts(OpView(module_, owner)).body == region;
  }

 private:
  size_t streams() const { return 1 + hardware_.tiers.size(); }

  RegionTimes new_region(RegionId id) {
    RegionTimes made;
    made.graph = task_graph(module_, id, fusion_);
    made.busy.assign(streams(), 0);
    const std::vector<bool> takes_no_time =
        mode_ == Mode::kUpper ? std::vector<bool>() : shifts_beside_opposite(module_, made.graph, hardware_);
    for (const Task& task : made.graph.tasks) {
      std::vector<int64_t> busy(streams(), 0);
      const bool is_beside = !takes_no_time.empty() && takes_no_time[made.times.size()];
      made.times.push_back(is_beside ? TaskTime{} : time_of(task, busy));
      for (size_t s = 0; s < busy.size(); ++s) made.busy[s] = saturated_sum(made.busy[s], busy[s]);
    }
    switch (mode_) {
      case Mode::kLower: made.length = critical_path(made.graph, made.times); break;
      case Mode::kEstimate:
        made.schedule = schedule(made.graph, made.times, streams());
        made.length = made.schedule.length;
        break;
      case Mode::kUpper:
        for (const TaskTime& time : made.times) made.length = saturated_sum(made.length, time.ps());
        break;
    }
    if (is_body(id)) add_further_trips(made);
    return made;
  }

  // A further trip waits for the transfers of its longest chain from a carry to its next value, or for those on the
  // busiest stream, whichever binds.
  void add_further_trips(RegionTimes& body) const {
    const RecurrencePath chain = recurrence_path(body.graph, body.times);
    const auto busiest = std::ranges::max_element(body.busy);
    if (mode_ != Mode::kEstimate) {
      body.further = mode_ == Mode::kUpper ? body.length : chain.length;
      return;
    }
    body.further = std::max(chain.length, *busiest);
    std::vector<double> waits(body.times.size(), 0);
    if (chain.length >= *busiest) {
      for (const uint32_t task : chain.tasks) {
        if (is_transfer(body, task)) waits[task] = static_cast<double>(body.times[task].ps());
      }
    } else {
      for (uint32_t task = 0; task < waits.size(); ++task) {
        for (const StreamStage& stage : body.times[task].stages) {
          const bool is_on_it = is_transfer(body, task) && stage.stream == busiest - body.busy.begin();
          if (is_on_it) waits[task] += static_cast<double>(stage.ps);
        }
      }
    }
    const double sum = std::accumulate(waits.begin(), waits.end(), 0.0);
    const auto exposed = static_cast<double>(body.further - body.busy[0]);
    for (double& wait : waits) wait = sum > 0 ? wait * exposed / sum : 0;
    body.further_exposed = std::move(waits);
  }

  static bool is_transfer(const RegionTimes& region, uint32_t task) {
    return region.graph.tasks[task].kind == Task::Kind::kTransfer;
  }

  // `busy`: how long it keeps each stream.
  TaskTime time_of(const Task& task, std::vector<int64_t>& busy) {
    TaskTime time;
    switch (task.kind) {
      case Task::Kind::kCarry: break;
      case Task::Kind::kKernel: {
        const OpTime kernel = kernel_time(task.group);
        time.stages = {{0, mode_ == Mode::kLower ? kernel.ps_without_launch() : kernel.ps()}};
        break;
      }
      case Task::Kind::kTransfer: time = time_of_transfer(transfer_time(task.op), busy); break;
      case Task::Kind::kRegions: return time_of_regions(task.op, busy);
    }
    if (task.kind != Task::Kind::kTransfer || mode_ != Mode::kLower) {
      for (const StreamStage& stage : time.stages) busy[stage.stream] = saturated_sum(busy[stage.stream], stage.ps);
    }
    return time;
  }

  TaskTime time_of_transfer(const CollectiveTime& transfer, std::vector<int64_t>& busy) const {
    TaskTime time;
    for (const TierTime& tier : transfer.tiers) {
      time.stages.push_back({static_cast<uint32_t>(tier.tier + 1), tier.ps});
    }
    if (mode_ == Mode::kLower) {
      for (const StreamStage& stage : time.stages) busy[stage.stream] = saturated_sum(busy[stage.stream], stage.ps);
      // All tiers at once: the slowest counts.
      time.stages = {{1, transfer.overlap()}};
    } else if (!time.stages.empty()) {
      // Transfers of one stream follow each other: each has its own latency.
      int64_t& first = time.stages.front().ps;
      first = saturated_sum(first, transfer.latency_ps);
    }
    return time;
  }

  TaskTime time_of_regions(OpId op, std::vector<int64_t>& busy) {
    int64_t length = 0;
    for (const auto& [id, runs] : runs_of(op)) {
      const RegionTimes& inside = region(id);
      length = saturated_sum(length, length_of(inside, id, runs));
      for (size_t s = 0; s < busy.size(); ++s) busy[s] = saturated_sum(busy[s], runs.times(inside.busy[s]));
    }
    // Nothing runs beside it.
    if (mode_ != Mode::kLower) std::ranges::fill(busy, length);
    return {.stages = {{0, length}}, .needs_all_streams = true};
  }

  int64_t length_of(const RegionTimes& inside, RegionId id, const Executions& runs) const {
    if (!is_body(id)) return mode_ == Mode::kLower && is_condition(id) ? 0 : runs.times(inside.length);
    const int64_t trips = runs.times(1);
    if (trips == 0) return 0;
    const int64_t further = saturated_product(inside.further, trips - 1);
    // The chain of a lower bound need not begin where the trip does.
    if (mode_ == Mode::kLower) return std::max(inside.length, saturated_sum(further, inside.further));
    return saturated_sum(inside.length, further);
  }

  // The condition is the region of a loop that is not its body. The region of a function has no op.
  bool is_condition(RegionId id) const {
    const OpId owner = module_.region(id).op;
    return owner && module_.op(owner).def->regions == Regions::kLoop;
  }

  const Module& module_;
  const Hardware& hardware_;
  const Mode mode_;
  const Fusion fusion_;
  std::unordered_map<RegionId, RegionTimes> regions_;
};

double expected(const Executions& executions) {
  return static_cast<double>(executions.count) * static_cast<double>(executions.factor.numerator) /
         static_cast<double>(executions.factor.denominator);
}

// The rows of a timed program, and when each begins.
class RowMaker {
 public:
  RowMaker(const Module& module, StepTimer& timer) : module_(module), timer_(timer), executions_(module) {}

  StepEstimate run() {
    add_region(module_.main().body, {});
    std::ranges::stable_sort(found_.rows, {}, &EstimateRow::start_ps);
    return std::move(found_);
  }

 private:
  using Runs = std::vector<std::pair<RegionId, Executions>>;

  // Where a region is shown, and how often it runs.
  struct Frame {
    double start_ps = 0;
    double share = 1;           // of its length: that of a branch, and 0 in a loop without trips
    double runs = 1;            // in all
    double firsts = 1;          // of them, how many are no further trips of a loop
    bool is_shown_here = true;  // or it is of a function that was called before, where its rows are
  };

  void add_region(RegionId id, const Frame& frame) {
    const RegionTimes& region = timer_.region(id);
    for (uint32_t i = 0; i < region.graph.tasks.size(); ++i) {
      const Task& task = region.graph.tasks[i];
      if (task.kind == Task::Kind::kCarry) continue;
      if (task.kind == Task::Kind::kRegions) {
        Frame inner = frame;
        inner.start_ps += frame.share * static_cast<double>(region.schedule.start[i]);
        add_inner(task.op, inner);
        continue;
      }
      double exposed = static_cast<double>(region.schedule.exposed[i]) * frame.firsts;
      if (!region.further_exposed.empty()) exposed += region.further_exposed[i] * (frame.runs - frame.firsts);
      add_row(id, i, frame, exposed);
    }
  }

  // `frame`: that of the op around it, beginning with the op.
  void add_inner(OpId op, const Frame& frame) {
    const Runs runs = timer_.runs_of(op);
    switch (is_call(module_, op) ? Regions::kInline : module_.op(op).def->regions) {
      case Regions::kLoop: return add_loop(op, runs, frame);
      case Regions::kBranches: return add_branches(op, runs, frame);
      default: return add_called(op, runs, frame);
    }
  }

  void add_loop(OpId op, const Runs& runs, const Frame& frame) {
    const size_t loop = add_span(StepSpan::Kind::kLoop, op, frame, frame.start_ps, 0, 0);
    double at = frame.start_ps, conditions = 0;
    int64_t more_conditions = 0;
    for (const auto& [id, inside] : runs) {
      const RegionTimes& region = timer_.region(id);
      const double length = frame.share * static_cast<double>(region.length), times = frame.runs * expected(inside);
      const int64_t more = inside.times(1) - 1;
      if (!timer_.is_body(id)) {
        add_region(id, {at, frame.share, times, times, frame.is_shown_here});
        at += length;
        more_conditions = more;
        conditions = length * static_cast<double>(more);
        continue;
      }
      add_region(id, {at, more < 0 ? 0 : frame.share, times, std::min(frame.runs, times), frame.is_shown_here});
      if (more >= 0) at += length;
      const double further = frame.share * static_cast<double>(region.further) * static_cast<double>(more);
      if (more > 0) add_span(StepSpan::Kind::kMoreTrips, op, frame, at, further, more);
      if (more > 0) at += further;
      if (frame.is_shown_here) found_.spans[loop].number = more + 1;
    }
    if (conditions > 0) add_span(StepSpan::Kind::kMoreConditions, op, frame, at, conditions, more_conditions);
    if (frame.is_shown_here) found_.spans[loop].ps = at + conditions - frame.start_ps;
  }

  void add_branches(OpId op, const Runs& runs, const Frame& frame) {
    const size_t all = add_span(StepSpan::Kind::kBranches, op, frame, frame.start_ps, 0, 0);
    double at = frame.start_ps;
    int64_t number = 0;
    for (const auto& [id, inside] : runs) {
      const double share = frame.share * expected(inside), times = frame.runs * expected(inside);
      const double length = share * static_cast<double>(timer_.region(id).length);
      add_span(StepSpan::Kind::kBranch, op, frame, at, length, number++);
      add_region(id, {at, share, times, times, frame.is_shown_here});
      at += length;
    }
    if (frame.is_shown_here) found_.spans[all].ps = at - frame.start_ps;
  }

  // The region of a call has its rows where it is called first.
  void add_called(OpId op, const Runs& runs, Frame frame) {
    for (const auto& [id, inside] : runs) {
      const double length = frame.share * static_cast<double>(timer_.region(id).length);
      const bool is_first = called_.insert(id).second;
      add_span(is_first ? StepSpan::Kind::kCall : StepSpan::Kind::kCalledAgain, op, frame, frame.start_ps, length, 0);
      add_region(id, {frame.start_ps, frame.share, frame.runs, frame.runs, frame.is_shown_here && is_first});
      frame.start_ps += length;
    }
  }

  size_t add_span(StepSpan::Kind kind, OpId op, const Frame& frame, double start_ps, double ps, int64_t number) {
    if (frame.is_shown_here) found_.spans.push_back({kind, op, start_ps, ps, number});
    return found_.spans.size() - 1;
  }

  void add_row(RegionId id, uint32_t index, const Frame& frame, double exposed) {
    const auto [known, is_new] = rows_.try_emplace({id.index, index}, found_.rows.size());
    if (!is_new) {  // of a function that is called again
      found_.rows[known->second].exposed_ps += exposed;
      return;
    }
    const RegionTimes& region = timer_.region(id);
    const Task& task = region.graph.tasks[index];
    const auto shown = [&](int64_t ps) { return frame.share * static_cast<double>(ps); };
    EstimateRow row{.op = task.op, .ops = {task.op}, .executions = executions_.of(task.op), .stages = {}};
    row.start_ps = frame.start_ps + shown(region.schedule.start[index]);
    row.exposed_ps = exposed;
    for (size_t i = 0; i < region.schedule.stages[index].size(); ++i) {
      const StreamStage& stage = region.times[index].stages[i];
      row.stages.push_back({stage.stream, frame.start_ps + shown(region.schedule.stages[index][i]), shown(stage.ps)});
    }
    task.kind == Task::Kind::kTransfer ? make_transfer(row) : make_kernel(row, task.group);
    found_.rows.push_back(std::move(row));
  }

  void make_transfer(EstimateRow& row) const {
    row.is_transfer = true;
    row.transfer = timer_.transfer_time(row.op);
    row.ps = row.transfer.total();
    row.bytes = whole_quantity(read_collective(OpView(module_, row.op)).bytes);
  }

  void make_kernel(EstimateRow& row, uint32_t index) const {
    const FusionGroup& group = timer_.fusion().groups[index];
    row.ops = group.ops;
    row.op = main_op(group);
    row.is_attention = group.is_attention;
    row.kernel = timer_.kernel_time(index);
    row.ps = row.kernel.ps();
    row.bytes = row.kernel.bytes;
  }

  OpId main_op(const FusionGroup& group) const {
    return *std::ranges::max_element(group.ops, {}, [&](OpId op) { return own_cost(OpView(module_, op)).flops(); });
  }

  struct KeyHash {
    size_t operator()(const std::pair<uint32_t, uint32_t>& key) const { return hash_combine(key.first, key.second); }
  };

  const Module& module_;
  StepTimer& timer_;
  const ModuleExecutions executions_;
  std::unordered_map<std::pair<uint32_t, uint32_t>, size_t, KeyHash> rows_;  // by region and task
  std::unordered_set<RegionId> called_;                                      // functions whose rows are made
  StepEstimate found_;
};

}  // namespace

StepEstimate estimate_step(const Module& local, const Hardware& hardware) {
  StepTimer timer(local, hardware, Mode::kEstimate);
  const int64_t estimate = timer.run();
  StepEstimate found = RowMaker(local, timer).run();
  found.lower_ps = StepTimer(local, hardware, Mode::kLower).run();
  found.estimate_ps = estimate;
  found.upper_ps = StepTimer(local, hardware, Mode::kUpper).run();
  return found;
}

}  // namespace shardwise
