// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/sharding/manual_computation.h"
#include "shardwise/transforms/gradient/differentiate_regions.h"
#include "shardwise/transforms/gradient/given_derivatives.h"
#include "shardwise/transforms/gradient/reverse_walk.h"

namespace shardwise {
namespace {

// Per thread: two threads may differentiate at once, each with the derivatives that its own trace recorded.
thread_local const DerivativeSource* current_source = nullptr;

auto append_program(Builder& builder, const GivenProgram& program, std::span<const ValueId> operands) {
  Module& module = builder.module();
  const std::vector<TypeId> types = types_of(module, module.region(program.body).results);
  const Attrs attrs{{"name", program.name}, {std::string(kDerivativeAttr), IntAttr{program.derivative}}};
  return results_of(module, builder.create_op("sdy.named_computation", operands, attrs, types, {{program.body}}));
}

void check_types(const Module& module, OpId id, RegionId forward) {
  const std::vector<ValueId>& arguments = module.region(forward).arguments;
  check_internal(arguments.size() == module.op(id).operand_count, "the given gradient has the arguments of the op");
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    const ValueId operand = module.operands(id)[i];
    if (module.value(operand).type == module.value(arguments[i]).type) continue;
    fail<UnsupportedError>("grad",
                           "a JAX function must not be batched by sw.vmap before it is differentiated, since its "
                           "gradient is that of one example",
                           str(module.type(operand).text(), " for ", module.type(arguments[i]).text()),
                           "use jax.vmap in the JAX function, or sw.vmap around sw.grad");
  }
}

}  // namespace

GivenDerivatives::GivenDerivatives(DerivativeSource source) : source_(std::move(source)), outer_(current_source) {
  current_source = &source_;
}

GivenDerivatives::~GivenDerivatives() { current_source = outer_; }

bool has_given_derivative(const Module& module, OpId op) {
  // If there is no source, as for a text that is read back, the op is differentiated by the ops of its region.
  return current_source != nullptr && is_named_computation(module, op) &&
         module.attrs(op).find(kDerivativeAttr) != nullptr;
}

// The forward program takes the place of the op.
void differentiate_given(ReverseWalk& walk, OpId id) {
  Module& module = walk.module();
  Builder& builder = walk.builder();
  const std::vector<ValueId> operands(module.operands(id).begin(), module.operands(id).end());
  const uint32_t result_count = module.op(id).result_count;
  const GivenDerivative given = (*current_source)(module, module.attrs(id).get_int(kDerivativeAttr));
  check_types(module, id, given.forward.body);

  const auto forward =
      walk.put_in_place_of(id, [&](Builder& at) { return append_program(at, given.forward, operands); });
  // The residuals, in the order that the backward program takes them in: they come before the cotangents.
  std::vector<ValueId> inputs(forward.begin() + result_count, forward.end());
  for (uint32_t i = 0; i < result_count; ++i) {
    if (given.has_cotangent[i]) inputs.push_back(walk.cotangent_or_zeros(module.result(id, i)));
  }
  const auto gradients = append_program(builder, given.backward, inputs);
  uint32_t next = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (given.has_gradient[i]) walk.accumulate(operands[i], gradients[next++]);
  }
}

}  // namespace shardwise
