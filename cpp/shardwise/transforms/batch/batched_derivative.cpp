// SPDX-License-Identifier: Apache-2.0
//
// The derivative that comes with a function, for a batch of examples or the rows of a manual computation: its programs,
// batched.
//
//   backward(%r, %dy) → %dx, %dw           w is the same for all examples
//   batched: %dx for each example, and the sum of %dw over the examples
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/transforms/batch/batch_walk.h"
#include "shardwise/transforms/gradient/given_derivatives.h"

namespace shardwise {
namespace {

// The sum over the rows along the axes of `from` that `to` lacks.
ValueId sum_rows(Builder& builder, const BatchAxes& axes, ValueId value, AxisSet from, AxisSet to) {
  if (from == to) return value;
  const Dims row = shape_of_row(builder.module(), value, from);
  const std::vector<size_t> members = axes.members(from);
  Dims summed;
  for (size_t i = 0; i < members.size(); ++i) {
    if (!has_axis(to, members[i])) summed.push_back(static_cast<int64_t>(i));
  }
  const ValueId apart = build_reshape(builder, value, joined(axes.sizes(from), row));
  const ValueId sum = build_reduce(builder, apart, {}, Reducer::kSum, summed);
  return build_reshape(builder, sum, axes.with_rows(to, row));
}

class Programs {
 public:
  Programs(Module& module, const GivenDerivative& given, const BatchedDerivative& batched)
      : module_(module), given_(given), batched_(batched) {
    for (const AxisSet set : batched.operands) all_ |= set;
    for (size_t i = 0; i < given.has_gradient.size(); ++i) {
      if (given.has_gradient[i]) of_gradients_.push_back(batched.operands[i]);
    }
    for (size_t i = 0; i < given.has_cotangent.size(); ++i) {
      if (given.has_cotangent[i]) of_cotangents_.push_back(batched.results[i]);
    }
  }

  GivenDerivative run() {
    GivenDerivative made = given_;
    if (given_.tangents) {
      made.tangents = program(*given_.tangents, joined_sets(batched_.operands, of_gradients_),
                              joined_sets(batched_.results, of_cotangents_), {});
      return made;
    }
    std::vector<AxisSet> residuals;
    made.forward = program(given_.forward, batched_.operands, batched_.results, [&](AxisSet set) {
      residuals.push_back(set);
      return set;
    });
    made.backward = program(given_.backward, joined_sets(residuals, of_cotangents_), of_gradients_, {}, true);
    return made;
  }

 private:
  static std::vector<AxisSet> joined_sets(std::vector<AxisSet> first, const std::vector<AxisSet>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  // `results`: the rows of the first ones; `further` chooses those of the others.
  GivenProgram program(const GivenProgram& of_row, const std::vector<AxisSet>& operands,
                       const std::vector<AxisSet>& results, const std::function<AxisSet(AxisSet)>& further,
                       bool sums = false) {
    const BatchAxes& axes = batched_.axes;
    const RegionId region = module_.add_region();
    Builder builder(module_, region, {});
    BatchWalk walk(builder, axes);
    const std::vector<ValueId> arguments = module_.region(of_row.body).arguments;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Value known = module_.value(arguments[i]);
      const TensorType type = module_.type(arguments[i]);
      const TypeId wanted = module_.context().tensor(type.dtype, axes.with_rows(operands[i], type.shape));
      walk.map(arguments[i], module_.add_argument(region, wanted, known.loc), operands[i]);
    }
    walk.run(of_row.body);
    std::vector<ValueId> made;
    std::vector<AxisSet> made_sets;
    const std::vector<ValueId> of_rows = module_.region(of_row.body).results;
    for (size_t i = 0; i < of_rows.size(); ++i) {
      const AxisSet has = walk.varies(of_rows[i]);
      const AxisSet wanted = i < results.size() ? results[i] : further(has);
      // Each row of the op adds to the gradient of an operand that is the same for several rows.
      const AxisSet rows = sums ? has | wanted | all_ : has | wanted;
      const ValueId value = walk.image(of_rows[i], rows);
      made.push_back(sums ? sum_rows(builder, axes, value, rows, wanted)
                          : take_first_rows(builder, axes, value, rows, wanted));
      made_sets.push_back(wanted);
    }
    module_.region(region).results = made;
    GivenProgram program{.name = of_row.name, .derivative = {}, .body = region};
    if (of_row.derivative) {
      program.derivative =
          batched_number(*of_row.derivative, {.axes = axes, .operands = operands, .results = made_sets});
    }
    return program;
  }

  Module& module_;
  const GivenDerivative& given_;
  const BatchedDerivative& batched_;
  std::vector<AxisSet> of_gradients_, of_cotangents_;
  AxisSet all_ = 0;  // of the operands
};

}  // namespace

GivenDerivative batch_derivative(Module& module, const GivenDerivative& given, const BatchedDerivative& batched) {
  return Programs(module, given, batched).run();
}

}  // namespace shardwise
