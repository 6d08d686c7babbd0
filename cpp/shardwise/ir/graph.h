// SPDX-License-Identifier: Apache-2.0
//
// The SSA graph: ops, values and regions in contiguous arrays, addressed by 32-bit ids.
//
//   func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
//     %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
//     return %0 : tensor<4xf32>
//   }
//
// This text is one Function whose body Region has arguments {%arg0}, ops {add} and results {%0}. A region is a single
// block, and the operands of its terminator are the region's `results`, so there are no terminator ops. A value's
// sharding is a column of the value (`#sdy.sharding` on arguments and ops, the sharding of a constraint or reshard), so
// it exists only once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/ir/ids.h"

namespace shardwise {

struct OpDef;

struct Value {
  TypeId type = {};
  ShardingId sharding = {};
  OpId op = {};          // the defining op, or none for a region argument
  RegionId region = {};  // for an argument: its region
  uint32_t index = 0;    // which result or argument
  LocId loc = {};  // for an argument: its name and place; for a result: only if it is another one than that of its op
  ValueId origin = {};  // the value of the traced module that this one holds (mark_origins), or none
};

struct Operation {
  const OpDef* def = nullptr;
  AttrsId attrs;
  LocId loc;
  OpId origin = {};  // the op of the traced module that this one was made for, or none
  RegionId parent;
  uint32_t operand_begin = 0, operand_count = 0;
  uint32_t first_result = 0, result_count = 0;  // results are consecutive values
  uint32_t region_begin = 0, region_count = 0;
};

struct Region {
  std::vector<ValueId> arguments;
  std::vector<OpId> ops;
  std::vector<ValueId> results;
  OpId op;  // owner, or none for a function body
};

// As written. A function without visibility is public, too.
enum class Visibility : uint8_t { kUnspecified, kPublic, kPrivate, kNested };

struct Function {
  std::string name;
  Visibility visibility = Visibility::kPublic;
  RegionId body;
  std::vector<ShardingId> result_shardings;  // one per result; none where not given
  std::vector<LocId> result_locs = {};       // if the text has them; empty: unknown

  bool is_public() const { return visibility == Visibility::kUnspecified || visibility == Visibility::kPublic; }
};

class Graph {
 public:
  std::vector<Function> functions;
  Function& main();  // the function named main, or else the first one
  const Function& main() const;

  Value& value(ValueId id) { return values_[id.index]; }
  const Value& value(ValueId id) const { return values_[id.index]; }
  Operation& op(OpId id) { return ops_[id.index]; }
  const Operation& op(OpId id) const { return ops_[id.index]; }
  Region& region(RegionId id) { return regions_[id.index]; }
  const Region& region(RegionId id) const { return regions_[id.index]; }

  std::span<const ValueId> operands(OpId id) const;
  std::span<const ValueId> operand_pool() const { return operand_pool_; }  // indexed by operand_begin
  std::span<const RegionId> regions(OpId id) const;
  ValueId result(OpId id, uint32_t index = 0) const { return ValueId{ops_[id.index].first_result + index}; }

  // The op that makes a Value or has a Use; of an argument or a result of a region, the op that has the region, if any.
  template <class At>
  OpId owner(const At& at) const {
    return at.op ? at.op : region(at.region).op;
  }

  size_t value_count() const { return values_.size(); }  // ids are below these counts
  size_t op_count() const { return ops_.size(); }
  size_t region_count() const { return regions_.size(); }

  RegionId add_region();
  ValueId add_argument(RegionId region, TypeId type, LocId loc = {});
  // Makes every op and value its own origin; replacing, cloning and localizing keep origins.
  void mark_origins();
  // The regions leave the op and stay as they are: bodies of functions, for example.
  void release_regions(OpId id);

 protected:
  Graph();
  // Module changes uses, and keeps their lists (use_lists.h) up to date.
  OpId append(RegionId region, const OpDef& def, std::span<const ValueId> operands, AttrsId attrs,
              std::span<const TypeId> result_types, LocId loc, std::span<const RegionId> regions);
  void write_operand(OpId id, uint32_t index, ValueId value) { operand_pool_[op(id).operand_begin + index] = value; }

 private:
  std::vector<Value> values_;
  std::vector<Operation> ops_;
  std::vector<Region> regions_;
  std::vector<ValueId> operand_pool_;
  std::vector<RegionId> region_pool_;
};

}  // namespace shardwise
