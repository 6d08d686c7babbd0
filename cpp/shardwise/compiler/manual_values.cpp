// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/manual_values.h"

#include <algorithm>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {
namespace {

bool is_manual(const Module& module, OpId id) { return module.op(id).def->regions == Regions::kManual; }

// The innermost manual region around an op, or none.
OpId manual_around(const Module& module, OpId id) {
  OpId around = module.region(module.op(id).parent).op;
  while (around && !is_manual(module, around)) around = module.region(module.op(around).parent).op;
  return around;
}

// `rows` may have a dim more in front.
bool is_suffix(const Dims& dims, const Dims& rows) {
  return rows.size() <= dims.size() + 1 && rows.size() >= dims.size() &&
         std::equal(dims.rbegin(), dims.rend(), rows.rbegin());
}

}  // namespace

ManualValues::ManualValues(const Module* traced) : traced_(traced) {
  const auto is_region = [](const OpDef& def) { return def.regions == Regions::kManual; };
  if (traced == nullptr || !any_op(*traced, is_region)) return;
  walk(*traced, [&](OpId id) {
    if (manual_around(*traced, id)) ops_[traced->op(id).loc.index].push_back(id);
  });
}

std::optional<ManualValue> ManualValues::find(const Module& propagated, ValueId value) const {
  const OpId made = propagated.value(value).op;
  const auto found = made ? ops_.find(propagated.op(made).loc.index) : ops_.end();
  if (found == ops_.end()) return std::nullopt;
  const Dims& rows = propagated.type(value).shape;
  // One location may have several ops: those that make up a function, and the steps of a collective.
  ValueId best;
  for (const OpId id : found->second) {
    for (uint32_t i = 0; i < traced_->op(id).result_count; ++i) {
      const ValueId result = traced_->result(id, i);
      if (!is_suffix(traced_->type(result).shape, rows)) continue;
      const bool is_equal = traced_->op(id).def == propagated.op(made).def && i == propagated.value(value).index;
      if (!best || is_equal) best = result;
    }
  }
  if (!best) return std::nullopt;
  const OpId region = manual_around(*traced_, traced_->value(best).op);
  return ManualValue{.axes = axes_around(traced_->value(best).op),
                     .type = traced_->type(best).text(),
                     .location = traced_->context().location_text(traced_->op(region).loc),
                     .differs = rows.size() > traced_->type(best).shape.size()};
}

// Those of the outer regions first.
std::vector<std::string> ManualValues::axes_around(OpId op) const {
  std::vector<std::string> axes;
  for (OpId region = manual_around(*traced_, op); region; region = manual_around(*traced_, region)) {
    std::vector<std::string> own;
    for (const auto& axis : traced_->attrs(region).get<AxesAttr>("manual_axes").axes) own.push_back(axis.name);
    axes.insert(axes.begin(), own.begin(), own.end());
  }
  return axes;
}

}  // namespace shardwise
