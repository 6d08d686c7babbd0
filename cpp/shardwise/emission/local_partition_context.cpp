// SPDX-License-Identifier: Apache-2.0
#include "shardwise/emission/local_partition_context.h"

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {

std::vector<LocalValue> LocalPartitionContext::run() {
  (method_ != nullptr ? method_->partition : op_.def().partition)(*this);
  for (const LocalValue& result : results_) {
    if (!result.value) {
      fail<InternalError>(op_.name(), "the partition of an op must set every result");
    }
  }
  return std::move(results_);
}

TypeId LocalPartitionContext::local_result_type(size_t i) const {
  return local_type(context(), results_[i].part.placed());
}

ValueId LocalPartitionContext::masked_operand(size_t i, FactorId factor, Scalar fill) {
  const LayoutView layout = operand_layout(i);
  const Padding& padding = operand_padding(i);
  const auto known = masked_.find(i);
  ValueId value = known != masked_.end() ? known->second : operands_[i].value;
  if (padding.kind == Padding::Kind::kNone || padding == Padding{Padding::Kind::kFill, fill}) return value;
  for (size_t d = 0; d < layout.ndim(); ++d) {
    const DimLayout dim = layout.dim(d);
    if (!dim.uneven()) continue;
    bool carries = false;
    for (const FactorId id : rule_.dim(i, d)) carries = carries || id == factor;
    if (carries) value = emitter_.masked(value, static_cast<int64_t>(d), dim, fill);
  }
  masked_[i] = value;
  return value;
}

ValueId LocalPartitionContext::explain(ValueId collective, int64_t dim) {
  check_internal(method_ != nullptr, "only methods exchange data");
  set_cause(builder().module(), collective, str(method_cause(*method_, op_).text(), " along dim ", dim));
  return collective;
}

Cause method_cause(const Method& method, const OpView& op) {
  return {.kind = Cause::kMethod, .of = op.name(), .detail = std::string(method.name)};
}

void LocalPartitionContext::set_result(size_t i, ValueId local, Padding padding) {
  const TypeId type = local_result_type(i);
  if (builder().module().value(local).type != type) {
    fail<InternalError>(op_.name(), "the local result must have the type that the result's sharding implies",
                        builder().module().type(local).text() + " and " + builder().context().type(type).text());
  }
  // The shards of x[:61] may be those of x, but hold another global value.
  const TypeId global = builder().module().part(local).type;
  const bool has_another = global && global != results_[i].part.type;
  if (has_another) local = builder().create("stablehlo.reshape", {local}, {}, {type});
  results_[i].value = local;
  results_[i].part.padding = padding;
}

}  // namespace shardwise
