// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/use_lists.h"

#include "shardwise/base/error.h"
#include "shardwise/ir/module.h"

namespace shardwise {

UseLists::UseLists(const Module& module) {
  heads_.assign(module.value_count(), kEnd);
  operands_.resize(module.operand_pool().size());
  result_begin_.assign(module.region_count(), kEnd);
  for (const Function& function : module.functions) add_all(module, function.body);
}

void UseLists::add_all(const Module& module, RegionId region) {
  for (const OpId op : module.region(region).ops) {
    add_operands(module, op);
    for (const RegionId inner : module.regions(op)) add_all(module, inner);
  }
  add_results(module, region);
}

// The op is new, but its regions may have been filled before the lists existed.
void UseLists::add(const Module& module, OpId op) {
  operands_.resize(module.operand_pool().size());
  add_operands(module, op);
  for (const RegionId region : module.regions(op)) add_missing(module, region);
}

// A region may have been made before the lists.
void UseLists::add_missing(const Module& module, RegionId region) {
  for (const OpId op : module.region(region).ops) {
    const Operation& operation = module.op(op);
    if (operation.operand_count != 0 && operands_[operation.operand_begin].user == 0) add_operands(module, op);
    for (const RegionId inner : module.regions(op)) {
      if (result_begin_.size() <= inner.index || result_begin_[inner.index] == kEnd) add_missing(module, inner);
    }
  }
  add_results(module, region);
}

void UseLists::add_operands(const Module& module, OpId op) {
  uint32_t use = module.op(op).operand_begin;
  for (const ValueId operand : module.operands(op)) {
    operands_[use].user = op.index;
    link(use++, operand);
  }
}

void UseLists::add_results(const Module& module, RegionId region) {
  if (result_begin_.size() <= region.index) result_begin_.resize(module.region_count(), kEnd);
  result_begin_[region.index] = static_cast<uint32_t>(results_.size());
  uint32_t index = 0;
  for (const ValueId result : module.region(region).results) {
    const auto place = static_cast<uint32_t>(results_.size());
    // Not 0, which marks a node in no list.
    results_.push_back({.user = place + 1});
    // The results of a region are consecutive: result_begin_ and the index give the node.
    result_uses_.push_back({.op = {}, .region = region, .index = index++});
    link(place | kResult, result);
  }
}

void UseLists::remove(const Module& module, OpId op) {
  uint32_t use = module.op(op).operand_begin;
  for (const ValueId operand : module.operands(op)) unlink(use++, operand);
  for (const RegionId region : module.regions(op)) {
    for (const OpId inner : module.region(region).ops) remove(module, inner);
    const uint32_t begin = result_begin_[region.index];
    if (begin == kEnd) continue;
    uint32_t place = begin | kResult;
    for (const ValueId result : module.region(region).results) unlink(place++, result);
    result_begin_[region.index] = kEnd;
  }
}

void UseLists::set_operand(const Module& module, OpId op, uint32_t index, ValueId value) {
  const uint32_t use = module.op(op).operand_begin + index;
  // In no list: the op was removed, or it is in a region that no function holds yet.
  if (operands_[use].user == 0) return;
  unlink(use, module.operands(op)[index]);
  operands_[use].user = op.index;
  link(use, value);
}

void UseLists::set_region_result(const Module& module, RegionId region, uint32_t index, ValueId value) {
  if (result_begin_.size() <= region.index || result_begin_[region.index] == kEnd) return;
  const uint32_t place = result_begin_[region.index] + index;
  // Results must not be added or removed once the lists exist: the nodes of the next region would be taken.
  check_internal(place < results_.size() && result_uses_[place].region == region, "a region has lost a result");
  unlink(place | kResult, module.region(region).results[index]);
  results_[place].user = place + 1;
  link(place | kResult, value);
}

void UseLists::link(uint32_t use, ValueId value) {
  if (heads_.size() <= value.index) heads_.resize(value.index + 1, kEnd);
  uint32_t& head = heads_[value.index];
  Node& added = node(use);
  added.prev = kEnd;
  // At the front, in constant time. The order of uses means nothing.
  added.next = head;
  if (head != kEnd) node(head).prev = use;
  head = use;
}

void UseLists::unlink(uint32_t use, ValueId value) {
  Node& removed = node(use);
  // remove() also visits ops of regions that were never added.
  if (removed.user == 0) return;
  if (removed.prev == kEnd) {
    heads_[value.index] = removed.next;
  } else {
    node(removed.prev).next = removed.next;
  }
  if (removed.next != kEnd) node(removed.next).prev = removed.prev;
  removed = {};
}

Use UseLists::use(const Module& module, uint32_t use) const {
  if ((use & kResult) != 0) return result_uses_[use & ~kResult];
  const OpId op{operands_[use].user};
  return {.op = op, .region = {}, .index = use - module.op(op).operand_begin};
}

}  // namespace shardwise
