// SPDX-License-Identifier: Apache-2.0
//
// Emits the local form of one op by OpDef::partition, or by one of its methods:
//
//   LocalPartitionContext partition(emitter, op, rule, &method, {%x}, {local_value(context, placed)});
//   partition.run()        // the results with their values: each holds the part that it came with
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/emission/cause.h"
#include "shardwise/emission/local_emitter.h"
#include "shardwise/emission/local_value.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

Cause method_cause(const Method& method, const OpView& op);

class LocalPartitionContext : public PartitionContext {
 public:
  // `results` come with the parts that the op must produce; run() adds the values. `method` is null if the op is
  // computed by its rule.
  LocalPartitionContext(LocalEmitter& emitter, const OpView& op, const ShardingRule& rule, const Method* method,
                        std::vector<LocalValue> operands, std::vector<LocalValue> results)
      : emitter_(emitter),
        op_(op),
        rule_(rule),
        method_(method),
        operands_(std::move(operands)),
        results_(std::move(results)) {}

  std::vector<LocalValue> run();

  OpView op() const override { return op_; }
  const ShardingRule& rule() const override { return rule_; }
  Builder& builder() override { return emitter_.builder(); }
  const Mesh& mesh() const override { return *emitter_.mesh(); }
  ValueId explain(ValueId collective, int64_t dim) override;
  LayoutView operand_layout(size_t i) const override { return operands_[i].layout(context()); }
  LayoutView result_layout(size_t i) const override { return results_[i].layout(context()); }
  const Padding& operand_padding(size_t i) const override { return operands_[i].part.padding; }
  TypeId local_result_type(size_t i) const override;
  ValueId operand(size_t i) override { return operands_[i].value; }
  // Masks accumulate: an operand masked along one factor stays masked when it is masked along another.
  ValueId masked_operand(size_t i, FactorId factor, Scalar fill) override;
  ValueId axis_index(const AxisList& axes) override { return emitter_.axis_index(axes); }
  ValueId shard_offset(const DimLayout& dim) override { return emitter_.shard_offset(dim); }
  void set_result(size_t i, ValueId local, Padding padding) override;

 private:
  Context& context() const { return emitter_.builder().context(); }

  LocalEmitter& emitter_;
  OpView op_;
  const ShardingRule& rule_;
  const Method* method_;  // null: by the rule
  std::vector<LocalValue> operands_;
  std::vector<LocalValue> results_;
  std::unordered_map<size_t, ValueId> masked_;
};

}  // namespace shardwise
