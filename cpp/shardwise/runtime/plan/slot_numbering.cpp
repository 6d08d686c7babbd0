// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan/slot_numbering.h"

#include <algorithm>
#include <span>
#include <unordered_set>

namespace shardwise {
namespace {

constexpr uint32_t kNoSlot = UINT32_MAX;

// The workspaces of longer chains are too large to keep, and take little of their time.
constexpr int64_t kKeptLanes = 512;

using SlotSpan = std::span<const uint32_t>;

class SlotNumbering {
 public:
  SlotNumbering(const Module& module, const Variation& variation, Plan& plan)
      : variation_(variation), plan_(plan), slot_by_value_(module.value_count(), kNoSlot) {}

  void number(std::vector<uint32_t>& values) {
    for (uint32_t& value : values) value = slot_of(value);
  }

  void number(Block& block, bool is_repeated) {
    for (Step& step : block.steps) {
      number(step.inputs);
      number(step.outputs);
      if (auto* loop = std::get_if<Loop>(&step.work); loop != nullptr && loop->rows) {
        for (ScanRows::Read& read : loop->rows->reads) {
          read.from = slot_of(read.from);
          read.to = slot_of(read.to);
          if (read.border) read.border = slot_of(*read.border);
        }
      }
      // A chain that runs many times keeps its workspace; main runs once.
      const bool repeats = is_repeated || std::holds_alternative<Loop>(step.work);
      for_each_block(step, [&](Block& inner) { number(inner, repeats); });
      auto* chain = std::get_if<FusedChain>(&step.work);
      const bool is_short = chain != nullptr && chain->lanes > 0 && chain->lanes <= kKeptLanes;
      if (is_repeated && is_short) chain->runner = plan_.runners++;
    }
    number(block.results);
  }

  void find_dead() {
    owner_.resize(plan_.slots.size(), 0);
    used_later_.resize(plan_.slots.size(), false);
    find_dead(plan_.main, plan_.arguments, {});
    plan_.main.dead.clear();  // the caller holds its arguments anyway
    for (PlannedFunction& function : plan_.functions) find_dead(function.block, function.arguments, {});
  }

 private:
  uint32_t slot_of(uint32_t value) {
    uint32_t& slot = slot_by_value_[value];
    if (slot == kNoSlot) {
      slot = static_cast<uint32_t>(plan_.slots.size());
      plan_.slots.push_back(ValueId{value});
      plan_.slot_varying.push_back(variation_.varying[value]);
      plan_.slot_axes.push_back(variation_.digits.axes(variation_.varying[value]));
    }
    return slot;
  }

  // `given` are slots that the block may free although it did not make them, `to` those of what it returns.
  void find_dead(Block& block, SlotSpan given, SlotSpan to) {
    ++block_;
    own(given);
    for (const Step& step : block.steps) own(step.outputs);
    for (uint32_t result : block.results) used_later_[result] = true;
    // Backward, so that the first use found is the last use in the run, after which the slot is dead.
    for (size_t i = block.steps.size(); i-- > 0;) {
      Step& step = block.steps[i];
      // Outputs first: one that nothing reads later is dead at once, and is listed once even if it is an input as well.
      for (const auto* slots : {&step.outputs, &step.inputs}) {
        for (uint32_t slot : *slots) use(slot, step.dead);
      }
      if (auto* loop = std::get_if<Loop>(&step.work)) loop->enter = moves_into(step, carries(step, *loop));
      if (auto* call = std::get_if<Call>(&step.work)) add_moves(step, *call);
    }
    for (uint32_t slot : given) use(slot, block.dead);
    block.moves = moves_between(block, given, to);
    for (Step& step : block.steps) find_dead_inside(step);
  }

  void find_dead_inside(Step& step) {
    if (auto* loop = std::get_if<Loop>(&step.work)) {
      find_dead(loop->condition, {}, {});  // the body reads the carries after it
      find_dead_in_body(step, *loop);
    }
    auto* branches = std::get_if<Branches>(&step.work);
    if (branches == nullptr) return;
    std::vector<uint32_t> last;  // one branch runs, once
    for (uint32_t slot : step.dead) {
      // An output that nothing reads is dead after the step, but the branches still write it.
      if (contains(step.inputs, slot)) last.push_back(slot);
    }
    for (Block& branch : branches->blocks) find_dead(branch, last, step.outputs);
  }

  static SlotSpan carries(const Step& step, const Loop& loop) { return SlotSpan(step.outputs).first(loop.carries); }

  // The body may free the carries and the rows that it reads.
  void find_dead_in_body(const Step& step, Loop& loop) {
    std::vector<uint32_t> given(carries(step, loop).begin(), carries(step, loop).end());
    if (!loop.rows) return find_dead(loop.body, given, given);
    for (const ScanRows::Read& read : loop.rows->reads) given.push_back(read.to);
    find_dead(loop.body, given, carries(step, loop));
    std::unordered_set<uint32_t> own(given.begin() + static_cast<std::ptrdiff_t>(loop.carries), given.end());
    for (const Step& inner : loop.body.steps) own.insert(inner.outputs.begin(), inner.outputs.end());
    const SlotSpan next = SlotSpan(loop.body.results).first(loop.carries),
                   rows = SlotSpan(loop.body.results).subspan(loop.carries);
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool is_last = own.contains(rows[i]) && !contains(next, rows[i]) && !contains(rows.subspan(i + 1), rows[i]);
      loop.rows->writes.push_back({rows[i], step.outputs[loop.carries + i], is_last});
    }
  }

  void own(SlotSpan slots) {
    for (uint32_t slot : slots) {
      owner_[slot] = block_;
      used_later_[slot] = false;
    }
  }

  void use(uint32_t slot, std::vector<uint32_t>& dead) {
    // A slot of another block is a capture: a loop reads it again in the next trip.
    if (owner_[slot] == block_ && !used_later_[slot]) dead.push_back(slot);
    used_later_[slot] = true;
  }

  static bool contains(SlotSpan slots, uint32_t slot) { return std::ranges::find(slots, slot) != slots.end(); }

  // From the first inputs of a loop or call.
  static std::vector<Move> moves_into(const Step& step, SlotSpan to) {
    std::vector<Move> moves;
    const SlotSpan inputs(step.inputs);
    for (size_t i = 0; i < to.size(); ++i) {
      // f(x, x): the first move must leave the value for the second one.
      const bool is_last = contains(step.dead, inputs[i]) && !contains(inputs.subspan(i + 1), inputs[i]);
      moves.push_back({inputs[i], to[i], is_last});
    }
    return moves;
  }

  // Results are read only by the call, so they can be moved out.
  void add_moves(const Step& step, Call& call) const {
    const PlannedFunction& function = plan_.functions[call.function];
    call.enter = moves_into(step, function.arguments);
    const SlotSpan results(function.block.results);
    for (size_t i = 0; i < results.size(); ++i) {
      call.leave.push_back({results[i], step.outputs[i], !contains(results.subspan(i + 1), results[i])});
    }
  }

  // A value that the block made, or may free, moves. The rest are captures.
  static std::vector<Move> moves_between(const Block& block, SlotSpan given, SlotSpan to) {
    const SlotSpan from = SlotSpan(block.results).first(to.size());
    std::unordered_set<uint32_t> own(given.begin(), given.end());
    for (const Step& step : block.steps) own.insert(step.outputs.begin(), step.outputs.end());
    const auto stays = [&](uint32_t slot) {  // a carry that is returned as it is
      const auto i = static_cast<size_t>(std::ranges::find(to, slot) - to.begin());
      return i < to.size() && from[i] == slot;
    };
    std::vector<Move> moves;
    for (size_t i = 0; i < to.size(); ++i) {
      // A carry that the body returns unchanged is in its slot already.
      if (from[i] == to[i]) continue;
      const bool is_last = own.contains(from[i]) && !stays(from[i]) && !contains(from.subspan(i + 1), from[i]);
      moves.push_back({from[i], to[i], is_last});
    }
    return moves;
  }

  const Variation& variation_;
  Plan& plan_;
  std::vector<uint32_t> slot_by_value_;
  std::vector<uint32_t> owner_;   // by slot: the last visited block that assigns it
  std::vector<bool> used_later_;  // by slot, in that block
  uint32_t block_ = 0;
};

}  // namespace

void number_slots(const Module& module, const Variation& variation, Plan& plan) {
  SlotNumbering numbering(module, variation, plan);
  for (ValueId argument : module.region(module.main().body).arguments) plan.arguments.push_back(argument.index);
  numbering.number(plan.arguments);
  numbering.number(plan.main, false);
  for (PlannedFunction& function : plan.functions) {
    numbering.number(function.arguments);
    // A function may be called many times, as the body of a loop runs many times.
    numbering.number(function.block, true);
  }
  numbering.find_dead();
}

}  // namespace shardwise
