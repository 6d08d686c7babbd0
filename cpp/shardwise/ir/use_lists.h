// SPDX-License-Identifier: Apache-2.0
//
// The uses of each value: operands of ops, and results of regions. Module builds the lists at the first edit and then
// keeps them up to date (Module::uses, set_operand, set_region_result, append_op).
//
//   %1 = add %0, %0        uses of %0: {add, operand 0}, {add, operand 1}
//   return %1              uses of %1: {main's region, result 0}
//
// Doubly linked lists through one node per operand, 12 bytes each: linking and unlinking are O(1).
#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include "shardwise/ir/graph.h"
#include "shardwise/ir/ids.h"

namespace shardwise {

struct Use {
  OpId op = {};          // the user; none where a region returns the value
  RegionId region = {};  // then that region
  uint32_t index = 0;    // which operand of the op, or which result of the region
};

class UseLists {
 public:
  explicit UseLists(const Graph& graph);  // of what its functions hold

  void add(const Graph& graph, OpId op);     // with the results of its regions, whose ops are in the lists already
  void remove(const Graph& graph, OpId op);  // with all that is in its regions
  void set_operand(const Graph& graph, OpId op, uint32_t index, ValueId value);  // before the operand changes
  void set_region_result(const Graph& graph, RegionId region, uint32_t index, ValueId value);

  // A list is followed from its first use; kEnd is past the last.
  static constexpr uint32_t kEnd = UINT32_MAX;
  uint32_t first(ValueId value) const { return value.index < heads_.size() ? heads_[value.index] : kEnd; }
  uint32_t next(uint32_t use) const { return node(use).next; }
  Use use(const Graph& graph, uint32_t use) const;

 private:
  struct Node {
    uint32_t user = 0;  // the op; of a region's result, its place in result_uses_. 0: in no list
    uint32_t next = kEnd, prev = kEnd;
  };
  static constexpr uint32_t kResult = 1U << 31;  // marks the uses that are results of regions

  const Node& node(uint32_t use) const { return (use & kResult) != 0 ? results_[use & ~kResult] : operands_[use]; }
  Node& node(uint32_t use) { return const_cast<Node&>(static_cast<const UseLists&>(*this).node(use)); }
  void add_all(const Graph& graph, RegionId region);
  void add_missing(const Graph& graph, RegionId region);
  void add_operands(const Graph& graph, OpId op);
  void add_results(const Graph& graph, RegionId region);
  void link(uint32_t use, ValueId value);
  void unlink(uint32_t use, ValueId value);

  std::vector<uint32_t> heads_;         // by value
  std::vector<Node> operands_;          // by place in the graph's pool of operands
  std::vector<Node> results_;           // of regions
  std::vector<Use> result_uses_;        // as results_
  std::vector<uint32_t> result_begin_;  // by region, into results_; kEnd: not in the lists
};

// The uses of one value, in no particular order. An edit may replace the use that the iterator has just left, no other.
class UseRange {
 public:
  class Iterator {
   public:
    using value_type = Use;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const Graph& graph, const UseLists& lists, uint32_t use) : graph_(&graph), lists_(&lists), use_(use) {}
    Use operator*() const { return lists_->use(*graph_, use_); }
    Iterator& operator++() {
      use_ = lists_->next(use_);
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.use_ == b.use_; }

   private:
    const Graph* graph_ = nullptr;
    const UseLists* lists_ = nullptr;
    uint32_t use_ = UseLists::kEnd;
  };

  UseRange(const Graph& graph, const UseLists& lists, ValueId value)
      : begin_(graph, lists, lists.first(value)), end_(graph, lists, UseLists::kEnd) {}
  Iterator begin() const { return begin_; }
  Iterator end() const { return end_; }
  bool empty() const { return begin_ == end_; }

 private:
  Iterator begin_, end_;
};

}  // namespace shardwise
