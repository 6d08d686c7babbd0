// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/schedule/stream_schedule.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "shardwise/base/quantity.h"

namespace shardwise {
namespace {

constexpr int64_t kFirst = -1;  // before all kernels

bool is_transfer(const Task& task) { return task.kind == Task::Kind::kTransfer; }

// Between which kernels each transfer can be issued: after `ready`, and before `needed`. Kernels are numbered in their
// order; loops and branches count as kernels.
struct Windows {
  std::vector<int64_t> number;  // by task: of a kernel
  std::vector<int64_t> ready;   // by task: the last kernel that it waits for, or kFirst
  std::vector<int64_t> needed;  // by task: the first kernel that waits for it
  int64_t kernels = 0;
};

Windows windows_of(const TaskGraph& graph) {
  const size_t count = graph.tasks.size();
  Windows windows{std::vector<int64_t>(count, kFirst), std::vector<int64_t>(count, kFirst), {}};
  for (size_t i = 0; i < count; ++i) {
    const Task& task = graph.tasks[i];
    for (const uint32_t made : task.after) {
      const bool is_kernel = !is_transfer(graph.tasks[made]);
      windows.ready[i] = std::max(windows.ready[i], is_kernel ? windows.number[made] : windows.ready[made]);
    }
    if (task.kind == Task::Kind::kKernel || task.kind == Task::Kind::kRegions) windows.number[i] = windows.kernels++;
  }
  windows.needed.assign(count, windows.kernels);
  for (size_t i = count; i-- > 0;) {
    // A transfer that waits for a kernel is issued after it, and so is all that it waits for.
    const bool is_late = is_transfer(graph.tasks[i]) && windows.ready[i] != kFirst;
    const int64_t own = !is_transfer(graph.tasks[i]) ? windows.number[i]
                        : is_late                    ? std::min(windows.needed[i], windows.ready[i] + 1)
                                                     : windows.needed[i];
    for (const uint32_t made : graph.tasks[i].after) windows.needed[made] = std::min(windows.needed[made], own);
  }
  return windows;
}

// When transfers are issued.
struct Issue {
  int64_t ahead = 0;  // kernels between a transfer that waits for none and the first one that needs it
  int64_t delay = 0;  // of one that waits for a kernel, in sixteenths of its window
};

// All tasks in the order in which they are issued. Whatever a task waits for stands before it: a transfer is issued in its
// window, which ends where one that waits for it may be issued.
std::vector<uint32_t> issue_order(const TaskGraph& graph, const Windows& windows, const Issue& issue) {
  // Sorted by counting: kernel k has the key 2k + 1, a transfer after it 2k + 2, and one before all of them 0.
  std::vector<uint32_t> places(static_cast<size_t>(2 * windows.kernels + 3), 0);
  std::vector<uint32_t> keys(graph.tasks.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    int64_t after = windows.number[i];
    if (is_transfer(graph.tasks[i])) {
      const int64_t ready = windows.ready[i], last = windows.needed[i] - 1;
      after = ready != kFirst ? ready + (last - ready) * issue.delay / 16 : std::max(kFirst, last - issue.ahead);
    }
    keys[i] = static_cast<uint32_t>(2 * after + (is_transfer(graph.tasks[i]) ? 2 : 1));
    if (graph.tasks[i].kind == Task::Kind::kCarry) keys[i] = 0;
    ++places[keys[i] + 1];
  }
  std::partial_sum(places.begin(), places.end(), places.begin());
  std::vector<uint32_t> order(keys.size());
  for (uint32_t i = 0; i < keys.size(); ++i) order[places[keys[i]]++] = i;
  return order;
}

class Simulation {
 public:
  Simulation(const TaskGraph& graph, std::span<const TaskTime> times, size_t streams)
      : graph_(graph), times_(times), streams_(streams), start_(times.size(), 0), last_(times.size()) {}

  void run(std::span<const uint32_t> order) {
    for (const uint32_t task : order) {
      if (graph_.tasks[task].kind == Task::Kind::kCarry) continue;
      times_[task].needs_all_streams ? run_alone(task) : run_one(task);
      if (last_[task] && runs_[*last_[task]].end > length()) longest_ = last_[task];
    }
    // The step ends when the last transfer does.
    if (longest_) wait_for(*longest_, length());
  }

  int64_t length() const { return longest_ ? runs_[*longest_].end : 0; }

  StreamSchedule schedule() const {
    StreamSchedule found{length(), start_, std::vector<std::vector<int64_t>>(times_.size()),
                         std::vector<int64_t>(times_.size(), 0)};
    for (const Run& run : runs_) found.stages[run.task].push_back(run.begin);
    for (const Wait& wait : waits_) charge(wait, found.exposed);
    return found;
  }

 private:
  // A stage of a task on its stream.
  struct Run {
    uint32_t task = 0;
    int64_t begin = 0, end = 0;
    std::optional<uint32_t> before = {};  // the run whose end it waited for
  };
  struct Stream {
    int64_t free = 0;
    std::optional<uint32_t> last = {};  // run
  };
  // Stream 0 waits until a run ends.
  struct Wait {
    int64_t begin = 0, end = 0;
    uint32_t run = 0;
  };

  int64_t end_of(std::optional<uint32_t> run) const { return run ? runs_[*run].end : 0; }

  // The run that ends last of those that a task waits for.
  std::optional<uint32_t> last_before(uint32_t task) const {
    std::optional<uint32_t> last;
    for (const uint32_t made : graph_.tasks[task].after) {
      if (last_[made] && (!last || end_of(last_[made]) > end_of(last))) last = last_[made];
    }
    return last;
  }

  void wait_for(uint32_t run, int64_t until) {
    if (until > streams_[0].free) waits_.push_back({streams_[0].free, until, run});
  }

  void run_one(uint32_t task) {
    const TaskTime& time = times_[task];
    std::optional<uint32_t> before = last_before(task);
    int64_t at = end_of(before);
    start_[task] = at;
    last_[task] = before;
    for (size_t i = 0; i < time.stages.size(); ++i) {
      Stream& stream = streams_[time.stages[i].stream];
      if (time.stages[i].stream == 0 && before) wait_for(*before, at);
      if (stream.free > at) {
        at = stream.free;
        before = stream.last;
      }
      if (i == 0) start_[task] = at;
      const int64_t end = saturated_sum(at, time.stages[i].ps);
      before = add_run({task, at, end, before});
      at = end;
      stream = {at, before};
    }
  }

  void run_alone(uint32_t task) {
    std::optional<uint32_t> before = last_before(task);
    int64_t at = end_of(before);
    for (const Stream& stream : streams_) {
      if (stream.free <= at) continue;
      at = stream.free;
      before = stream.last;
    }
    if (before) wait_for(*before, at);
    start_[task] = at;
    const uint32_t run = add_run({task, at, saturated_sum(at, times_[task].ps()), before});
    std::ranges::fill(streams_, Stream{runs_[run].end, run});
  }

  uint32_t add_run(const Run& run) {
    runs_.push_back(run);
    last_[run.task] = static_cast<uint32_t>(runs_.size() - 1);
    return *last_[run.task];
  }

  // A wait for a transfer that was queued behind others is one for these as well.
  void charge(const Wait& wait, std::vector<int64_t>& exposed) const {
    int64_t end = wait.end;
    for (std::optional<uint32_t> run = wait.run; run && end > wait.begin; run = runs_[*run].before) {
      const int64_t begin = std::clamp(end_of(runs_[*run].before), wait.begin, end);
      exposed[runs_[*run].task] += end - begin;
      end = begin;
    }
  }

  const TaskGraph& graph_;
  const std::span<const TaskTime> times_;
  std::vector<Stream> streams_;
  std::vector<int64_t> start_;                 // by task
  std::vector<std::optional<uint32_t>> last_;  // run, by task
  std::vector<Run> runs_;
  std::vector<Wait> waits_;
  std::optional<uint32_t> longest_;  // the run that ends last
};

// The longest chain that ends at each task, of those that begin at `first` or, without it, anywhere. -1: none does.
std::vector<int64_t> longest_chains(const TaskGraph& graph, std::span<const TaskTime> times,
                                    std::optional<uint32_t> first) {
  std::vector<int64_t> end(times.size(), -1);
  for (uint32_t i = first.value_or(0); i < times.size(); ++i) {
    int64_t before = !first || i == *first ? 0 : -1;
    for (const uint32_t made : graph.tasks[i].after) before = std::max(before, end[made]);
    if (before >= 0) end[i] = saturated_sum(before, times[i].ps());
  }
  return end;
}

}  // namespace

int64_t TaskTime::ps() const {
  int64_t sum = 0;
  for (const StreamStage& stage : stages) sum = saturated_sum(sum, stage.ps);
  return sum;
}

StreamSchedule schedule(const TaskGraph& graph, std::span<const TaskTime> times, size_t streams) {
  const Windows windows = windows_of(graph);
  std::vector<int64_t> aheads{0}, delays{0};
  bool has_early = false, has_late = false;
  for (size_t i = 0; i < times.size(); ++i) {
    if (!is_transfer(graph.tasks[i])) continue;
    has_early |= windows.ready[i] == kFirst;
    has_late |= windows.ready[i] != kFirst && windows.needed[i] - 1 > windows.ready[i];
  }
  if (has_early) {
    for (int64_t ahead = 1; ahead < 4 * windows.kernels; ahead *= 4) aheads.push_back(ahead);
  }
  if (has_late) delays = {0, 1, 2, 4, 8, 16};
  // A program may have its transfers where they are best issued.
  std::vector<uint32_t> as_written(times.size());
  std::iota(as_written.begin(), as_written.end(), 0);
  std::optional<Simulation> best(std::in_place, graph, times, streams);
  best->run(as_written);
  for (const int64_t ahead : aheads) {
    for (const int64_t delay : delays) {
      Simulation found(graph, times, streams);
      found.run(issue_order(graph, windows, {ahead, delay}));
      if (found.length() < best->length()) best.emplace(std::move(found));
    }
  }
  return best->schedule();
}

int64_t critical_path(const TaskGraph& graph, std::span<const TaskTime> times) {
  const std::vector<int64_t> end = longest_chains(graph, times, std::nullopt);
  return end.empty() ? 0 : *std::ranges::max_element(end);
}

RecurrencePath recurrence_path(const TaskGraph& graph, std::span<const TaskTime> times) {
  RecurrencePath longest;
  for (const TaskGraph::Recurrence& recurrence : graph.recurrences) {
    if (recurrence.made_by.empty()) continue;
    const std::vector<int64_t> end = longest_chains(graph, times, recurrence.carry);
    const auto last_of = [&](const std::vector<uint32_t>& tasks) {
      return *std::ranges::max_element(tasks, {}, [&](uint32_t task) { return end[task]; });
    };
    uint32_t task = last_of(recurrence.made_by);
    if (end[task] <= longest.length) continue;
    longest = {end[task], {task}};
    while (task != recurrence.carry) longest.tasks.push_back(task = last_of(graph.tasks[task].after));
  }
  return longest;
}

}  // namespace shardwise
