// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/batch/undeclared_axes.h"

#include <optional>
#include <utility>

#include "shardwise/mesh/sharding_text.h"
#include "shardwise/transforms/batch/batch_dependence.h"
#include "shardwise/transforms/batch/cotangent_sums.h"
#include "shardwise/transforms/batch/manual_axes.h"

namespace shardwise {

std::vector<std::vector<std::string>> undeclared_axes(const OpView& op, const std::vector<std::string>& around) {
  const Module& module = op.module();
  std::vector<std::vector<std::string>> undeclared(op.result_count());
  const MeshPtr mesh = ManualAxes(op, BatchAxes()).axes().mesh();
  if (mesh == nullptr) return undeclared;
  AxisList outer;
  for (const std::string& name : around) {
    if (const std::optional<int> axis = mesh->find_axis(name)) outer.push_back(full_axis(*mesh, *axis));
  }
  const ManualAxes manual(op, BatchAxes().with(mesh, outer));
  // The computation's own axes only: a value from around it is equal along them.
  const CotangentSums sums = find_cotangent_sums(op, manual);
  BatchDependence dependence(module, manual.axes(), [](ValueId) { return AxisSet{0}; });
  dependence.use_sums(sums);
  const std::vector<AxisSet> sets = dependence.manual_results(op.id(), manual);
  for (size_t i = 0; i < sets.size(); ++i) {
    const TensorSharding& sharding = manual.sharding(op.result(i));
    AxisSet named = manual.of(sharding);
    for (const AxisRef& ref : sharding.unreduced) named |= manual.axes().inside(ref);
    for (const AxisRef& ref : manual.axes().refs(sets[i] & ~named & ~manual.around())) {
      std::string text = ref.size == mesh->axis_size(ref.axis) ? mesh->axis_name(ref.axis) : axis_text(*mesh, ref);
      undeclared[i].push_back(std::move(text));
    }
  }
  return undeclared;
}

}  // namespace shardwise
