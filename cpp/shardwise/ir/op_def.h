// SPDX-License-Identifier: Apache-2.0
//
// THE contract of an op: one value of type OpDef says everything that shardwise knows about it. Passes, executor,
// printer and parser know ops only through these fields.
//
//   constexpr OpDef kTranspose{
//       .name = "stablehlo.transpose",
//       .infer = infer_transpose,       // result types, or an error
//       .rule = rule_transpose,         // sharding rule: dims → factors, as data (sharding_rule.h)
//       .kernel = kernel_transpose,     // one device's work
//       .vjp = vjp_transpose,           // gradient as a graph, or not_differentiable + .no_vjp_reason
//       .batch = batch_transpose,       // vmap: the op with a new leading dim
//       .format = "operands `,` `dims` `=` $permutation attr-dict `:` functional-type",
//       .traits = {.linear = Linear::kFirst, .linear_reducers = kAllReducers},
//   };
//   static_assert(kTranspose.complete());
//
// .partition and .cost default to what the rule already implies. Kernels and rules see the rest of shardwise only
// through the interfaces below, which runtime/, partition/ and transforms/ implement.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/module.h"
#include "shardwise/ir/sharding_rule.h"

namespace shardwise {

class TileBuilder;  // tile/program.h

// ---- kernels -------------------------------------------------------------------------------------------------------

// One device's work on one op of the local program. Operands may have any strides (0 and negative included). A kernel
// sets every result, either to an array it allocated or to a view of an operand; it never writes an operand.
class KernelContext {
 public:
  virtual ~KernelContext() = default;
  virtual OpView op() const = 0;
  virtual const NdArray& operand(size_t i) const = 0;
  virtual NdArray allocate_result(size_t i = 0) = 0;  // row-major, uninitialised; also sets it as result i
  virtual void set_result(size_t i, NdArray view) = 0;
  // Runs body(begin, end) over [0, count) on the pool, in pieces of at least `grain`.
  virtual void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) = 0;
};

// ---- partitioning --------------------------------------------------------------------------------------------------

// How one dim of a global value lies on the devices: shard i of `axes` holds rows [i·block, min((i+1)·block, size)).
struct DimLayout {
  int64_t size = 0;    // global
  AxisList axes;       // major to minor; empty: not sharded
  int64_t shards = 1;  // product of axes
  int64_t block = 0;   // the local size: ≥ ceil(size / shards), or size when not sharded
  bool uneven() const { return block * shards != size; }
  friend bool operator==(const DimLayout&, const DimLayout&) = default;
};

// What stands beyond the end of an uneven dim.
struct Padding {
  enum class Kind : uint8_t { kNone, kGarbage, kFill };
  Kind kind = Kind::kNone;
  Scalar fill;  // kFill only
  friend bool operator==(const Padding&, const Padding&) = default;
};

// The side table of the local program maps each local value to this.
struct LocalLayout {
  ValueId global_value;
  TypeId global_type;
  std::vector<DimLayout> dims;
  AxisList unreduced;
  Reducer reducer = Reducer::kNone;
  Padding padding;
  Dims local_shape() const;
};

// Turns one global op into its local ops. All operand and result layouts agree with the op's sharding rule, factor by
// factor (the compute sharding that `assign` chose), and factors that need replication are not sharded.
class PartitionContext {
 public:
  virtual ~PartitionContext() = default;
  virtual OpView op() const = 0;  // the global op
  virtual const ShardingRule& rule() const = 0;
  virtual Builder& builder() = 0;        // appends to the local program
  virtual const Mesh& mesh() const = 0;  // of the axes in the layouts; there is one where a dim is sharded
  // What reports say about a collective that the op creates: "totals of reduce_window along dim 0".
  virtual void explain(ValueId collective, std::string cause) = 0;
  virtual const LocalLayout& operand_layout(size_t i) const = 0;
  virtual const LocalLayout& result_layout(size_t i) const = 0;
  virtual TypeId local_result_type(size_t i) const = 0;
  virtual ValueId operand(size_t i) = 0;  // the local operand, padding as it is
  // The local operand with the padding of the dims that carry `factor` replaced by `fill`; nothing to do when the
  // padding is none or already that value.
  virtual ValueId masked_operand(size_t i, FactorId factor, Scalar fill) = 0;
  // Position of this device along `axes`, row-major in list order: tensor<i32>.
  virtual ValueId axis_index(const AxisList& axes) = 0;
  // Global index of the first local row of a dim: axis_index(axes) * block, tensor<i32> (or i64 for large dims).
  virtual ValueId shard_offset(const DimLayout& dim) = 0;
  virtual void set_result(size_t i, ValueId local, Padding padding) = 0;
};

// ---- transforms ----------------------------------------------------------------------------------------------------

// Reverse-mode derivative of one op as ops: given the cotangents of the results, sets those of the operands.
class VjpContext {
 public:
  virtual ~VjpContext() = default;
  virtual OpView op() const = 0;
  virtual Builder& builder() = 0;
  virtual ValueId operand(size_t i) const = 0;
  virtual ValueId result(size_t i = 0) const = 0;
  virtual ValueId cotangent(size_t i = 0) = 0;  // of result i; zeros when nothing flows into it
  virtual bool needs(size_t i) const = 0;       // whether operand i's cotangent is wanted
  virtual void set(size_t i, ValueId cotangent) = 0;
};

// The op with a new leading dim of size `size()` on its batched operands; results get it too.
class BatchContext {
 public:
  virtual ~BatchContext() = default;
  virtual OpView op() const = 0;
  virtual Builder& builder() = 0;
  virtual int64_t size() const = 0;
  virtual bool is_batched(size_t i) const = 0;
  virtual ValueId operand(size_t i) const = 0;  // with the leading dim iff is_batched(i)
  virtual ValueId batched(size_t i) = 0;        // with the leading dim, broadcast if need be
  virtual void set_result(size_t i, ValueId value) = 0;
};

struct OpCost {
  double flops = 0;
  double bytes = 0;  // read and written by one execution on the types given
};

// ---- data flow ----------------------------------------------------------------------------------------------------

// Values that stand for each other across the regions of an op:
//
//   %r = while(%a = %init) cond {…} do {… return %next}     owner %r; sources %init, %next; targets %r and both %a
//
// Targets have one sharding, the owner's, and sources agree with it as by an identity.
struct DataFlowEdge {
  ValueId owner;
  std::vector<ValueId> sources;
  std::vector<ValueId> targets;  // with the owner
  // Of a manual region: the sharding that its text gives the owner, as seen from outside, and the axes that the inside
  // does not see. They stand in front of the other axes of a dim, or among the replicated ones.
  ShardingId outside = {};
  AxisList manual_axes = {};
  bool target_inside = false;  // the owner is an argument of the region, and its sources are outside
};

// ---- traits --------------------------------------------------------------------------------------------------------

// Whether f distributes over a pending reduction (so that an unreduced operand may pass through it unreduced):
//   kFirst  in operand 0 alone, the others being indices or absent    transpose, reshape, slice, negate
//   kJoint  when all operands are unreduced over the same axes        add (sum), maximum (max)
//   kEach   in each operand while the others hold still               multiply, dot_general (sum)
enum class Linear : uint8_t { kNone, kFirst, kJoint, kEach };
using ReducerSet = uint8_t;
constexpr ReducerSet reducer_bit(Reducer reducer) {
  return static_cast<ReducerSet>(1u << static_cast<unsigned>(reducer));
}
inline constexpr ReducerSet kAllReducers = 0xFE;  // every reducer but kNone

enum class CollectiveKind : uint8_t {
  kNone,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kCollectivePermute,
  kAllSlice,
  kAxisIndex
};

// In which rounds of propagation an op speaks, and to whom; elementwise ops and constraints are kEarly.
//   kEarly          from the first round on: it changes no element, or each one alone          reshape, transpose
//   kForwardEarly   the same, operands to results only before its turn                         dynamic_slice
//   kBackwardFirst  results to operands in its turn, operands to results in the last round     broadcast_in_dim
enum class Precedence : uint8_t { kInTurn, kEarly, kForwardEarly, kBackwardFirst };

struct Traits {
  Linear linear = Linear::kNone;
  ReducerSet linear_reducers = 0;
  bool elementwise = false;  // one factor per dim of the result; tile != nullptr if it can run
  bool commutative = false;
  bool constant_like = false;    // no operands that vary: cheap to make again for each use
  bool side_effect = false;      // never removed or merged, unless OpDef::effect knows better
  bool constraint = false;       // the identity whose result carries a user's sharding
  bool reshard = false;          // the identity that changes the sharding
  bool data_flow_edge = false;   // the identity behind a value that an op with regions hands on (DataFlowEdge)
  bool barrier = false;          // the identity that shardings pass in its attribute allowed_direction only
  bool sharding_group = false;   // puts its operand into the group of its attribute group_id: one sharding for all
  bool tokens = false;           // operands and results may be tokens; ops that hand values on (flow) take them, too
  bool fill_preserving = false;  // elementwise: padding known to be c becomes f(c)
  Precedence precedence = Precedence::kInTurn;
  bool constant_preserving = false;  // of a constant it makes a constant, as elementwise ops and the ops inside do
  bool movement = false;             // results hold copies of operand elements only: views, no arithmetic
  bool rule_sees_makers = false;     // the rule asks which ops make the operands (OpView::maker)
  CollectiveKind collective = CollectiveKind::kNone;
};

// ---- the op itself -------------------------------------------------------------------------------------------------

using InferFn = void (*)(const InferContext& op, std::vector<TypeId>& results);
using RuleFn = ShardingRule (*)(const OpView& op);
using PartitionFn = void (*)(PartitionContext& context);
using KernelFn = void (*)(KernelContext& context);
using CostFn = OpCost (*)(const OpView& op);
using VjpFn = void (*)(VjpContext& context);
using BatchFn = void (*)(BatchContext& context);
// Checks what `infer` cannot: the shardings of results and of region arguments, other functions of the module.
using VerifyFn = void (*)(const OpView& op);
// Appends the edges of an op with regions, or of one that hands on its operands.
using FlowFn = void (*)(const OpView& op, std::vector<DataFlowEdge>& edges);
// When an op speaks, where that depends on its attributes.
using PrecedenceFn = Precedence (*)(const OpView& op);
// Whether this op does more than give results, where its attributes say so.
using EffectFn = bool (*)(const OpView& op);
// Appends the op's instructions to a tile program; inputs and outputs are tile registers.
using TileFn = uint32_t (*)(TileBuilder& tiles, const OpView& op, std::span<const uint32_t> inputs);

// Defaults that follow from the rule or say why there is nothing; defined in ops/defaults.cpp (op_def.cpp for the
// first).
void not_differentiable(VjpContext& context);  // contributes no cotangent
ShardingRule no_rule(const OpView& op);        // takes no part in propagation; computed replicated
void partition_by_rule(PartitionContext& context);
OpCost cost_by_rule(const OpView& op);
// Of an op that texts may hold and propagation understands, and that cannot run yet: an UnsupportedError.
void propagation_only(KernelContext& context);
void propagation_only(VjpContext& context);
void propagation_only(BatchContext& context);

struct OpDef {
  std::string_view name;
  InferFn infer = nullptr;
  RuleFn rule = nullptr;
  PartitionFn partition = partition_by_rule;
  KernelFn kernel = nullptr;
  CostFn cost = cost_by_rule;
  VjpFn vjp = nullptr;
  BatchFn batch = nullptr;
  TileFn tile = nullptr;  // elementwise ops only
  FlowFn flow = nullptr;  // ops whose regions or results hand values on
  VerifyFn verify = nullptr;
  VerifyFn verify_runnable = nullptr;   // UnsupportedError for attributes that no kernel computes
  PrecedenceFn precedence = nullptr;    // instead of traits.precedence
  EffectFn effect = nullptr;            // narrows traits.side_effect
  std::string_view no_vjp_reason = {};  // required with not_differentiable
  std::string_view format = {};         // StableHLO's pretty form (ir/assembly_format.h); empty: generic form only
  std::string_view doc = {};            // one line, with its source
  Traits traits = {};

  bool runnable() const;                          // not propagation_only
  bool has_side_effect(const OpView& op) const {  // never removed or merged
    return traits.side_effect && (effect == nullptr || effect(op));
  }
  constexpr bool complete() const {
    return !name.empty() && infer != nullptr && rule != nullptr && partition != nullptr && kernel != nullptr &&
           cost != nullptr && vjp != nullptr && batch != nullptr && !doc.empty() &&
           (vjp != not_differentiable || !no_vjp_reason.empty()) &&
           (!traits.elementwise || tile != nullptr || kernel == static_cast<KernelFn>(propagation_only));
  }
};

// Whether `op` is a collective of one device's program; Shardy's collectives on global values are identities.
bool is_local_collective(const OpView& op);

}  // namespace shardwise
