// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/windows/windowed_times.h"

#include <unordered_set>
#include <utility>

#include "shardwise/analysis/live_bytes.h"
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
  Module take(std::vector<ValueId> results) {
    module_.region(builder_.region()).results = std::move(results);
    return std::move(module_);
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
  const auto time_of = [&](const Module& program) { return estimate_step(program, hardware_).estimate_ps; };
  const Module gathered = products(dot, true);
  Module fastest = loop(dot, Ring::kOneWay);
  WindowedTime time{.products_ps = time_of(products(dot, false)),
                    .gathered_ps = time_of(gathered),
                    .loop_ps = time_of(fastest),
                    .gathered_bytes = live_bytes(gathered).peak_bytes};
  if (has_ring(dot, Ring::kBothWays)) {
    Module both = loop(dot, Ring::kBothWays);
    const int64_t ps = time_of(both);
    if (ps < time.loop_ps) {
      time.loop_ps = ps;
      time.ring = Ring::kBothWays;
      fastest = std::move(both);
    }
  }
  time.loop_bytes = live_bytes(fastest).peak_bytes;
  return time;
}

Module WindowedTimes::loop(const WindowedDot& dot, Ring ring) const {
  ScratchProgram program(local_);
  WindowOperands operands = window_operands(local_, dot);
  if (dot.gathers) operands.shard = program.argument(operands.shard);
  for (ValueId& other : operands.others) other = program.argument(other);
  return program.take(build_windowed_dot(program.builder(), local_, dot, operands, ring));
}

Module WindowedTimes::products(const WindowedDot& dot, bool with_collective) const {
  ScratchProgram program(local_);
  const auto add_between = [&] {
    for (const OpId op : dot.between) program.add(op);
  };
  if (dot.gathers && with_collective) {
    program.add(dot.collective);
    add_between();
  }
  std::vector<ValueId> results;
  for (const WindowedDot::Product& product : dot.products) {
    program.add(product.op);
    results.push_back(program.image(local_.result(product.op)));
  }
  if (!dot.gathers && with_collective) {
    add_between();
    program.add(dot.collective);
    results = {program.image(local_.result(dot.collective))};
  }
  return program.take(std::move(results));
}

}  // namespace shardwise
