// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/schedule/task_graph.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "shardwise/analysis/collective_price.h"
#include "shardwise/base/error.h"
#include "shardwise/cost/device_tiers.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

class GraphMaker {
 public:
  GraphMaker(const Module& module, RegionId region, const Fusion& fusion)
      : module_(module), region_(region), fusion_(fusion) {}

  TaskGraph run() {
    add_carries();
    for (const OpId id : module_.region(region_).ops) add_op(OpView(module_, id));
    for (Task& task : graph_.tasks) {
      std::ranges::sort(task.after);
      const auto [first, last] = std::ranges::unique(task.after);
      task.after.erase(first, last);
    }
    add_recurrences();
    sort();
    return std::move(graph_);
  }

 private:
  // Returns the loop whose body the region is, if it is one.
  std::optional<LoopParts> loop() const {
    const OpId owner = module_.region(region_).op;
    if (!owner || module_.op(owner).def->regions != Regions::kLoop) return std::nullopt;
    LoopParts parts = loop_parts(OpView(module_, owner));
    return parts.body == region_ ? std::optional(std::move(parts)) : std::nullopt;
  }

  void add_carries() {
    const auto parts = loop();
    if (!parts) return;
    for (const LoopParts::Carry& carry : parts->carries) {
      if (carry.is_invariant()) continue;
      made_by_[carry.argument] = {add({.kind = Task::Kind::kCarry, .op = {}, .after = {}})};
      graph_.recurrences.push_back({made_by_[carry.argument][0], {}});
      next_.push_back(carry.next);
    }
  }

  void add_recurrences() {
    for (size_t i = 0; i < next_.size(); ++i) graph_.recurrences[i].made_by = makers(next_[i]);
  }

  void add_op(const OpView& op) {
    const uint32_t group = fusion_.group_of[op.id().index];
    if (group != Fusion::kNoGroup) return add_to_kernel(op, group);
    const bool runs_regions = op.def().regions != Regions::kNone && op.def().regions != Regions::kCombiner;
    const CollectiveKind collective = op.def().traits.collective;
    if (runs_regions || (moves_data(collective) && read_collective(op).group_size > 1)) {
      const Task::Kind kind = runs_regions ? Task::Kind::kRegions : Task::Kind::kTransfer;
      const uint32_t task = add({.kind = kind, .op = op.id(), .after = {}});
      visit_reads(module_, op.id(), [&](ValueId value) { wait_for(task, value); });
      for (size_t i = 0; i < op.result_count(); ++i) made_by_[op.result(i)] = {task};
      return;
    }
    add_view(op);
  }

  void add_to_kernel(const OpView& op, uint32_t group) {
    const auto [found, is_new] = kernels_.try_emplace(group, 0);
    if (is_new) {
      found->second = add({.kind = Task::Kind::kKernel, .op = op.id(), .group = group, .after = {}});
      for (const OpId again : fusion_.groups[group].computed_again) {
        for (const ValueId value : module_.operands(again)) wait_for(found->second, value);
      }
    }
    const uint32_t task = found->second;
    visit_reads(module_, op.id(), [&](ValueId value) {
      if (!is_copy_of(task, value)) wait_for(task, value);
    });
    for (size_t i = 0; i < op.result_count(); ++i) made_by_[op.result(i)] = {task};
  }

  // A view of what a kernel makes is copied for a transfer. The kernel itself reads no copy.
  bool is_copy_of(uint32_t kernel, ValueId value) const {
    const OpId copy = module_.value(value).op;
    if (!copy || module_.op(copy).operand_count != 1) return false;
    return std::ranges::find(makers(module_.operands(copy)[0]), kernel) != makers(module_.operands(copy)[0]).end();
  }

  // Result i of a barrier is operand i; all others have one result.
  void add_view(const OpView& op) {
    if (op.operand_count() == op.result_count()) {
      for (size_t i = 0; i < op.result_count(); ++i) set_makers(op.result(i), makers(op.operand(i)));
      return;
    }
    std::vector<uint32_t> all;
    for (const ValueId operand : op.operands()) {
      const std::vector<uint32_t>& of_operand = makers(operand);
      all.insert(all.end(), of_operand.begin(), of_operand.end());
    }
    for (size_t i = 0; i < op.result_count(); ++i) set_makers(op.result(i), all);
  }

  void set_makers(ValueId value, std::vector<uint32_t> tasks) {
    if (!tasks.empty()) made_by_[value] = std::move(tasks);
  }

  const std::vector<uint32_t>& makers(ValueId value) const {
    static const std::vector<uint32_t> none;  // of an argument, a constant, or a value from around the region
    const auto found = made_by_.find(value);
    return found == made_by_.end() ? none : found->second;
  }

  uint32_t add(Task task) {
    graph_.tasks.push_back(std::move(task));
    return static_cast<uint32_t>(graph_.tasks.size() - 1);
  }

  void wait_for(uint32_t task, ValueId value) {
    for (const uint32_t made : makers(value)) {
      if (made != task) graph_.tasks[task].after.push_back(made);
    }
  }

  // A group that begins early may wait for one that begins later.
  void sort() {
    std::vector<Task>& tasks = graph_.tasks;
    std::vector<std::vector<uint32_t>> before(tasks.size());
    std::vector<size_t> waits(tasks.size());
    for (uint32_t i = 0; i < tasks.size(); ++i) {
      waits[i] = tasks[i].after.size();
      for (const uint32_t made : tasks[i].after) before[made].push_back(i);
    }
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
    for (uint32_t i = 0; i < tasks.size(); ++i) {
      if (waits[i] == 0) ready.push(i);
    }
    std::vector<uint32_t> place(tasks.size());
    std::vector<Task> sorted;
    while (!ready.empty()) {
      const uint32_t next = ready.top();
      ready.pop();
      place[next] = static_cast<uint32_t>(sorted.size());
      sorted.push_back(std::move(tasks[next]));
      for (const uint32_t user : before[next]) {
        if (--waits[user] == 0) ready.push(user);
      }
    }
    check_internal(sorted.size() == tasks.size(), "no group waits for itself");
    const auto move = [&](std::vector<uint32_t>& list) {
      for (uint32_t& task : list) task = place[task];
      std::ranges::sort(list);
    };
    for (Task& task : sorted) move(task.after);
    for (TaskGraph::Recurrence& recurrence : graph_.recurrences) {
      recurrence.carry = place[recurrence.carry];
      move(recurrence.made_by);
    }
    tasks = std::move(sorted);
  }

  const Module& module_;
  const RegionId region_;
  const Fusion& fusion_;
  TaskGraph graph_;
  std::vector<ValueId> next_;                                   // by recurrence
  std::unordered_map<ValueId, std::vector<uint32_t>> made_by_;  // tasks
  std::unordered_map<uint32_t, uint32_t> kernels_;              // tasks by group
};

// Each device has a link to both neighbors in each dim that the group takes, in the tier in which it shifts.
bool has_two_way_links(const LocalCollective& shift, const Hardware& hardware) {
  const TierCut cut = device_tiers(*shift.mesh, hardware)->cut(shift.axes);
  if (cut.empty() || cut.back().spans.empty()) return false;
  return std::ranges::all_of(cut.back().spans, [](const TorusSpan& span) { return span.closes && span.size > 2; });
}

bool are_opposite(const LocalCollective& first, const LocalCollective& second) {
  return first.mesh == second.mesh && first.axes == second.axes && first.permute.shift == -second.permute.shift &&
         first.operand_bytes >= second.operand_bytes;
}

}  // namespace

TaskGraph task_graph(const Module& module, RegionId region, const Fusion& fusion) {
  return GraphMaker(module, region, fusion).run();
}

std::vector<bool> shifts_beside_opposite(const Module& module, const TaskGraph& graph, const Hardware& hardware) {
  std::vector<bool> is_beside(graph.tasks.size(), false);
  std::vector<LocalCollective> alone;  // shifts without a partner yet
  for (uint32_t i = 0; i < graph.tasks.size() && !graph.recurrences.empty(); ++i) {
    const Task& task = graph.tasks[i];
    const auto is_carry = [&](uint32_t made) { return graph.tasks[made].kind == Task::Kind::kCarry; };
    if (task.kind != Task::Kind::kTransfer || !std::ranges::all_of(task.after, is_carry)) continue;
    LocalCollective found = read_collective(OpView(module, task.op));
    if (found.transfer != TransferKind::kShift) continue;
    const auto partner =
        std::ranges::find_if(alone, [&](const LocalCollective& other) { return are_opposite(other, found); });
    is_beside[i] = partner != alone.end() && has_two_way_links(found, hardware);
    if (partner != alone.end()) {
      alone.erase(partner);
    } else {
      alone.push_back(std::move(found));
    }
  }
  return is_beside;
}

}  // namespace shardwise
