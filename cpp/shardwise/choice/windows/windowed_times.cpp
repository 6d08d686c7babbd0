// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/windows/windowed_times.h"

#include <unordered_set>
#include <utility>

#include "shardwise/analysis/step_estimate.h"
#include "shardwise/ir/rewrite/graph_copy.h"

namespace shardwise {
namespace {

// A program of one device in which values of another one are arguments.
class ScratchProgram {
 public:
  explicit ScratchProgram(const Module& local)
      : local_(local), module_(empty_copy(local)), builder_(module_, module_.main().body), copy_(local, module_) {}

  Builder& builder() { return builder_; }
  ValueId argument(ValueId like) {
    if (!is_made_.insert(like).second) return copy_(like);
    const ValueId made = module_.add_argument(builder_.region(), local_.value(like).type);
    copy_.map(like, made);
    return made;
  }
  // The op on what its operands have become; on arguments where they have not been made.
  void add(OpId op) {
    for (const ValueId operand : local_.operands(op)) argument(operand);
    copy_.op(op, builder_.region());
    is_made_.insert(local_.result(op));
  }
  int64_t estimate_ps(std::vector<ValueId> results, const Hardware& hardware) {
    module_.region(builder_.region()).results = std::move(results);
    return estimate_step(module_, hardware).estimate_ps;
  }
  ValueId image(ValueId value) const { return copy_(value); }

 private:
  const Module& local_;
  Module module_;
  Builder builder_;
  GraphCopy copy_;
  std::unordered_set<ValueId> is_made_;  // of the other program
};

}  // namespace

const WindowedTime& WindowedTimes::of(const WindowedDot& dot) {
  std::vector<uint64_t> key{local_.op(dot.collective).attrs.index, dot.gathers ? 1u : 0u};
  const auto add_types = [&](OpId op) {
    for (const ValueId operand : local_.operands(op)) key.push_back(local_.value(operand).type.index);
    key.push_back(local_.value(local_.result(op)).type.index);
  };
  add_types(dot.collective);
  for (const WindowedDot::Product& product : dot.products) {
    key.push_back(local_.op(product.op).attrs.index);
    key.push_back(product.gathers_lhs ? 1 : 0);
    add_types(product.op);
  }
  const auto [found, is_new] = known_.try_emplace(std::move(key));
  if (is_new) found->second = timed(dot);
  return found->second;
}

WindowedTime WindowedTimes::timed(const WindowedDot& dot) const {
  WindowedTime time{.products_ps = products_ps(dot, false),
                    .gathered_ps = products_ps(dot, true),
                    .loop_ps = loop_ps(dot, Ring::kOneWay)};
  if (!has_ring(dot, Ring::kBothWays)) return time;
  const int64_t both = loop_ps(dot, Ring::kBothWays);
  if (both < time.loop_ps) time.loop_ps = both, time.ring = Ring::kBothWays;
  return time;
}

int64_t WindowedTimes::loop_ps(const WindowedDot& dot, Ring ring) const {
  ScratchProgram program(local_);
  WindowOperands operands = window_operands(local_, dot);
  if (dot.gathers) operands.shard = program.argument(operands.shard);
  for (ValueId& other : operands.others) other = program.argument(other);
  return program.estimate_ps(build_windowed_dot(program.builder(), local_, dot, operands, ring), hardware_);
}

int64_t WindowedTimes::products_ps(const WindowedDot& dot, bool with_collective) const {
  ScratchProgram program(local_);
  const auto add_collective = [&] {
    if (!with_collective) return;
    if (dot.gathers) program.add(dot.collective);
    for (const OpId op : dot.between) program.add(op);
    if (!dot.gathers) program.add(dot.collective);
  };
  if (dot.gathers) add_collective();
  std::vector<ValueId> results;
  for (const WindowedDot::Product& product : dot.products) {
    program.add(product.op);
    results.push_back(program.image(local_.result(product.op)));
  }
  if (!dot.gathers) add_collective();
  if (!dot.gathers && with_collective) results = {program.image(local_.result(dot.collective))};
  return program.estimate_ps(std::move(results), hardware_);
}

}  // namespace shardwise
