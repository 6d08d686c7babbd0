// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/batch/rule_of_rows.h"

#include <utility>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

std::optional<RuleAttr> with_rows(RuleAttr rule, const OpView& example, const OpView& of_rows, int64_t rows) {
  if (example.operand_count() != of_rows.operand_count()) return std::nullopt;
  const int64_t factor = std::ssize(rule.sizes);
  rule.sizes.push_back(rows);
  const auto add = [&](RuleAttr::Mapping& dims, const Dims& shape, const Dims& batched) {
    if (batched == shape) return true;
    if (batched != with_leading(rows, shape)) return false;
    dims.insert(dims.begin(), Dims{factor});
    return true;
  };
  for (size_t i = 0; i < example.operand_count(); ++i) {
    if (!add(rule.operands[i], example.operand_type(i).shape, of_rows.operand_type(i).shape)) return std::nullopt;
  }
  for (size_t i = 0; i < example.result_count(); ++i) {
    if (!add(rule.results[i], example.result_type(i).shape, of_rows.result_type(i).shape)) return std::nullopt;
  }
  return rule;
}

}  // namespace

RuleOfExample::RuleOfExample(Module& module, OpId example)
    : module_(module), example_(example), attrs_(module.op(example).attrs) {
  const auto* rule = module.attrs(example).find<RuleAttr>(text_words::kShardingRule);
  if (rule == nullptr) return;
  rule_ = *rule;
  Attrs others = module.attrs(example);
  others.erase(text_words::kShardingRule);
  module.op(example).attrs = module.context().intern(others);
}

RuleOfExample::~RuleOfExample() {
  if (rule_) module_.op(example_).attrs = attrs_;
}

void RuleOfExample::add_to(OpId of_rows, int64_t rows) const {
  if (!rule_ || !of_rows || module_.op(of_rows).def != module_.op(example_).def) return;
  std::optional<RuleAttr> rule = with_rows(*rule_, OpView(module_, example_), OpView(module_, of_rows), rows);
  if (!rule) return;
  Attrs attrs = module_.attrs(of_rows);
  attrs.set(text_words::kShardingRule, *std::move(rule));
  module_.op(of_rows).attrs = module_.context().intern(attrs);
}

}  // namespace shardwise
