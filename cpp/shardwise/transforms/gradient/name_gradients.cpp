// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/name_gradients.h"

#include <algorithm>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

constexpr std::string_view kGradientOf = "gradient of ";

class GradientNames {
 public:
  GradientNames(Module& module, uint32_t first_made) : module_(module), first_made_(first_made) {
    reads_.resize(module.value_count());
    for (uint32_t op = first_made; op < module.op_count(); ++op) {
      count(module.operands(OpId{op}));
      for (const RegionId region : module.regions(OpId{op})) count(module.region(region).results);
    }
  }

  // Chains of sums are as long as programs: no recursion.
  void name(ValueId gradient, const std::string& name) {
    open_ = {gradient};
    while (!open_.empty()) {
      const ValueId value = open_.back();
      open_.pop_back();
      name_maker(value, name);
    }
  }

 private:
  void name_maker(ValueId value, const std::string& name) {
    const OpId id = module_.value(value).op;
    if (!id || id.index < first_made_) return;
    const OpView op(module_, id);
    switch (op.def().regions) {
      case Regions::kLoop: return follow_loop(op, value);
      case Regions::kBranches:
      case Regions::kInline: return follow_regions(op, module_.value(value).index);
      case Regions::kManual:
      case Regions::kNone:
      case Regions::kCombiner:
      case Regions::kCall: break;
    }
    // Constants are shared, and the results of one op have one location.
    if (op.operand_count() == 0 || module_.op(id).result_count != 1) return;
    LocId& loc = module_.op(id).loc;
    loc = module_.context().named_location(name, module_.context().without_names(loc));
    const Linear linear = op.def().linear.kind;
    const size_t passed = linear == Linear::kJoint ? op.operand_count()
                          : linear == Linear::kFirst || linear == Linear::kDividend || op.operand_count() == 1 ? 1
                                                                                                               : 0;
    for (size_t i = 0; i < passed; ++i) follow(op.operand(i));
  }

  void count(std::span<const ValueId> values) {
    for (const ValueId value : values) ++reads_[value.index];
  }

  // A value that others read as well keeps its name.
  void follow(ValueId value) {
    if (reads_[value.index] == 1) open_.push_back(value);
  }

  void follow_loop(const OpView& loop, ValueId value) {
    const LoopParts parts = loop_parts(loop);
    for (const LoopParts::Carry& carry : parts.carries) {
      if (carry.result == value) follow(carry.next);
    }
    for (const LoopParts::Output& output : parts.outputs) {
      if (output.stack == value) follow(output.row);
    }
  }

  void follow_regions(const OpView& op, uint32_t index) {
    for (const RegionId region : op.regions()) follow(module_.region(region).results[index]);
  }

  Module& module_;
  uint32_t first_made_;
  std::vector<int64_t> reads_;  // by value, of ops that belong to the gradients
  std::vector<ValueId> open_;   // values whose makers are not named yet
};

}  // namespace

std::string gradient_name(std::string_view argument) { return str(kGradientOf, argument); }

bool is_gradient_name(std::string_view name) { return name.starts_with(kGradientOf); }

void name_gradients(Module& module, std::span<const ValueId> gradients, std::span<const std::string> names,
                    uint32_t first_made) {
  check_internal(gradients.size() == names.size(), "one name per gradient");
  GradientNames names_of(module, first_made);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!names[i].empty()) names_of.name(gradients[i], names[i]);
  }
}

}  // namespace shardwise
