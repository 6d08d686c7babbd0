// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/flatten_combiners.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/shared/region_tiles.h"

namespace shardwise {
namespace {

class CombinerFlattener {
 public:
  explicit CombinerFlattener(Module& module) : module_(module), rewrite_(module) {}

  void flatten(RegionId region) {
    const std::vector<OpId> ops = module_.region(region).ops;  // a copy: ops of branches join the list
    for (const OpId id : ops) {
      const OpView op(module_, id);
      if (op.def().regions == Regions::kBranches) {
        select_results(id);
      } else if (is_scalar_copy(op)) {
        rewrite_.replace(id, std::array{op.operand(0)});
      }
    }
    rewrite_.commit();
  }

 private:
  void select_results(OpId id) {
    const std::vector<RegionId> branches(module_.regions(id).begin(), module_.regions(id).end());
    for (const RegionId branch : branches) {
      flatten(branch);
      rewrite_.move_ops(branch, rewrite_.before(id));
    }
    const std::vector<ValueId> results =
        rewrite_.insert(rewrite_.before(id), module_.op(id).loc, [&](Builder& builder) {
          const ValueId chosen = OpView(module_, id).operand(0);
          // The last branch is also that of an index out of range.
          std::vector<ValueId> selected = module_.region(branches.back()).results;
          for (size_t branch = branches.size() - 1; branch-- > 0;) {
            const ValueId is_this =
                module_.type(chosen).dtype == DType::kBool ? chosen : equals(builder, chosen, branch);
            for (size_t i = 0; i < selected.size(); ++i) {
              const ValueId own = module_.region(branches[branch]).results[i];
              selected[i] = builder.create("stablehlo.select", {is_this, own, selected[i]});
            }
          }
          return selected;
        });
    rewrite_.replace(id, results);
  }

  static ValueId equals(Builder& builder, ValueId index, size_t branch) {
    const DType dtype = builder.module().type(index).dtype;
    const Scalar number = Scalar::of_int(dtype, static_cast<int64_t>(branch));
    return build_compare(builder, "EQ", index, build_splat(builder, {}, number), "SIGNED");
  }

  Module& module_;
  Rewrite rewrite_;
};

bool is_flat(const Module& module, RegionId region) {
  return std::ranges::none_of(module.region(region).ops, [&](OpId id) {
    const OpView op(module, id);
    return op.def().regions == Regions::kBranches || is_scalar_copy(op);
  });
}

}  // namespace

void flatten_combiners(Module& module) {
  std::vector<RegionId> found;
  walk(module, [&](OpId id) {
    if (module.op(id).def->regions != Regions::kCombiner) return;
    for (const RegionId region : module.regions(id)) {
      if (!is_flat(module, region)) found.push_back(region);
    }
  });
  for (const RegionId region : found) CombinerFlattener(module).flatten(region);
}

}  // namespace shardwise
