// SPDX-License-Identifier: Apache-2.0
//
// Emits ops for OpDef::partition and for collectives. Offsets are arithmetic on axis_index, and masks are ordinary ops:
//
//   rows of 17 in blocks of 5 along x = 4, padding to be 0
//     %0 = "shardwise.axis_index"() <{axes = {"x"}, mesh = @mesh}>
//     %1 = stablehlo.multiply %0, 5                          first row of this device: shard_offset
//     %2 = stablehlo.subtract 17, %1                         rows that it has
//     %3 = stablehlo.compare LT, iota, broadcast %2
//     %4 = stablehlo.select broadcast %3, %x, 0
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/emission/cause.h"

namespace shardwise {

// Appends to the local program. Values that depend only on axes are created once, in the body of the function; regions
// capture them.
class LocalEmitter {
 public:
  // The builder's region is the body of a function now, and may be one inside it later.
  LocalEmitter(Builder& builder, MeshPtr mesh) : builder_(builder), in_body_(builder), mesh_(std::move(mesh)) {}

  Builder& builder() { return builder_; }
  const MeshPtr& mesh() const { return mesh_; }
  ValueId axis_index(const AxisList& axes);    // tensor<i32>
  ValueId shard_offset(const DimLayout& dim);  // tensor<i32>, or i64 where rows do not fit
  // Turns a value replicated along `axes` into unreduced parts: one device keeps it, the others hold the neutral
  // element of `reducer`. If `owned`, that element is exact, even next to a zero.
  ValueId as_parts(ValueId value, const AxisList& axes, Reducer reducer, bool owned);
  // `value` with `fill` in the padding of dim `dim`.
  ValueId masked(ValueId value, int64_t dim, const DimLayout& layout, Scalar fill);

 private:
  ValueId rows_inside(const DimLayout& layout);  // tensor<block x i1>

  Builder& in_body();  // at the location of the op at hand

  Builder& builder_;
  Builder in_body_;
  MeshPtr mesh_;
  std::map<AxisList, ValueId> axis_indices_;
  std::map<std::pair<AxisList, int64_t>, ValueId> offsets_;            // by axes and block
  std::map<std::tuple<AxisList, int64_t, int64_t>, ValueId> insides_;  // by axes, block and size
};

struct LocalValue {
  ValueId value;
  const LocalLayout* layout = nullptr;  // of the placement in `part`
  GlobalPart part;
  // The value is unreduced, and one device has each element, so that the others may receive its bits.
  bool is_owned = false;
};

Cause method_cause(const Method& method, const OpView& op);

class LocalPartitionContext : public PartitionContext {
 public:
  // `results` come with the parts that the op must produce; run() adds the values. The method is null if the op is
  // computed by its rule.
  LocalPartitionContext(LocalEmitter& emitter, const OpView& op, const ShardingRule& rule,
                        std::vector<const LocalValue*> operands, std::vector<LocalValue> results)
      : emitter_(emitter), op_(op), rule_(rule), operands_(std::move(operands)), results_(std::move(results)) {}

  void set_method(const Method* method) { method_ = method; }

  std::vector<LocalValue> run();

  OpView op() const override { return op_; }
  const ShardingRule& rule() const override { return rule_; }
  Builder& builder() override { return emitter_.builder(); }
  const Mesh& mesh() const override { return *emitter_.mesh(); }
  ValueId explain(ValueId collective, int64_t dim) override;
  const LocalLayout& operand_layout(size_t i) const override { return *operands_[i]->layout; }
  const LocalLayout& result_layout(size_t i) const override { return *results_[i].layout; }
  const Padding& operand_padding(size_t i) const override { return operands_[i]->part.padding; }
  TypeId local_result_type(size_t i) const override;
  ValueId operand(size_t i) override { return operands_[i]->value; }
  // Masks accumulate: an operand masked along one factor stays masked when it is masked along another.
  ValueId masked_operand(size_t i, FactorId factor, Scalar fill) override;
  ValueId axis_index(const AxisList& axes) override { return emitter_.axis_index(axes); }
  ValueId shard_offset(const DimLayout& dim) override { return emitter_.shard_offset(dim); }
  void set_result(size_t i, ValueId local, Padding padding) override;

 private:
  LocalEmitter& emitter_;
  OpView op_;
  const ShardingRule& rule_;
  const Method* method_ = nullptr;
  std::vector<const LocalValue*> operands_;
  std::vector<LocalValue> results_;
  std::unordered_map<size_t, ValueId> masked_;
};

}  // namespace shardwise
