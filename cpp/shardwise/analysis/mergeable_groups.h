// SPDX-License-Identifier: Apache-2.0
//
// Groups of ops that grow and merge while no group waits for itself:
//
//   %0 = dot …             A
//   %1 = sort %0           B reads A
//   %2 = add %0, %1        C reads A and B. A and C do not merge: B would wait for the group, and the group for B.
//
// Each group has a place; it reads only groups of lower places. Two groups merge at the place of either of them, if this
// still holds then. They never merge if one reads the other's result from memory, as the sort does. A product does not
// wait for a transfer of what is computed behind it:
//
//   %0 = dot …             A
//   %1 = dot …             B
//   %2 = all_reduce %1     a transfer
//   %3 = add %0, %2        C reads A and the transfer. A and C do not merge: A would begin when the transfer is done.
//
// Batched products do, as of an attention, whose scores would be in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardwise {

// What a group is built around. kNothing: elementwise ops and row reductions alone.
enum class GroupCore : uint8_t { kNothing, kReduction, kProduct, kOther, kBorder };

struct GroupFacts {
  GroupCore core = GroupCore::kNothing;
  bool has_batch = false;  // its first product has
  bool reduces_rows = false;
  int products = 0;
  int64_t scores = 0;  // elements of the result of the first product
  // By the places where groups were added, from 1; 0: none.
  size_t core_place = 0;     // of what it is built around
  size_t transfer_read = 0;  // of the last group that a transfer waits for whose result it reads

  // A product, the reduction of its rows, and another product of them.
  bool is_attention() const { return products > 1 && reduces_rows; }
};

class MergeableGroups {
 public:
  using Id = uint32_t;

  Id add(GroupFacts facts);
  // The group that it is in by now.
  Id find(Id group);
  GroupFacts& facts(Id group) { return groups_[find(group)].facts; }
  size_t place(Id group) { return groups_[find(group)].place; }
  void add_read(Id reader, Id read, bool is_from_memory);
  // Whether they are one group now. Two products merge only if `joins_products`.
  bool merge(Id a, Id b, bool joins_products);
  // Neighbors looked at or copied so far: linear in the groups and reads, but for a logarithm.
  int64_t steps() const { return steps_; }

 private:
  struct Neighbors {
    std::vector<Id> ids;  // with repetitions
    size_t distinct = 0;  // when these were dropped the last time
  };
  struct Group {
    Id parent;
    size_t place;
    GroupFacts facts;
    Neighbors reads, readers;
    Neighbors apart;  // of the reads and readers, those through memory
  };
  void drop_repeated(Id group, Neighbors& list);
  void append(Id group, Neighbors& list, Neighbors& more);
  bool are_apart(Id a, Id b);
  bool may_rise(Id low, Id high);
  bool may_sink(Id low, Id high);

  std::vector<Group> groups_;
  int64_t steps_ = 0;
};

}  // namespace shardwise
