// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/schedule/stream_schedule.h"

#include <algorithm>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace shardwise {
namespace {

constexpr size_t kStreams = 3;

Task kernel(std::vector<uint32_t> after = {}) { return {Task::Kind::kKernel, {}, 0, std::move(after)}; }
Task transfer(std::vector<uint32_t> after = {}) { return {Task::Kind::kTransfer, {}, 0, std::move(after)}; }
TaskTime takes(int64_t ps, uint32_t stream = 0) { return {{{stream, ps}}}; }
TaskTime alone(int64_t ps) { return {{{0, ps}}, true}; }

TEST(StreamSchedule, ExampleOfTheHeader) {
  const TaskGraph graph{{transfer(), kernel(), kernel({0, 1}), transfer({2})}, {}};
  const std::vector<TaskTime> times{takes(30, 1), takes(20), takes(10), takes(25, 1)};
  const StreamSchedule found = schedule(graph, times, kStreams);
  EXPECT_EQ(found.length, 65);
  EXPECT_EQ(found.start, (std::vector<int64_t>{0, 0, 30, 40}));
  EXPECT_EQ(found.exposed, (std::vector<int64_t>{10, 0, 0, 25}));
  EXPECT_EQ(critical_path(graph, times), 65);
}

TEST(StreamSchedule, AGatherOfALateWeightLetsAnUrgentReductionPass) {
  // Task 1 is ready at 0 and needed last; if it went first, task 2 would wait for it.
  const TaskGraph graph{{kernel(), transfer(), transfer({0}), kernel({2}), kernel({1, 3})}, {}};
  const std::vector<TaskTime> times{takes(10), takes(100, 1), takes(10, 1), takes(200), takes(10)};
  const StreamSchedule found = schedule(graph, times, kStreams);
  EXPECT_EQ(found.start, (std::vector<int64_t>{0, 20, 10, 20, 220}));
  EXPECT_EQ(found.length, 230);
}

TEST(StreamSchedule, AReductionOfAGradientLetsAnUrgentExchangePass) {
  // Task 1 is ready before task 3 and needed after it: kernel 4 would wait for both.
  const TaskGraph graph{{kernel(), transfer({0}), kernel({0}), transfer({2}), kernel({3}), kernel({4}), kernel({1, 5})},
                        {}};
  const std::vector<TaskTime> times{takes(10), takes(100, 1), takes(10), takes(10, 1),
                                    takes(10), takes(200),    takes(10)};
  const StreamSchedule found = schedule(graph, times, kStreams);
  EXPECT_EQ(found.start, (std::vector<int64_t>{0, 30, 10, 20, 30, 40, 240}));
}

TEST(StreamSchedule, AGatherRunsAheadBesideKernels) {
  const TaskGraph graph{{kernel(), kernel(), transfer(), kernel({2})}, {}};
  const std::vector<TaskTime> times{takes(50), takes(50), takes(80, 1), takes(50)};
  EXPECT_EQ(schedule(graph, times, kStreams).length, 150);
}

TEST(StreamSchedule, TiersWorkBesideEachOther) {
  const TaskGraph graph{{transfer(), transfer(), kernel({0, 1})}, {}};
  const std::vector<TaskTime> times{{{{1, 30}, {2, 40}}}, {{{1, 30}, {2, 40}}}, takes(7)};
  const StreamSchedule found = schedule(graph, times, kStreams);
  // The second one is on stream 1 from 30 to 60, and on stream 2 from 70 to 110, behind the first one.
  EXPECT_EQ(found.start, (std::vector<int64_t>{0, 30, 110}));
  EXPECT_EQ(found.stages, (std::vector<std::vector<int64_t>>{{0, 30}, {30, 70}, {110}}));
  EXPECT_EQ(found.exposed, (std::vector<int64_t>{70, 40, 0}));
}

TEST(StreamSchedule, NothingRunsBesideALoop) {
  const TaskGraph graph{{transfer(), {Task::Kind::kRegions, {}, 0, {}}, transfer({1}), kernel()}, {}};
  const std::vector<TaskTime> times{takes(30, 2), alone(100), takes(20, 1), takes(40)};
  const StreamSchedule found = schedule(graph, times, kStreams);
  EXPECT_EQ(found.length, 140 + (found.start[1] == 30 ? 30 : 0));
  EXPECT_EQ(found.start[3], found.start[1] + 100);
}

TEST(StreamSchedule, ARecurrenceIsTheLongestChainOfOneCarry) {
  const TaskGraph graph{{{Task::Kind::kCarry, {}, 0, {}},
                         {Task::Kind::kCarry, {}, 0, {}},
                         transfer(),
                         kernel({0, 2}),
                         kernel({3}),
                         kernel({1, 4})},
                        {{0, {4}}, {1, {5}}}};
  const std::vector<TaskTime> times{{}, {}, takes(1000, 1), takes(10), takes(20), takes(7)};
  EXPECT_EQ(recurrence_path(graph, times).length, 30);
  EXPECT_EQ(recurrence_path(graph, times).tasks, (std::vector<uint32_t>{4, 3, 0}));
  EXPECT_EQ(critical_path(graph, times), 1037);
}

TEST(StreamSchedule, AWaitInAQueueIsForThoseBeforeToo) {
  const TaskGraph graph{{kernel(), transfer({0}), transfer({0}), kernel({1, 2})}, {}};
  const std::vector<TaskTime> times{takes(10), takes(40, 1), takes(5, 1), takes(10)};
  EXPECT_EQ(schedule(graph, times, kStreams).exposed, (std::vector<int64_t>{0, 40, 5, 0}));
}

struct Drawn {
  TaskGraph graph;
  std::vector<TaskTime> times;
};

Drawn draw(std::mt19937& random) {
  const auto below = [&](int64_t end) {
    return static_cast<int64_t>(std::uniform_int_distribution<int64_t>(0, end - 1)(random));
  };
  Drawn drawn;
  const int64_t count = 1 + below(30);
  for (int64_t i = 0; i < count; ++i) {
    std::vector<uint32_t> after;
    for (int64_t k = below(4); k > 0 && i > 0; --k) after.push_back(static_cast<uint32_t>(below(i)));
    std::ranges::sort(after);
    const int64_t kind = below(8);
    if (kind == 0) {
      drawn.graph.tasks.push_back({Task::Kind::kRegions, {}, 0, after});
      drawn.times.push_back(alone(below(50)));
    } else if (kind < 5) {
      drawn.graph.tasks.push_back(kernel(after));
      drawn.times.push_back(takes(below(50)));
    } else {
      drawn.graph.tasks.push_back(transfer(after));
      drawn.times.push_back({{{1, below(50)}}});
      if (below(2) == 0) drawn.times.back().stages.push_back({2, below(50)});
    }
  }
  return drawn;
}

// Each stage follows the one before it, and no two are on a stream at once.
void expect_stages_fit(std::span<const TaskTime> times, const StreamSchedule& found) {
  std::vector<std::vector<std::pair<int64_t, int64_t>>> on_stream(kStreams);  // begin, end
  for (size_t i = 0; i < times.size(); ++i) {
    ASSERT_EQ(found.stages[i].size(), times[i].stages.size());
    int64_t end = found.start[i];
    for (size_t s = 0; s < times[i].stages.size(); ++s) {
      const int64_t begin = found.stages[i][s];
      EXPECT_TRUE(s > 0 || begin == found.start[i]);
      EXPECT_GE(begin, end);
      end = begin + times[i].stages[s].ps;
      for (size_t stream = 0; stream < kStreams; ++stream) {
        const bool is_on_it = times[i].needs_all_streams || times[i].stages[s].stream == stream;
        if (is_on_it && end > begin) on_stream[stream].emplace_back(begin, end);
      }
    }
    EXPECT_LE(end, found.length);
  }
  for (auto& stages : on_stream) {
    std::ranges::sort(stages);
    for (size_t i = 1; i < stages.size(); ++i) EXPECT_GE(stages[i].first, stages[i - 1].second);
  }
}

TEST(StreamSchedule, RandomGraphs) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 3000; ++trial) {
    Drawn drawn = draw(random);
    const auto& [graph, times] = drawn;
    const StreamSchedule found = schedule(graph, times, kStreams);
    int64_t computes = 0, all = 0, exposed = 0;
    std::vector<int64_t> busy(kStreams);
    for (size_t i = 0; i < times.size(); ++i) {
      all += times[i].ps();
      exposed += found.exposed[i];
      for (const StreamStage& stage : times[i].stages) busy[stage.stream] += stage.ps;
      if (graph.tasks[i].kind != Task::Kind::kTransfer) computes += times[i].ps();
      for (const uint32_t made : graph.tasks[i].after) {
        EXPECT_GE(found.start[i], found.start[made] + times[made].ps());
      }
    }
    expect_stages_fit(times, found);
    EXPECT_EQ(computes + exposed, found.length);
    EXPECT_LE(found.length, all);
    EXPECT_GE(found.length, critical_path(graph, times));
    EXPECT_GE(found.length, *std::ranges::max_element(busy));
    // More work never takes less time.
    const size_t longer = random() % times.size();
    if (!drawn.times[longer].stages.empty())
      drawn.times[longer].stages[0].ps += 1 + static_cast<int64_t>(random() % 40);
    EXPECT_GE(schedule(drawn.graph, drawn.times, kStreams).length, found.length);
  }
}

}  // namespace
}  // namespace shardwise
