// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/gather_and_slice.h"

#include "shardwise/cost/collective_cost.h"

namespace shardwise {

ReshardPlan gather_and_slice(const ReshardProblem& problem) {
  ReshardPlan plan;
  const size_t ndim = problem.shape.size();
  Placement now = problem.from;
  // The meshes have the same devices, and differ in their names at most.
  now.mesh = problem.to.mesh;
  ReshardStep reduce{.move = ReshardMove::kAllReduce, .dim_axes = {}, .reduced = {}, .dim_moves = {}, .after = {}};
  reduce.reduced = difference(now.unreduced, problem.to.unreduced);
  if (!reduce.reduced.empty()) {
    now.unreduced = problem.to.unreduced;
    now.reducer = problem.to.reducer;
    reduce.bytes = all_reduce_bytes(problem.tile_bytes(now), product(reduce.reduced));
    reduce.after = now;
    add_step(plan, std::move(reduce));
  }

  ReshardStep gather{.move = ReshardMove::kAllGather, .dim_axes = {}, .reduced = {}, .dim_moves = {}, .after = {}};
  ReshardStep slice{.move = ReshardMove::kSlice, .dim_axes = {}, .reduced = {}, .dim_moves = {}, .after = problem.to};
  const double tile = problem.tile_bytes(now);
  bool gathers = false;
  int64_t gathered = 1;
  int64_t sliced = 0;
  for (size_t d = 0; d < ndim; ++d) {
    const AxisList &from = problem.from.dims[d].axes, &to = problem.to.dims[d].axes;
    // [{"x", "y"}] -> [{"x", "z"}]: "x" stays, "y" is gathered and "z" is sliced.
    AxisList stay = greatest_common_prefix(from, to);
    const auto block_after = [&](const AxisList& kept) {
      const int64_t parts = product(from) / product(kept);
      // A whole dim has no padding. A shard of the kept axes has the blocks of its parts: two blocks of 3 rows make 6.
      if (product(kept) == 1) return problem.shape[d];
      return std::min(problem.from.dims[d].block * parts, problem.shape[d]);
    };
    const int64_t new_parts = product(to) / product(stay);
    // The kept shards can be sliced only if that gives the blocks of the target: 17 rows in blocks of 5 on x=4 have no
    // two equal parts for y=2, so the dim is gathered whole.
    if (product(stay) > 1 &&
        (block_after(stay) % new_parts != 0 || block_after(stay) / new_parts != problem.to.dims[d].block)) {
      stay.clear();
    }
    gather.dim_axes.push_back(*without_prefix(from, stay));
    slice.dim_axes.push_back(*without_prefix(to, stay));
    if (!gather.dim_axes[d].empty()) now.dims[d].block = block_after(stay);
    gathers = gathers || stay != from;
    now.dims[d].axes = std::move(stay);
    gathered *= product(gather.dim_axes[d]);
    sliced += static_cast<int64_t>(slice.dim_axes[d].size());
  }
  if (gathers) {
    gather.bytes = all_gather_bytes(tile, gathered);
    gather.after = now;
    add_step(plan, std::move(gather));
  }
  if (sliced > 0) add_step(plan, std::move(slice));
  return plan;
}

}  // namespace shardwise
