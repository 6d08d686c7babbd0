// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/rewrite.h"

#include "shardwise/base/error.h"

namespace shardwise {

Cursor Rewrite::after(OpId op) {
  const RegionId region = module_.op(op).parent;
  linked(region);
  return {region, links_[op.index].next};
}

Cursor Rewrite::begin(RegionId region) { return {region, linked(region).first}; }

Cursor Rewrite::behind(ValueId value) {
  const Value& made = module_.value(value);
  return made.op ? after(made.op) : begin(made.region);
}

// The ops of a region as a list. What was appended to the region since the last call joins it.
Rewrite::Ends& Rewrite::linked(RegionId region) {
  list_uses();
  Ends& ends = ends_[region];
  const std::vector<OpId>& ops = module_.region(region).ops;
  if (links_.size() < module_.op_count()) links_.resize(module_.op_count());
  for (; ends.linked < ops.size(); ++ends.linked) {
    const OpId op = ops[ends.linked];
    // Erased while the region had no links: the op is still in its list.
    if (is_erased(op)) continue;
    links_[op.index] = {.next = {}, .prev = ends.last};
    (ends.last ? links_[ends.last.index].next : ends.first) = op;
    ends.last = op;
  }
  return ends;
}

void Rewrite::link(OpId op, Cursor at) {
  Ends& ends = linked(at.region);
  const OpId prev = at.next ? links_[at.next.index].prev : ends.last;
  links_[op.index] = {.next = at.next, .prev = prev};
  (prev ? links_[prev.index].next : ends.first) = op;
  (at.next ? links_[at.next.index].prev : ends.last) = op;
  module_.op(op).parent = at.region;
}

void Rewrite::unlink(OpId op) {
  Ends& ends = linked(module_.op(op).parent);
  const auto [next, prev] = links_[op.index];
  (prev ? links_[prev.index].next : ends.first) = next;
  (next ? links_[next.index].prev : ends.last) = prev;
}

// They are linked at the end of the region first.
void Rewrite::take_appended(Cursor at, size_t known) {
  // They leave Region::ops, which must keep the old order until commit, and are cut from the end of the links.
  std::vector<OpId>& ops = module_.region(at.region).ops;
  if (ops.size() == known) return;
  Ends& ends = linked(at.region);
  const OpId first = ops[known], last = ends.last;
  ops.resize(known);
  ends.linked = known;
  if (!at.next) return;
  // `first` … `last` is the tail of the list. It is taken off and put between `prev` and `at.next`.
  ends.last = links_[first.index].prev;
  links_[ends.last.index].next = {};
  const OpId prev = links_[at.next.index].prev;
  links_[first.index].prev = prev;
  links_[last.index].next = at.next;
  (prev ? links_[prev.index].next : ends.first) = first;
  links_[at.next.index].prev = last;
}

void Rewrite::move(OpId op, Cursor to) {
  // Unlinking first would remove the place to move to.
  if (to.next == op) return;
  unlink(op);
  link(op, to);
}

void Rewrite::move_ops(RegionId from, Cursor to) {
  list_uses();
  commit(from);
  std::vector<OpId> ops;
  ops.swap(module_.region(from).ops);
  for (const OpId op : ops) link(op, to);
}

void Rewrite::replace(ValueId value, ValueId by, OpId except) {
  if (value != by) replace_if(value, by, [&](const Use& use) { return !use.op || use.op != except; });
}

void Rewrite::replace(OpId op, std::span<const ValueId> by) {
  check_internal(by.size() == module_.op(op).result_count, "each result of an op that goes is replaced");
  for (uint32_t i = 0; i < by.size(); ++i) replace(module_.result(op, i), by[i]);
  erase(op);
}

void Rewrite::hand_over(ValueId value, ValueId by) {
  module_.value(by).sharding = module_.value(value).sharding;
  module_.value(by).origin = module_.value(value).origin;
  // set_part makes the whole column, which most modules do not have.
  if (module_.part(value) != GlobalPart{}) module_.set_part(by, module_.part(value));
  replace(value, by);
}

void Rewrite::erase(OpId op) {
  // drop_uses reads Region::ops, which must be complete.
  commit_inside(op);
  list_uses();
  module_.drop_uses(op);
  const RegionId region = module_.op(op).parent;
  if (ends_.contains(region)) {
    unlink(op);
  } else {
    // A region that only loses ops needs no links: commit filters its list.
    shrunk_.insert(region);
  }
  if (erased_.size() < module_.op_count()) erased_.resize(module_.op_count());
  erased_[op.index] = true;
}

void Rewrite::commit(RegionId region) {
  std::vector<OpId>& ops = module_.region(region).ops;
  if (ends_.contains(region)) {
    OpId op = linked(region).first;
    ops.clear();
    for (; op; op = links_[op.index].next) ops.push_back(op);
    ends_.erase(region);
  } else if (shrunk_.contains(region)) {
    std::erase_if(ops, [&](OpId op) { return is_erased(op); });
  }
  shrunk_.erase(region);
}

void Rewrite::commit_inside(OpId op) {
  for (const RegionId region : module_.regions(op)) {
    // From the outside in: the list of the outer region then holds the ops that own the inner ones.
    commit(region);
    for (const OpId inner : module_.region(region).ops) commit_inside(inner);
  }
}

void Rewrite::commit() {
  while (!ends_.empty()) commit(ends_.begin()->first);
  while (!shrunk_.empty()) commit(*shrunk_.begin());
}

}  // namespace shardwise
