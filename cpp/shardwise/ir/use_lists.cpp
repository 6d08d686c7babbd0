// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/use_lists.h"

#include "shardwise/base/error.h"

namespace shardwise {

UseLists::UseLists(const Graph& graph) {
  heads_.assign(graph.value_count(), kEnd);
  operands_.resize(graph.operand_pool().size());
  result_begin_.assign(graph.region_count(), kEnd);
  for (const Function& function : graph.functions) add_all(graph, function.body);
}

void UseLists::add_all(const Graph& graph, RegionId region) {
  for (const OpId op : graph.region(region).ops) {
    add_operands(graph, op);
    for (const RegionId inner : graph.regions(op)) add_all(graph, inner);
  }
  add_results(graph, region);
}

// The op is new, but its regions may have been filled before the lists existed.
void UseLists::add(const Graph& graph, OpId op) {
  operands_.resize(graph.operand_pool().size());
  add_operands(graph, op);
  for (const RegionId region : graph.regions(op)) add_missing(graph, region);
}

// A region may have been made before the lists.
void UseLists::add_missing(const Graph& graph, RegionId region) {
  for (const OpId op : graph.region(region).ops) {
    const Operation& operation = graph.op(op);
    if (operation.operand_count != 0 && operands_[operation.operand_begin].user == 0) add_operands(graph, op);
    for (const RegionId inner : graph.regions(op)) {
      if (result_begin_.size() <= inner.index || result_begin_[inner.index] == kEnd) add_missing(graph, inner);
    }
  }
  add_results(graph, region);
}

void UseLists::add_operands(const Graph& graph, OpId op) {
  uint32_t use = graph.op(op).operand_begin;
  for (const ValueId operand : graph.operands(op)) {
    operands_[use].user = op.index;
    link(use++, operand);
  }
}

void UseLists::add_results(const Graph& graph, RegionId region) {
  if (result_begin_.size() <= region.index) result_begin_.resize(graph.region_count(), kEnd);
  result_begin_[region.index] = static_cast<uint32_t>(results_.size());
  uint32_t index = 0;
  for (const ValueId result : graph.region(region).results) {
    const auto place = static_cast<uint32_t>(results_.size());
    // Not 0, which marks a node in no list.
    results_.push_back({.user = place + 1});
    // The results of a region are consecutive: result_begin_ and the index give the node.
    result_uses_.push_back({.op = {}, .region = region, .index = index++});
    link(place | kResult, result);
  }
}

void UseLists::remove(const Graph& graph, OpId op) {
  uint32_t use = graph.op(op).operand_begin;
  for (const ValueId operand : graph.operands(op)) unlink(use++, operand);
  for (const RegionId region : graph.regions(op)) {
    for (const OpId inner : graph.region(region).ops) remove(graph, inner);
    const uint32_t begin = result_begin_[region.index];
    if (begin == kEnd) continue;
    uint32_t place = begin | kResult;
    for (const ValueId result : graph.region(region).results) unlink(place++, result);
    result_begin_[region.index] = kEnd;
  }
}

void UseLists::set_operand(const Graph& graph, OpId op, uint32_t index, ValueId value) {
  const uint32_t use = graph.op(op).operand_begin + index;
  // In no list: the op was removed, or it is in a region that no function holds yet.
  if (operands_[use].user == 0) return;
  unlink(use, graph.operands(op)[index]);
  operands_[use].user = op.index;
  link(use, value);
}

void UseLists::set_region_result(const Graph& graph, RegionId region, uint32_t index, ValueId value) {
  if (result_begin_.size() <= region.index || result_begin_[region.index] == kEnd) return;
  const uint32_t place = result_begin_[region.index] + index;
  // Results must not be added or removed once the lists exist: the nodes of the next region would be taken.
  check_internal(place < results_.size() && result_uses_[place].region == region, "a region has lost a result");
  unlink(place | kResult, graph.region(region).results[index]);
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

Use UseLists::use(const Graph& graph, uint32_t use) const {
  if ((use & kResult) != 0) return result_uses_[use & ~kResult];
  const OpId op{operands_[use].user};
  return {.op = op, .region = {}, .index = use - graph.op(op).operand_begin};
}

}  // namespace shardwise
