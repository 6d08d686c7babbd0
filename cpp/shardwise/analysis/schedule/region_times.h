// SPDX-License-Identifier: Apache-2.0
//
// The tasks of the regions of a local program, how long each takes, and their schedule (stream_schedule.h):
//
//   RegionTimer timer(local, h100, TimeMode::kEstimate);
//   timer.region(body)         {tasks, times, schedule, length}: scheduled once, whatever its trips
//   timer.run()                of main, in picoseconds
//
// step_estimate.h says what the three modes are.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/analysis/executions.h"
#include "shardwise/analysis/fusion.h"
#include "shardwise/analysis/op_time.h"
#include "shardwise/analysis/schedule/stream_schedule.h"
#include "shardwise/cost/collective_time.h"
#include "shardwise/ir/module.h"

namespace shardwise {

enum class TimeMode : uint8_t { kLower, kEstimate, kUpper };

// Returns the time of one transfer in an estimate. It passes the tiers one after the other; the first one carries the whole latency.
TaskTime estimated_transfer(const CollectiveTime& transfer);

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

class RegionTimer {
 public:
  RegionTimer(const Module& module, const Hardware& hardware, TimeMode mode);

  const RegionTimes& region(RegionId id);
  int64_t run();

  const Fusion& fusion() const { return fusion_; }
  OpTime kernel_time(uint32_t group) const;
  CollectiveTime transfer_time(OpId op) const;
  // The regions that an op runs, each with its executions in one of the op.
  std::vector<std::pair<RegionId, Executions>> runs_of(OpId id) const;
  bool is_body(RegionId region) const;

 private:
  size_t streams() const { return 1 + hardware_.tiers.size(); }
  RegionTimes new_region(RegionId id);
  void add_further_trips(RegionTimes& body) const;
  TaskTime time_of(const Task& task, std::vector<int64_t>& busy);
  TaskTime time_of_transfer(const CollectiveTime& transfer, std::vector<int64_t>& busy) const;
  TaskTime time_of_regions(OpId op, std::vector<int64_t>& busy);
  int64_t length_of(const RegionTimes& inside, RegionId id, const Executions& runs) const;

  const Module& module_;
  const Hardware& hardware_;
  const TimeMode mode_;
  const Fusion fusion_;
  std::unordered_map<RegionId, RegionTimes> regions_;
};

}  // namespace shardwise
