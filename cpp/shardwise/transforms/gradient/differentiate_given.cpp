// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/collectives/varying.h"
#include "shardwise/transforms/forward/push_forward.h"
#include "shardwise/transforms/gradient/differentiate.h"
#include "shardwise/transforms/gradient/differentiate_regions.h"
#include "shardwise/transforms/gradient/given_derivatives.h"
#include "shardwise/transforms/gradient/reverse_walk.h"

namespace shardwise {
namespace {

class GivenGradient {
 public:
  GivenGradient(ReverseWalk& walk, OpId id)
      : walk_(walk),
        module_(walk.module()),
        id_(id),
        operands_(module_.operands(id).begin(), module_.operands(id).end()),
        count_(module_.op(id).result_count),
        given_(given_derivative(module_, id)) {
    refuse_closed_over(module_, id, given_, [&](size_t i) { return walk.is_active(operands_[i]); });
  }

  void run() {
    const std::vector<ValueId> gradients = given_.tangents ? of_tangents() : of_backward();
    size_t next = 0;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!given_.has_gradient[i]) continue;
      if (const ValueId gradient = gradients[next++]) walk_.accumulate(operands_[i], gradient);
    }
  }

 private:
  // The forward program takes the place of the op. The residuals come before the cotangents.
  std::vector<ValueId> of_backward() {
    const std::vector<ValueId> forward =
        walk_.put_in_place_of(id_, [&](Builder& at) { return append_given(at, given_.forward, operands_); });
    std::vector<ValueId> inputs(forward.begin() + count_, forward.end());
    for (uint32_t i = 0; i < count_; ++i) {
      if (given_.has_cotangent[i]) inputs.push_back(walk_.cotangent_or_zeros(module_.result(id_, i)));
    }
    return append_given(walk_.builder(), given_.backward, inputs);
  }

  // The results of the program do not depend on the tangents. Its gradient by them does not either, because the
  // program is linear in them.
  std::vector<ValueId> of_tangents() {
    walk_.put_in_place_of(id_, [&](Builder& at) {
      std::vector<ValueId> inputs = operands_;
      for (size_t i = 0; i < operands_.size(); ++i) {
        if (given_.has_gradient[i]) inputs.push_back(build_zeros(at, TensorType(module_.type(operands_[i]))));
      }
      return append_given(at, *given_.tangents, inputs);
    });
    Builder scratch(module_, module_.add_region(), walk_.builder().loc());
    std::vector<ValueId> inputs = operands_, variables, seeds;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!given_.has_gradient[i]) continue;
      variables.push_back(module_.add_argument(scratch.region(), module_.value(operands_[i]).type));
      inputs.push_back(variables.back());
    }
    const std::vector<ValueId> made = append_given(scratch, *given_.tangents, inputs);
    for (uint32_t i = 0; i < count_; ++i) {
      if (given_.has_cotangent[i]) seeds.push_back(walk_.cotangent_of_result(module_.result(id_, i)));
    }
    const MatchesVarying matches(false);  // the walk around sums what reaches the operands
    const Gradients gradients = append_vjp_without_zeros(scratch, std::span(made).subspan(count_), seeds, variables);
    move_needed_ops(walk_.builder(), scratch.region(), gradients.values);
    return gradients.values;
  }

  ReverseWalk& walk_;
  Module& module_;
  OpId id_;
  std::vector<ValueId> operands_;
  uint32_t count_;
  GivenDerivative given_;
};

}  // namespace

void differentiate_given(ReverseWalk& walk, OpId id) { GivenGradient(walk, id).run(); }

}  // namespace shardwise
