// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/collectives/varying.h"
#include "shardwise/transforms/gradient/backward_split.h"
#include "shardwise/transforms/gradient/differentiate.h"
#include "shardwise/transforms/gradient/differentiate_regions.h"
#include "shardwise/transforms/gradient/reverse_walk.h"

namespace shardwise {
namespace {

// A branch and its gradient in one region.
struct JointBranch {
  RegionId region;
  std::vector<ValueId> results;
  std::vector<ValueId> gradients;  // of the captured values; none: nothing flows
  BackwardSplit split = {};
  std::vector<uint32_t> places = {};  // of the saved values, among the results of the op
};

class BranchGradient {
 public:
  BranchGradient(ReverseWalk& walk, OpId op) : walk_(walk), module_(walk.module()), id_(op) {
    for (const ValueId value : captures_of(module_, op)) {
      if (walk.is_active(value)) captured_.push_back(value);
    }
    for (const ValueId result : results_of(module_, op)) cotangents_.push_back(walk.cotangent_of_result(result));
  }

  void run() {
    const std::vector<RegionId> regions(module_.regions(id_).begin(), module_.regions(id_).end());
    for (const RegionId region : regions) branches_.push_back(build_joint(region));
    keep_reached();
    if (captured_.empty()) return;
    for (JointBranch& branch : branches_) assign_places(branch);
    append_backward(slots_.empty() ? id_ : save());
  }

 private:
  JointBranch build_joint(RegionId original) {
    Builder builder(module_, module_.add_region(), module_.op(id_).loc);
    JointBranch branch{.region = builder.region(), .results = {}, .gradients = {}};
    GraphCopy copy(module_, module_);
    // A copy, because the original runs on if nothing has to be saved.
    copy.ops(original, branch.region);
    const std::vector<ValueId> results = module_.region(original).results;
    for (const ValueId result : results) branch.results.push_back(copy(result));
    const auto first_made = static_cast<uint32_t>(module_.op_count());
    std::vector<ValueId> stand_ins;  // for the cotangents
    for (const ValueId cotangent : cotangents_) {
      // Arguments mark what the split counts as unknown until the backward pass; build_backward puts in the cotangents.
      stand_ins.push_back(cotangent ? module_.add_argument(branch.region, module_.value(cotangent).type) : ValueId{});
    }
    Gradients gradients = append_vjp_without_zeros(builder, branch.results, stand_ins, captured_);
    for (ValueId& result : branch.results) result = gradients.replaced(result);
    branch.gradients = std::move(gradients.values);

    BackwardRegion joint{.region = branch.region,
                         .cotangents = module_.region(branch.region).arguments,
                         .wanted = {},
                         .first_made = first_made,
                         .is_available = [](ValueId) { return false; },
                         .cost = {}};
    joint.cost = [&](ValueId value) {
      const bool is_result = std::ranges::find(branch.results, value) != branch.results.end();
      // A result of the op exists anyway. The cost of 1 keeps the cut from saving more of them than it needs.
      return is_result ? 1 : bytes_of(module_, value);
    };
    for (const ValueId gradient : branch.gradients) {
      if (gradient) joint.wanted.push_back(gradient);
    }
    branch.split = split_backward(module_, joint);
    return branch;
  }

  // Drops the captured values that no branch has a gradient of.
  void keep_reached() {
    std::vector<ValueId> captured;
    for (size_t i = 0; i < captured_.size(); ++i) {
      const auto is_reached = [&](const JointBranch& branch) { return bool{branch.gradients[i]}; };
      if (std::ranges::none_of(branches_, is_reached)) continue;
      // Moves down in place: captured.size() <= i.
      for (JointBranch& branch : branches_) branch.gradients[captured.size()] = branch.gradients[i];
      captured.push_back(captured_[i]);
    }
    captured_ = std::move(captured);
  }

  // A saved value may be a result anyway. Branches share the further results for values of one type: only one of them
  // runs. But a result varies along the manual axes of each branch, so that a value whose cotangent is matched with it has a
  // result of its own.
  void assign_places(JointBranch& branch) {
    const bool may_share = !MatchesVarying::is_on();
    std::vector<bool> is_taken(slots_.size(), !may_share);
    for (const ValueId value : branch.split.saved) {
      const auto result = std::ranges::find(branch.results, value);
      if (may_share && result != branch.results.end()) {
        branch.places.push_back(static_cast<uint32_t>(result - branch.results.begin()));
        continue;
      }
      const TypeId type = module_.value(value).type;
      size_t slot = 0;
      while (slot < is_taken.size() && (is_taken[slot] || slots_[slot] != type)) ++slot;
      if (slot == slots_.size()) {
        slots_.push_back(type);
        is_taken.push_back(false);
      }
      is_taken[slot] = true;
      branch.places.push_back(static_cast<uint32_t>(cotangents_.size() + slot));
    }
  }

  // Puts an op that saves the values in place of the op.
  OpId save() {
    std::vector<RegionId> regions;
    for (const JointBranch& branch : branches_) regions.push_back(build_forward(branch));
    const ValueId selector = module_.operands(id_)[0];
    OpId made;
    walk_.put_in_place_of(id_, [&](Builder& builder) {
      made = builder.create_op(*module_.op(id_).def, {&selector, 1}, module_.op(id_).attrs, {}, regions);
      return results_of(module_, made);
    });
    return made;
  }

  // A copy: the joint region has arguments.
  RegionId build_forward(const JointBranch& branch) {
    Builder builder(module_, module_.add_region(), module_.op(id_).loc);
    GraphCopy copy(module_, module_);
    for (const OpId op : branch.split.forward) copy.op(op, builder.region());
    std::vector<ValueId> results;
    for (const ValueId result : branch.results) results.push_back(copy(result));
    results.resize(results.size() + slots_.size());
    for (size_t i = 0; i < branch.places.size(); ++i) results[branch.places[i]] = copy(branch.split.saved[i]);
    for (size_t i = 0; i < slots_.size(); ++i) {
      ValueId& result = results[cotangents_.size() + i];
      // All branches have the same result types. Nothing reads these zeros: the gradient takes the branch that ran.
      if (!result) result = build_zeros(builder, TensorType(module_.context().type(slots_[i])));
    }
    module_.region(builder.region()).results = std::move(results);
    return builder.region();
  }

  void append_backward(OpId before) {
    Builder& builder = walk_.builder();
    std::vector<RegionId> regions;
    for (const JointBranch& branch : branches_) regions.push_back(build_backward(branch, before));
    const ValueId selector = module_.operands(id_)[0];
    // No attributes: those of the op describe its own results, and these are gradients.
    const OpId made = builder.create_op(*module_.op(id_).def, {&selector, 1}, {}, {}, regions);
    for (uint32_t i = 0; i < captured_.size(); ++i) walk_.accumulate(captured_[i], module_.result(made, i));
  }

  RegionId build_backward(const JointBranch& branch, OpId before) {
    Builder builder(module_, module_.add_region(), module_.op(id_).loc);
    GraphCopy copy(module_, module_);
    size_t argument = 0;
    for (const ValueId cotangent : cotangents_) {
      // The regions of a case have no arguments, so that cotangents and saved values are read from around it.
      if (cotangent) copy.map(module_.region(branch.region).arguments[argument++], cotangent);
    }
    for (size_t i = 0; i < branch.places.size(); ++i) {
      copy.map(branch.split.saved[i], module_.result(before, branch.places[i]));
    }
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
  std::vector<ValueId> captured_;    // active values from around the op that its branches read
  std::vector<JointBranch> branches_;
  std::vector<TypeId> slots_;  // of the further results
};

}  // namespace

void differentiate_branches(ReverseWalk& walk, OpId branches) { BranchGradient(walk, branches).run(); }

}  // namespace shardwise
