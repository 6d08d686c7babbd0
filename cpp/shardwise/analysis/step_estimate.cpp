// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/step_estimate.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "shardwise/analysis/collective_price.h"
#include "shardwise/analysis/schedule/region_times.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/control/control.h"

namespace shardwise {
namespace {

double expected(const Executions& executions) {
  return static_cast<double>(executions.count) * static_cast<double>(executions.factor.numerator) /
         static_cast<double>(executions.factor.denominator);
}

// The rows of a timed program, and when each begins.
class RowMaker {
 public:
  RowMaker(const Module& module, RegionTimer& timer) : module_(module), timer_(timer), executions_(module) {}

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
  RegionTimer& timer_;
  const ModuleExecutions executions_;
  std::unordered_map<std::pair<uint32_t, uint32_t>, size_t, KeyHash> rows_;  // by region and task
  std::unordered_set<RegionId> called_;                                      // functions whose rows are made
  StepEstimate found_;
};

}  // namespace

StepEstimate estimate_step(const Module& local, const Hardware& hardware) {
  RegionTimer timer(local, hardware, TimeMode::kEstimate);
  const int64_t estimate = timer.run();
  StepEstimate found = RowMaker(local, timer).run();
  found.lower_ps = RegionTimer(local, hardware, TimeMode::kLower).run();
  found.estimate_ps = estimate;
  found.upper_ps = RegionTimer(local, hardware, TimeMode::kUpper).run();
  return found;
}

}  // namespace shardwise
