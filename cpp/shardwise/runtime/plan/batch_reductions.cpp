// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan/batch_reductions.h"

#include <algorithm>
#include <queue>
#include <span>
#include <unordered_map>

#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

// Larger operands travel at once: a message costs little beside them, and waiting would keep them in memory.
constexpr int64_t kSmallBytes = int64_t{1} << 17;
// A message of more takes as long as two of half as many, and its copies would be more memory.
constexpr int64_t kMessageBytes = int64_t{1} << 22;

int64_t operand_bytes(const Module& module, const Step& step) {
  int64_t bytes = 0;
  const OpView op(module, step.op);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    bytes += op.operand_type(i).size() * item_size(op.operand_type(i).dtype);
  }
  return bytes;
}

const CollectiveCall* small_reduction(const Module& module, const Step& step) {
  const auto* call = std::get_if<CollectiveCall>(&step.work);
  if (call == nullptr || call->kind != CollectiveKind::kAllReduce || call->order != nullptr) return nullptr;
  if (std::ranges::find(call->reduced, true) != call->reduced.end()) return nullptr;
  return operand_bytes(module, step) <= kSmallBytes ? call : nullptr;
}

// Orders steps without side effects, which may depend on each other.
class Scheduler {
 public:
  Scheduler(const Module& module, std::span<Step> steps) : module_(module), steps_(steps), users_(steps.size()) {
    missing_.resize(steps.size(), 0);
    std::unordered_map<uint32_t, size_t> makers;
    for (size_t i = 0; i < steps.size(); ++i) {
      for (uint32_t input : steps[i].inputs) {
        const auto maker = makers.find(input);
        // Made before these steps, in an earlier part or around the block.
        if (maker == makers.end()) continue;
        users_[maker->second].push_back(i);
        ++missing_[i];
      }
      for (uint32_t output : steps[i].outputs) makers[output] = i;
      if (missing_[i] == 0) add(i);
    }
  }

  void run(std::vector<Step>& ordered) {
    while (!ready_.empty() || !waiting_.empty()) {
      while (!ready_.empty()) {
        const size_t i = ready_.top();
        ready_.pop();
        place(i, ordered);
      }
      std::vector<size_t> reductions = std::move(waiting_);
      waiting_.clear();
      // In the order of the program, because all processes must send the same batches in the same order.
      std::ranges::sort(reductions);
      while (!reductions.empty()) place_batch(reductions, ordered);
    }
  }

 private:
  void add(size_t i) {
    if (small_reduction(module_, steps_[i]) != nullptr) {
      waiting_.push_back(i);
    } else {
      ready_.push(i);
    }
  }

  // Batches the first reduction with reductions along the same axes, up to the limit of one message.
  void place_batch(std::vector<size_t>& reductions, std::vector<Step>& ordered) {
    const AxisList axes = std::get<CollectiveCall>(steps_[reductions.front()].work).axes;
    int64_t bytes = 0;
    const auto others = std::ranges::stable_partition(reductions, [&](size_t i) {
      if (std::get<CollectiveCall>(steps_[i].work).axes != axes) return false;
      bytes += operand_bytes(module_, steps_[i]);
      return bytes <= kMessageBytes;
    });
    const std::vector<size_t> batch(reductions.begin(), others.begin());
    reductions.erase(reductions.begin(), others.begin());
    std::get<CollectiveCall>(steps_[batch.front()].work).together = batch.size();
    for (size_t i : batch) place(i, ordered);
  }

  void place(size_t i, std::vector<Step>& ordered) {
    ordered.push_back(std::move(steps_[i]));
    for (size_t user : users_[i]) {
      if (--missing_[user] == 0) add(user);
    }
  }

  const Module& module_;
  std::span<Step> steps_;
  std::vector<std::vector<size_t>> users_;
  std::vector<size_t> missing_;  // by step: inputs that are not made yet
  // The earliest step first: all but the reductions keep their order, and so their lifetimes in memory.
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready_;
  std::vector<size_t> waiting_;  // small reductions
};

void batch_reductions(const Module& module, std::span<const PlannedFunction> functions, Block& block) {
  std::vector<Step> steps = std::move(block.steps);
  block.steps.clear();
  for (size_t begin = 0; begin < steps.size();) {
    size_t end = begin;
    // A step with an effect divides the block: nothing moves across it.
    while (end < steps.size() && !has_effect(module, functions, steps[end])) ++end;
    Scheduler(module, std::span(steps).subspan(begin, end - begin)).run(block.steps);
    if (end < steps.size()) block.steps.push_back(std::move(steps[end++]));
    begin = end;
  }
  for (Step& step : block.steps) {
    for_each_block(step, [&](Block& inner) { batch_reductions(module, functions, inner); });
  }
}

}  // namespace

bool has_effect(const Module& module, std::span<const PlannedFunction> functions, const Step& step) {
  // The definition of a call does not know the function.
  if (const auto* call = std::get_if<Call>(&step.work)) return functions[call->function].has_effect;
  bool found = module.op(step.op).def->has_side_effect(OpView(module, step.op));
  for_each_block(step, [&](const Block& block) { found = found || has_effect(module, functions, block); });
  return found;
}

bool has_effect(const Module& module, std::span<const PlannedFunction> functions, const Block& block) {
  return std::ranges::any_of(block.steps, [&](const Step& step) { return has_effect(module, functions, step); });
}

void batch_reductions(const Module& module, Plan& plan) {
  batch_reductions(module, plan.functions, plan.main);
  for (PlannedFunction& function : plan.functions) batch_reductions(module, plan.functions, function.block);
}

}  // namespace shardwise
