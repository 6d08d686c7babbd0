// SPDX-License-Identifier: Apache-2.0
//
// THE contract of an op. One value of type OpDef defines everything that shardwise knows about it. Passes, executor,
// printer and parser know ops only through these fields.
//
//   constexpr OpDef kTranspose{
//       .name = "stablehlo.transpose",
//       .infer = infer_transpose,       // result types, or an error
//       .rule = rule_transpose,         // sharding rule: dims → factors, as data (rule/sharding_rule.h)
//       .prepare = prepare_transpose,   // what runs on the buffers of a device; it reads no attribute
//       .vjp = vjp_transpose,           // gradient as a graph, or not_differentiable + .no_vjp_reason
//       .batch = batch_transpose,       // vmap: the op with a new leading dim
//       .linear = {Linear::kFirst, kAllReducers},
//       .format = "operands `,` `dims` `=` $permutation attr-dict `:` functional-type",
//       .traits = {.movement = true},
//   };
//   static_assert(kTranspose.complete());
//
// An op that other ops make up has .decompose instead of .prepare, and Runs::kOps: its kernel, partition, gradient and
// batch are theirs.
//
// .partition and .cost default to what the rule already implies. .methods are other ways to compute the op in parallel,
// which no rule can express: the winners of an argmax, the totals of a cumulative sum, positions that are operands.
// Kernels and rules see the rest of shardwise only through the interfaces below, which runtime/, partition/ and
// transforms/ implement.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "shardwise/ir/known_integers.h"
#include "shardwise/ir/module.h"
#include "shardwise/ir/op_cost.h"
#include "shardwise/ir/placement/placed_type.h"
#include "shardwise/ir/rule/sharding_rule.h"

namespace shardwise {

class Builder;       // builder.h
class InferContext;  // builder.h
class TileBuilder;   // tile/program.h

// ---- kernels -------------------------------------------------------------------------------------------------------

// One call of a kernel: buffers, and nothing of the program. Operands may have any strides (0 and negative included). A
// kernel sets every result, either to an array that it allocated, to a view of an operand, or to an operand that it
// took; it never writes another operand.
class KernelContext {
 public:
  virtual ~KernelContext() = default;
  virtual const NdArray& operand(size_t i) const = 0;
  // Operand i as memory to make a result in. None where anything else may read that memory: it is an argument of the
  // program, is used later, or overlaps another value.
  virtual std::optional<NdArray> take_operand(size_t i) = 0;
  virtual NdArray allocate_result(size_t i = 0) = 0;  // row-major, uninitialised; also sets it as result i
  virtual void set_result(size_t i, NdArray view) = 0;
  // Runs body(begin, end) over [0, count) on the pool, in pieces of at least `grain`.
  virtual void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) = 0;
};

// A prepared op. It holds copies of what it needs, so it may outlive the program; several threads may call it at once.
//
//   std::optional<Kernel> prepare_transpose(const OpView& op, const KernelTypes&) {
//     return [permutation = op.attrs().get<IntArray>("permutation")](KernelContext& context) {
//       context.set_result(0, permuted(context.operand(0), permutation));
//     };
//   }
using Kernel = std::function<void(KernelContext& context)>;

// The types of the buffers: those of the op, or those of one call for several shards (runtime/plan/merge.h), in which
// the dims of some factors of the rule are larger: each passes through, or is reduced for all these shards at once.
struct KernelTypes {
  std::span<const TensorType> operands, results;
};

// ---- partitioning --------------------------------------------------------------------------------------------------

// Turns one global op into local ops. All operand and result layouts agree with the op's sharding rule, factor by
// factor (the compute sharding that `assign` chose). Factors that need replication are not sharded.
class PartitionContext {
 public:
  virtual ~PartitionContext() = default;
  virtual OpView op() const = 0;  // the global op
  virtual const ShardingRule& rule() const = 0;
  virtual Builder& builder() = 0;        // appends to the local program
  virtual const Mesh& mesh() const = 0;  // mesh of the layouts' axes; exists if a dim is sharded
  // Names the method, and the dim that it is for, as the cause of a collective: "totals of reduce_window along dim 0".
  // Returns the collective.
  virtual ValueId explain(ValueId collective, int64_t dim) = 0;
  virtual LayoutView operand_layout(size_t i) const = 0;
  virtual LayoutView result_layout(size_t i) const = 0;
  virtual const Padding& operand_padding(size_t i) const = 0;
  virtual TypeId local_result_type(size_t i) const = 0;
  virtual ValueId operand(size_t i) = 0;  // the local operand, with its padding unchanged
  // The local operand with `fill` in the padding of dims that carry `factor`. Returns the operand itself if there is no
  // padding, or if it already has this value.
  virtual ValueId masked_operand(size_t i, FactorId factor, Scalar fill) = 0;
  // The position of this device along `axes`, row-major in list order: tensor<i32>.
  virtual ValueId axis_index(const AxisList& axes) = 0;
  // The global index of the first local row of a dim: axis_index(axes) * block, tensor<i32> (or i64 for large dims).
  virtual ValueId shard_offset(const DimLayout& dim) = 0;
  virtual void set_result(size_t i, ValueId local, Padding padding) = 0;
};

// The axes that shard the dims of an op's tensors, and those over which its results are left unreduced.
struct OpPlacement {
  std::vector<std::vector<AxisList>> tensors;  // operands, then results; by dim
  AxisList unreduced;                          // sorted
  Reducer reducer = Reducer::kNone;
  friend bool operator==(const OpPlacement&, const OpPlacement&) = default;
};

// An alternative to OpDef::partition, for factors that it cannot keep sharded:
//
//   reduce_window, in prefix form    "totals"    each shard combines its rows, and the totals of the shards before it
//
// The choice (choice/greedy/op_chooser.h) prices a method by a dry run: the collectives of the ops that `partition`
// makes. It knows nothing else about it.
struct Method {
  std::string_view name;  // in reports: "totals of reduce_window along dim 0"
  // The factors that the op may keep sharded only by a method.
  std::vector<FactorId> (*factors)(const OpView& op, const ShardingRule& rule);
  // Appends the placements of operands and results if the factors are sharded over `axes`, which contains some of
  // `factors`. Appends none if the method cannot compute that. Null: operands keep their placements, and each
  // result has the needed placement; then `factors` decides whether the method can compute the op at all, and the rule
  // may keep them sharded, too.
  void (*placements)(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                     std::vector<OpPlacement>& found);
  void (*partition)(PartitionContext& context);  // null: by the rule, only placed differently
  bool is_movement = false;  // one exchange and nothing else: it becomes one with that of its only reader
  // Returns other axes for the dims of result 0 than propagation gave it, which suit those of operand 0; none if no others
  // suit better. Only methods without `placements` have it.
  std::vector<AxisList> (*result)(const OpView& op, const ShardingRule& rule,
                                  std::span<const AxisList> operand) = nullptr;
};

// The axes of each dim of a tensor: those of its factors.
std::vector<AxisList> dims_by_rule(const ShardingRule& rule, size_t tensor, std::span<const AxisList> axes);
// The placement that the rule itself implies: each tensor has these axes, and reductions stay unreduced.
OpPlacement placement_by_rule(const ShardingRule& rule, std::span<const AxisList> axes);
void placements_by_rule(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                        std::vector<OpPlacement>& found);

// ---- transforms ----------------------------------------------------------------------------------------------------

// The reverse-mode derivative of one op, as ops. Given the cotangents of the results, sets those of the operands.
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

// The op with a new leading dim of size `size()` on its batched operands and its results.
class BatchContext {
 public:
  virtual ~BatchContext() = default;
  virtual OpView op() const = 0;
  virtual Builder& builder() = 0;
  virtual int64_t size() const = 0;
  virtual bool is_batched(size_t i) const = 0;
  virtual ValueId operand(size_t i) const = 0;  // with the leading dim iff is_batched(i)
  virtual ValueId batched(size_t i) = 0;        // with the leading dim, broadcast if necessary
  virtual void set_result(size_t i, ValueId value) = 0;
  virtual std::vector<std::string> mesh_axes() const { return {}; }  // that shard the new dim of annotated values
};

// Builds an equivalent of the op from other ops, with the same results and types. Sets every result, or no result if it
// depends on a runtime value, such as an amount of dynamic_pad that is not constant.
class DecomposeContext {
 public:
  virtual ~DecomposeContext() = default;
  virtual OpView op() const = 0;
  virtual Builder& builder() = 0;
  virtual ValueId operand(size_t i) const = 0;
  virtual void set_result(size_t i, ValueId value) = 0;
};

// The meaning of an op's regions, or of the function that it names.
//   kNone       there are none
//   kCombiner   functions of scalars that the op's kernel applies                                 reduce, scatter, sort
//   kBranches   one of them runs: its result i is the op's result i                               case, if
//   kLoop       a condition and a body. Carry i is operand i, argument i of both regions, result i of the body and
//               result i of the op; the condition's one result is the predicate                   while
//   kInline     runs once, in place of the op (RegionGradient)                                    named_computation
//   kCall       none: a function of the module runs once, in place of the op                      call, composite
//   kManual     runs once, on the shards of the operands                                          manual_computation
enum class Regions : uint8_t { kNone, kCombiner, kBranches, kLoop, kInline, kCall, kManual };

// How an op with an inlined region (Regions::kInline) is differentiated.
//   kAsItsOps       by the ops of the region, in its place                                        named_computation
//   kComputedAgain  by these ops, whose values the gradient computes again                        shardwise.checkpoint
//   kGiven          by the derivative that its attribute names                                    custom_derivative
enum class RegionGradient : uint8_t { kAsItsOps, kComputedAgain, kGiven };

// How an op runs.
//   kKernel      by a kernel, which OpDef::prepare makes                                          add, reduce
//   kCollective  by a communicator                                                                shardwise.all_gather
//   kOps         by the ops of OpDef::decompose, which take its place                             einsum, map
//   kRegions     by the ops of its regions, or of the function that it names. Transforms differentiate and batch it
//                by what Regions means, without OpDef::vjp and OpDef::batch                       while, if, call
//   kNot         not at all: a program with the op can only be read, propagated and printed       infeed
enum class Runs : uint8_t { kKernel, kCollective, kOps, kRegions, kNot };

// ---- data flow ----------------------------------------------------------------------------------------------------

// Values that correspond to each other across the regions of an op:
//
//   %r = while(%a = %init) cond {…} do {… return %next}     owner %r; sources %init, %next; targets %r and both %a
//
// All targets have the owner's sharding. Sources propagate to and from it as through an identity.
struct DataFlowEdge {
  ValueId owner;
  std::vector<ValueId> sources;
  std::vector<ValueId> targets;  // including the owner
  // For manual regions: the annotation of the owner, as seen from outside, and the axes that the inside does not see.
  // These axes come first in a dim, or are among the replicated ones.
  ShardingId outside = {};
  AxisList manual_axes = {};
  bool target_inside = false;  // the owner is an argument of the region, and its sources are outside
};
std::vector<DataFlowEdge> edges_of(const OpView& op);  // none without OpDef::flow

// ---- traits --------------------------------------------------------------------------------------------------------

// Whether f distributes over a pending reduction, so that an unreduced operand may pass through it unreduced:
//   kFirst     in operand 0 alone, the others being indices or absent       transpose, reshape, slice, negate
//   kJoint     in several operands together (OpDef::joint); those that
//              are replicated become parts of the reduction                 add (sum), maximum (max), concatenate,
//                                                                           select
//   kEach      in each operand while the others are fixed                   multiply, dot_general (sum)
//   kDividend  in operand 0 of floats, divided by a constant that is not 0  divide (sum)
enum class Linear : uint8_t { kNone, kFirst, kJoint, kEach, kDividend };
using ReducerSet = uint8_t;
using OperandSet = uint8_t;
constexpr ReducerSet reducer_bit(Reducer reducer) {
  return static_cast<ReducerSet>(1u << static_cast<unsigned>(reducer));
}
inline constexpr ReducerSet kAllReducers = 0xFE;  // every reducer but kNone
struct Linearity {
  Linear kind = Linear::kNone;
  ReducerSet reducers = 0;
};

// Partial sums of float16 and float8 may overflow or round where the entire sum does not: until they are reduced, their
// addends stay float32. Those of bfloat16 are rounded once. How an op makes wide addends:
//   kNarrow        it does not
//   kWideResult    of the same operands, with a wide result                 dot_general
//   kWideOperands  of converted operands, with a wide region                reduce by a sum
enum class Addends : uint8_t { kNarrow, kWideResult, kWideOperands };

enum class CollectiveKind : uint8_t {
  kNone,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kCollectivePermute,
  kExchange,
  kAllSlice,
  kAxisIndex,
  kToUnreduced
};

// Each of them is read in several places; a fact that one engine needs is a field of OpDef, or that engine's own.
struct Traits {
  bool elementwise = false;  // one factor per dim of the result; tile != nullptr if it can run
  bool commutative = false;
  bool constant_like = false;   // no operands that vary: cheap to make again for each use
  bool side_effect = false;     // never removed or merged, unless OpDef::effect returns false
  bool constraint = false;      // the identity whose result carries a user's sharding
  bool reshard = false;         // the identity that changes the sharding
  bool data_flow_edge = false;  // the identity that represents a value of a DataFlowEdge
  bool barrier = false;         // the identity that shardings cross only in its allowed_direction
  bool sharding_group = false;  // adds its operand to the group group_id, which has one sharding
  bool movement = false;        // results hold copies of operand elements only: views, no arithmetic
  bool shares_memory = false;   // a kernel may make views of operands, or write over them; else results have their own
  CollectiveKind collective = CollectiveKind::kNone;

  constexpr bool annotates() const { return constraint || reshard; }
};

// ---- the op itself -------------------------------------------------------------------------------------------------

using InferFn = void (*)(const InferContext& op, std::vector<TypeId>& results);
using RuleFn = ShardingRule (*)(const OpView& op);
using PartitionFn = void (*)(PartitionContext& context);
// Reads the attributes and regions once. None where they do not suit the types: the sizes of a slice name those of one
// shard. They always suit the op's own types.
using PrepareFn = std::optional<Kernel> (*)(const OpView& op, const KernelTypes& types);
using CostFn = OpCost (*)(const OpView& op, const LocalTypes& types);
using VjpFn = void (*)(VjpContext& context);
using BatchFn = void (*)(BatchContext& context);
using DecomposeFn = void (*)(DecomposeContext& context);
// A value that equals the op's one result, by fewer or simpler ops: one that exists, or one that it appends. None if
// it finds none. The ops before this one have been folded.
using FoldFn = ValueId (*)(Builder& builder, const OpView& op);
// What is known about the elements of an integer result before a run.
using IntegersFn = KnownIntegers (*)(IntegersContext& context);
// Checks what `infer` cannot see: the shardings of results and of region arguments, and other functions of the module.
using VerifyFn = void (*)(const OpView& op);
// Appends the edges of an op with regions, or of one that passes its operands through.
using FlowFn = void (*)(const OpView& op, std::vector<DataFlowEdge>& edges);
// Whether this op has a side effect, if its attributes decide that.
using EffectFn = bool (*)(const OpView& op);
// Appends the op's instructions to a tile program; inputs and outputs are tile registers.
using TileFn = uint32_t (*)(TileBuilder& tiles, const OpView& op, std::span<const uint32_t> inputs);

// Defaults that follow from the rule, or that state why a field is missing. op_def.cpp defines the first one, and
// ops/partitioning/defaults_by_rule.cpp the others.
void not_differentiable(VjpContext& context);  // contributes no cotangent
// The OpDef::no_vjp_reason of ops of one device's program.
inline constexpr std::string_view kAfterGradients = "created by passes that run after differentiation";
ShardingRule no_rule(const OpView& op);  // does not propagate; computed replicated
void partition_by_rule(PartitionContext& context);
void partition_by_rule(PartitionContext& context, AttrsId local_attrs);  // that suit the local types
OpCost cost_by_rule(const OpView& op, const LocalTypes& types);
// As cost_by_rule, by the unit for transcendental functions if the elements are floats or complex numbers.
OpCost cost_of_function(const OpView& op, const LocalTypes& types);
// Of ops that are names for their operands, and of those whose regions or functions are counted op by op.
OpCost costs_nothing(const OpView& op, const LocalTypes& types);

struct OpDef {
  std::string_view name;
  InferFn infer = nullptr;
  RuleFn rule = nullptr;
  Runs runs = Runs::kKernel;
  DecomposeFn decompose = nullptr;  // of Runs::kOps, and in place of a missing `vjp` or `batch`
  FoldFn fold = nullptr;
  IntegersFn integers = nullptr;  // what neither the kernel of an elementwise op nor the rule of a movement tells
  PartitionFn partition = partition_by_rule;
  std::span<const Method> methods = {};
  PrepareFn prepare = nullptr;
  CostFn cost = cost_by_rule;
  VjpFn vjp = nullptr;
  BatchFn batch = nullptr;
  TileFn tile = nullptr;  // of elementwise ops; of annotations, which combiners may have
  Linearity linear = {};
  Regions regions = Regions::kNone;
  RegionGradient region_gradient = RegionGradient::kAsItsOps;  // of Regions::kInline
  OperandSet joint = 0;                // of Linear::kJoint; 0: all operands. Others are reduced: indices, a predicate
  Addends addends = Addends::kNarrow;  // of sums
  FlowFn flow = nullptr;               // ops whose regions or results pass values through
  VerifyFn verify = nullptr;
  VerifyFn verify_runnable = nullptr;   // UnsupportedError for attributes that no kernel computes
  EffectFn effect = nullptr;            // narrows traits.side_effect
  std::string_view no_vjp_reason = {};  // required with not_differentiable
  std::string_view format = {};         // StableHLO's pretty form (text/assembly_format.h); empty: generic form only
  std::string_view doc = {};            // one line, with its source
  Traits traits = {};

  // The executor runs the regions, which are code like the body of main.
  constexpr bool is_control_flow() const { return regions == Regions::kBranches || regions == Regions::kLoop; }
  // A call of a function of the module. A composite becomes one when it is decomposed.
  constexpr bool is_call() const { return regions == Regions::kCall && runs == Runs::kRegions; }
  // Its results are its operands, though passes do not look through it.
  constexpr bool passes_through() const { return regions == Regions::kNone && flow != nullptr; }
  constexpr bool runnable() const { return runs != Runs::kNot; }
  constexpr bool differentiable() const { return runnable() && vjp != not_differentiable; }
  // Transforms work on the ops that make it up, because it has no rule of its own.
  constexpr bool is_differentiated_as_ops() const { return vjp == nullptr && decompose != nullptr; }
  constexpr bool is_batched_as_ops() const { return batch == nullptr && decompose != nullptr; }
  // Whether an operand of a kJoint op takes part in the reduction.
  constexpr bool is_joint(size_t operand) const { return joint == 0 || (operand < 8 && (joint >> operand & 1) != 0); }
  bool has_side_effect(const OpView& op) const {  // never removed or merged
    return traits.side_effect && (effect == nullptr || effect(op));
  }
  // It can be read, propagated and printed.
  constexpr bool is_described() const {
    return !name.empty() && infer != nullptr && rule != nullptr && partition != nullptr && cost != nullptr &&
           !doc.empty() && (vjp != not_differentiable || !no_vjp_reason.empty());
  }
  // It can be run, differentiated and batched as well.
  constexpr bool complete() const {
    const bool transforms = (vjp != nullptr && batch != nullptr) || decompose != nullptr || runs == Runs::kRegions;
    return is_described() && runnable() && runs_as_declared() && transforms &&
           (!traits.elementwise || tile != nullptr || decompose != nullptr);
  }
  // `runs` agrees with the other fields.
  constexpr bool runs_as_declared() const {
    const bool has_code = regions != Regions::kNone && regions != Regions::kCombiner;
    if ((runs == Runs::kKernel) != (prepare != nullptr) || (runs == Runs::kRegions && !has_code)) return false;
    if (runs == Runs::kOps) return decompose != nullptr;
    return runs == Runs::kKernel || decompose == nullptr;
  }
};

// Append the derivative or the batch of the context's op. UnsupportedError for an op that does not run.
void apply_vjp(VjpContext& context);
void apply_batch(BatchContext& context);
[[noreturn]] void refuse_op(const OpView& op, std::string_view what);  // what: "run", "differentiated", "batched"

// The op's own rule, from the cache of its context: equal ops share one.
const ShardingRule& sharding_rule(const OpView& op);

OpCost own_cost(const OpView& op);  // on the op's own types

// Whether an op sums up products of two operands along a factor that both have.
bool is_contraction(const OpDef& def, const ShardingRule& rule);

// Whether `op` is a collective of one device's program; Shardy's collectives on global values are identities.
bool is_local_collective(const OpView& op);

}  // namespace shardwise
