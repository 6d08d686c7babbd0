// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/transforms/backward_split.h"
#include "shardwise/transforms/differentiate.h"
#include "shardwise/transforms/differentiate_regions.h"
#include "shardwise/transforms/reverse_walk.h"

namespace shardwise {
namespace {

// A branch and its gradient in one region.
struct JointBranch {
  RegionId region;
  std::vector<ValueId> results;
  std::vector<ValueId> gradients;  // of the captured values; none: nothing flows
  BackwardSplit split = {};
  std::vector<size_t> slots = {};  // of the saved values, among the further results of the op
};

class BranchGradient {
 public:
  BranchGradient(ReverseWalk& walk, OpId op) : walk_(walk), module_(walk.module()), id_(op) {
    find_captured();
    for (uint32_t i = 0; i < module_.op(op).result_count; ++i) {
      cotangents_.push_back(walk.cotangent_of_result(module_.result(op, i)));
    }
  }

  void run() {
    const std::vector<RegionId> regions(module_.regions(id_).begin(), module_.regions(id_).end());
    for (const RegionId region : regions) branches_.push_back(build_joint(region));
    keep_reached();
    if (captured_.empty()) return;
    for (JointBranch& branch : branches_) assign_slots(branch);
    const std::vector<ValueId> saved = slots_.empty() ? std::vector<ValueId>() : save();
    append_backward(saved);
  }

 private:
  // Active values from around the op that its branches read.
  void find_captured() {
    std::unordered_set<ValueId> known;
    for (const RegionId region : module_.regions(id_)) {
      std::unordered_set<RegionId> inside{region};
      walk(module_, region, [&](OpId op) { inside.insert(module_.regions(op).begin(), module_.regions(op).end()); });
      visit_region_reads(module_, region, [&](ValueId value) {
        if (!walk_.is_active(value) || inside.contains(region_of(module_, value))) return;
        if (known.insert(value).second) captured_.push_back(value);
      });
    }
  }

  JointBranch build_joint(RegionId original) {
    Builder builder(module_, module_.add_region(), module_.op(id_).loc);
    JointBranch branch{.region = builder.region(), .results = {}, .gradients = {}};
    GraphCopy copy(module_, module_);
    copy.ops(original, branch.region);
    const std::vector<ValueId> results = module_.region(original).results;
    for (const ValueId result : results) branch.results.push_back(copy(result));
    const auto first_made = static_cast<uint32_t>(module_.op_count());
    std::vector<ValueId> stand_ins;  // for the cotangents
    for (const ValueId cotangent : cotangents_) {
      stand_ins.push_back(cotangent ? module_.add_argument(branch.region, module_.value(cotangent).type) : ValueId{});
    }
    Gradients gradients = append_vjp_without_zeros(builder, branch.results, stand_ins, captured_);
    Redirection replaced(module_);
    for (const auto& [from, to] : gradients.replaced) replaced.add(from, to);
    for (ValueId& result : branch.results) result = replaced(result);
    branch.gradients = std::move(gradients.values);

    BackwardRegion joint{.region = branch.region,
                         .cotangents = module_.region(branch.region).arguments,
                         .wanted = {},
                         .first_made = first_made,
                         .is_available = [](ValueId) { return false; },
                         .cost = [this](ValueId value) { return bytes_of(value); }};
    for (const ValueId gradient : branch.gradients) {
      if (gradient) joint.wanted.push_back(gradient);
    }
    branch.split = split_backward(module_, joint);
    return branch;
  }

  int64_t bytes_of(ValueId value) const {
    const TensorType& type = module_.type(value);
    return 1 + item_size(type.dtype) *
                   std::accumulate(type.shape.begin(), type.shape.end(), int64_t{1}, std::multiplies<>());
  }

  // Drops the captured values that no branch has a gradient of.
  void keep_reached() {
    std::vector<ValueId> captured;
    for (size_t i = 0; i < captured_.size(); ++i) {
      const auto is_reached = [&](const JointBranch& branch) { return bool{branch.gradients[i]}; };
      if (std::ranges::none_of(branches_, is_reached)) continue;
      for (JointBranch& branch : branches_) branch.gradients[captured.size()] = branch.gradients[i];
      captured.push_back(captured_[i]);
    }
    captured_ = std::move(captured);
  }

  // Branches share the results for values of one type: only one of them runs.
  void assign_slots(JointBranch& branch) {
    std::vector<bool> is_taken(slots_.size());
    for (const ValueId value : branch.split.saved) {
      const TypeId type = module_.value(value).type;
      size_t slot = 0;
      while (slot < is_taken.size() && (is_taken[slot] || slots_[slot] != type)) ++slot;
      if (slot == slots_.size()) {
        slots_.push_back(type);
        is_taken.push_back(false);
      }
      is_taken[slot] = true;
      branch.slots.push_back(slot);
    }
  }

  // Puts an op that saves the values in place of the op. Returns its further results.
  std::vector<ValueId> save() {
    Builder& builder = walk_.builder();
    const size_t known = module_.region(builder.region()).ops.size();
    std::vector<RegionId> regions;
    for (const JointBranch& branch : branches_) regions.push_back(build_forward(branch));
    const ValueId selector = module_.operands(id_)[0];
    const OpId made = builder.create_op(*module_.op(id_).def, {&selector, 1}, module_.op(id_).attrs, {}, regions);
    std::vector<ValueId> results;
    for (uint32_t i = 0; i < module_.op(made).result_count; ++i) results.push_back(module_.result(made, i));
    walk_.put_in_place_of(id_, known, std::span(results).first(cotangents_.size()));
    results.erase(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(cotangents_.size()));
    return results;
  }

  // A copy: the joint region has arguments.
  RegionId build_forward(const JointBranch& branch) {
    Builder builder(module_, module_.add_region(), module_.op(id_).loc);
    GraphCopy copy(module_, module_);
    for (const OpId op : branch.split.forward) copy.op(op, builder.region());
    std::vector<ValueId> results;
    for (const ValueId result : branch.results) results.push_back(copy(result));
    std::vector<ValueId> slots(slots_.size());
    for (size_t i = 0; i < branch.slots.size(); ++i) slots[branch.slots[i]] = copy(branch.split.saved[i]);
    for (size_t i = 0; i < slots.size(); ++i) {
      results.push_back(slots[i] ? slots[i] : build_zeros(builder, TensorType(module_.context().type(slots_[i]))));
    }
    module_.region(builder.region()).results = std::move(results);
    return builder.region();
  }

  void append_backward(const std::vector<ValueId>& saved) {
    Builder& builder = walk_.builder();
    std::vector<RegionId> regions;
    for (const JointBranch& branch : branches_) regions.push_back(build_backward(branch, saved));
    const ValueId selector = module_.operands(id_)[0];
    const OpId made = builder.create_op(*module_.op(id_).def, {&selector, 1}, {}, {}, regions);
    for (uint32_t i = 0; i < captured_.size(); ++i) walk_.accumulate(captured_[i], module_.result(made, i));
  }

  RegionId build_backward(const JointBranch& branch, const std::vector<ValueId>& saved) {
    Builder builder(module_, module_.add_region(), module_.op(id_).loc);
    GraphCopy copy(module_, module_);
    size_t argument = 0;
    for (const ValueId cotangent : cotangents_) {
      if (cotangent) copy.map(module_.region(branch.region).arguments[argument++], cotangent);
    }
    for (size_t i = 0; i < branch.slots.size(); ++i) copy.map(branch.split.saved[i], saved[branch.slots[i]]);
    for (const OpId op : branch.split.backward) copy.op(op, builder.region());
    std::vector<ValueId> results;
    for (size_t i = 0; i < captured_.size(); ++i) {
      const ValueId gradient = branch.gradients[i];
      results.push_back(gradient ? copy(gradient) : build_zeros(builder, TensorType(module_.type(captured_[i]))));
    }
    module_.region(builder.region()).results = std::move(results);
    return builder.region();
  }

  ReverseWalk& walk_;
  Module& module_;
  OpId id_;
  std::vector<ValueId> cotangents_;  // by result; none: nothing flows into it
  std::vector<ValueId> captured_;
  std::vector<JointBranch> branches_;
  std::vector<TypeId> slots_;  // of the further results
};

}  // namespace

void differentiate_branches(ReverseWalk& walk, OpId branches) { BranchGradient(walk, branches).run(); }

}  // namespace shardwise
