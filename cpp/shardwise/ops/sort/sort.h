// SPDX-License-Identifier: Apache-2.0
//
// sort: several tensors alike along one dim, by a comparator of their rows. Always stable.
//
//   %1:2 = "stablehlo.sort"(%0, %iota) <{dimension = 1 : i64, is_stable = true}> ({…})
//       : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
//   ([i, j], [i, j])->([i, j], [i, j]) {i=4, j=8} need_replication={j}
//
// With dim 1 sharded {"x"} and dim 0 free, the axes move to dim 0 and back: two all_to_alls. Otherwise dim 1 is
// gathered. Comparators by keys (comparators.h) sort typed integers; any other one is evaluated pair by pair.
#pragma once

#include <span>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/sort/comparators.h"

namespace shardwise {

std::span<const OpDef> sort_ops();

int64_t sorted_dim(const Attrs& attrs, int64_t ndim);
std::optional<Kernel> prepare_sort(const OpView& op, const KernelTypes& types);
// The first k elements of each row in a stable order by a key of operand 0, and their places in the row (int32).
Kernel select_first(const SortKey& key, int64_t k);
// `values` in the order that sorts the integers of `keys` along `dim`, ascending. So the elements that a sort of an
// iota into `keys` moved go back.
std::vector<ValueId> build_sort_by(Builder& builder, ValueId keys, std::span<const ValueId> values, int64_t dim);

}  // namespace shardwise
