// SPDX-License-Identifier: Apache-2.0
//
// Edits a module in place:
//
//   Rewrite rewrite(module);
//   const ValueId b = rewrite.insert(rewrite.behind(a), rewrite.loc(a), [&](Builder& builder) {
//     return builder.create("stablehlo.exponential", {a});                 //  %a = tanh %0       %a = tanh %0
//   });                                                                    //  %2 = add %a, %a    %b = exponential %a
//   rewrite.replace(a, b, module.value(b).op);                             //                     %2 = add %b, %b
//
// Uses change at once, those in regions and the results of regions included. Lists of ops change on commit, in linear
// time however many edits there are: until then a walk sees the ops that were there. The destructor commits.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/value_names.h"

namespace shardwise {

// The ops to edit, found before the first edit: it may replace ops that a walk would still visit.
template <Order order = Order::kOpFirst, class Test>
std::vector<OpId> find_ops(const Module& module, Test&& test) {
  std::vector<OpId> found;
  walk<order>(module, [&](OpId op) {
    if (test(op)) found.push_back(op);
  });
  return found;
}

// A place in a region: in front of `next`, or at the end. It holds until `next` moves or goes.
struct Cursor {
  RegionId region;
  OpId next;
};

class Rewrite {
 public:
  explicit Rewrite(Module& module) : module_(module) {}
  Rewrite(const Rewrite&) = delete;
  Rewrite& operator=(const Rewrite&) = delete;
  ~Rewrite() { commit(); }

  Cursor before(OpId op) const { return {module_.op(op).parent, op}; }
  Cursor after(OpId op);
  Cursor begin(RegionId region);
  Cursor end(RegionId region) const { return {region, {}}; }
  Cursor behind(ValueId value);  // its op, or at the beginning of the region whose argument it is
  LocId loc(ValueId value) const { return loc_of(module_, value); }

  // Moves what `make(Builder&)` appends to the cursor's region to the cursor, in order, and returns its result.
  template <class Make>
  auto insert(Cursor at, LocId loc, Make&& make) {
    list_uses();
    const size_t known = module_.region(at.region).ops.size();
    Builder builder(module_, at.region, loc);
    auto made = make(builder);
    take_appended(at, known);
    return made;
  }
  void move(OpId op, Cursor to);
  void move_ops(RegionId from, Cursor to);  // all of them; the results of `from` stay as they are

  void replace(ValueId value, ValueId by, OpId except = {});  // all uses, but those of the op `except`
  // The uses for which replaces(Use) holds.
  template <class Replaces>
  void replace_if(ValueId value, ValueId by, Replaces&& replaces) {
    const UseRange uses = module_.uses(value);
    for (auto next = uses.begin(); next != uses.end();) {
      const Use use = *next++;  // which leaves the list
      if (!replaces(use)) continue;
      use.op ? module_.set_operand(use.op, use.index, by) : module_.set_region_result(use.region, use.index, by);
    }
  }
  void replace(OpId op, std::span<const ValueId> by);  // all results, and the op is erased
  void hand_over(ValueId value, ValueId by);           // the same; `by` gets its sharding, origin and part
  void erase(OpId op);                                 // with its regions; nothing may use it when it is done
  bool is_erased(OpId op) const { return op.index < erased_.size() && erased_[op.index]; }

  void commit();                 // all regions
  void commit(RegionId region);  // this one, not those inside it
  void commit_inside(OpId op);   // the regions of the op, and all regions inside them

 private:
  struct Links {
    OpId next, prev;
  };
  struct Ends {
    OpId first, last;
    size_t linked = 0;  // of the ops in Region::ops, which may grow at its end
  };
  void list_uses() { module_.uses({}); }  // before the first edit: afterwards a walk does not see all ops
  Ends& linked(RegionId region);
  void link(OpId op, Cursor at);
  void unlink(OpId op);
  void take_appended(Cursor at, size_t known);

  Module& module_;
  std::vector<Links> links_;                 // by op, of regions in ends_
  std::unordered_map<RegionId, Ends> ends_;  // regions whose order changes
  std::vector<bool> erased_;                 // by op
  std::unordered_set<RegionId> shrunk_;      // other regions that have lost ops
};

}  // namespace shardwise
