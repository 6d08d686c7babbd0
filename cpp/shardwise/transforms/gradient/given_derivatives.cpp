// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/given_derivatives.h"

#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/sharding/inlined_regions.h"
#include "shardwise/transforms/gradient/differentiate_regions.h"

namespace shardwise {
namespace {

// Per thread: two threads may differentiate at once, each with the derivatives that its own trace recorded.
thread_local DerivativeTable* current_table = nullptr;

}  // namespace

GivenDerivatives::GivenDerivatives(DerivativeTable& table) : outer_(std::exchange(current_table, &table)) {}

GivenDerivatives::~GivenDerivatives() { current_table = outer_; }

GivenDerivative DerivativeTable::find(Module& module, int64_t number) const {
  if (number >= 0) return source(module, number);
  const BatchedDerivative batched = batched_[static_cast<size_t>(-1 - number)];
  return batch_derivative(module, find(module, batched.number), batched);
}

int64_t DerivativeTable::add(BatchedDerivative batched) {
  batched_.push_back(std::move(batched));
  return -static_cast<int64_t>(batched_.size());
}

bool has_given_derivative(const Module& module, OpId op) {
  // If there is no source, as for a text that is read back, the op is differentiated by the ops of its region.
  return current_table != nullptr && current_table->source &&
         module.op(op).def->region_gradient == RegionGradient::kGiven;
}

GivenDerivative given_derivative(Module& module, OpId op) {
  const int64_t number = module.attrs(op).get_int(kDerivativeAttr);
  return current_table->find(module, number);
}

void batch_given_derivative(Module& module, OpId op, OpId made, BatchedDerivative batched) {
  if (current_table == nullptr) return;
  batched.number = module.attrs(op).get_int(kDerivativeAttr);
  module.set_attribute(made, kDerivativeAttr, IntAttr{current_table->add(std::move(batched))});
}

int64_t batched_number(int64_t number, BatchedDerivative batched) {
  batched.number = number;
  return current_table->add(std::move(batched));
}

std::vector<ValueId> append_given(Builder& builder, const GivenProgram& program, std::span<const ValueId> operands) {
  Module& module = builder.module();
  const Region& body = module.region(program.body);
  check_internal(body.arguments.size() == operands.size(), "a given derivative has the operands of its op");
  if (!program.derivative) {
    GraphCopy copy(module, module);
    for (size_t i = 0; i < operands.size(); ++i) copy.map(module.region(program.body).arguments[i], operands[i]);
    copy.ops(program.body, builder.region());
    std::vector<ValueId> results;
    for (const ValueId result : module.region(program.body).results) results.push_back(copy(result));
    return results;
  }
  return list_of_results(module,
                         create_custom_derivative(builder, program.name, *program.derivative, operands, program.body));
}

void refuse_closed_over(const Module& module, OpId op, const GivenDerivative& derivative,
                        const std::function<bool(size_t)>& is_active) {
  for (size_t i = 0; i < derivative.is_closed_over.size(); ++i) {
    if (!derivative.is_closed_over[i] || !is_active(i)) continue;
    fail<UnsupportedError>(module.attrs(op).get<std::string>("name"),
                           "a function with a derivative of its own must not close over a value that is differentiated",
                           module.type(module.operands(op)[static_cast<uint32_t>(i)]).text(), "pass it as an argument");
  }
}

}  // namespace shardwise
