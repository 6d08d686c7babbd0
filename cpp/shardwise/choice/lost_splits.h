// SPDX-License-Identifier: Apache-2.0
//
// Splits that values lose on their way: why all devices along an axis compute the same, where a dim was split before.
//
//   %x: 8x512x32, [{"data"}, {}, {}]
//   while … do {
//     %m = dynamic_slice %x, %i, 0, 0    lost here, kRow: each trip reads a row of dim 0, which "data" splits. If "data"
//                                        split dim 1 of %x, it would split dim 1 of %m
//     %h = dot_general %m, %w            the same on all devices along "data", because of the dynamic_slice
//     %s = reduce %h, …                  sums over that dim, so that the split ends here in any case
//   }
//
// Shardings are those of propagation: each op is free to compute in another one, but a split that propagation has lost is
// lost for all that follows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "shardwise/choice/op_work.h"
#include "shardwise/choice/program_placements.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

class LostSplits {
 public:
  LostSplits(const Module& module, ProgramPlacements& placements) : module_(module), placements_(placements) {}
  // The op that loses the split, so that all devices along the axis repeat the work; none if its operands come from
  // whole values.
  std::optional<LostSplit> of(OpId op, const AxisRef& axis);

 private:
  static constexpr int32_t kNone = -1;
  // A dim that would be split if the loss did not exist.
  struct Carried {
    int32_t lost = kNone;
    size_t dim = 0;
  };
  struct AlongAxis {
    std::vector<LostSplit> lost;
    std::vector<Carried> values;  // by value
    std::vector<int32_t> ops;     // by op
  };

  AlongAxis follow(const AxisRef& axis);
  void follow_op(AlongAxis& along, const OpView& op, const AxisRef& axis);
  void enter_loop(AlongAxis& along, const OpView& loop) const;
  Carried carried(const AlongAxis& along, ValueId value) const;
  void carry(AlongAxis& along, const OpView& op, FactorId factor, int32_t lost) const;
  std::optional<size_t> split_dim(ValueId value, const AxisRef& axis);
  std::optional<LostSplit> lost_at(const OpView& op, size_t operand, size_t dim, const AxisRef& axis);
  int64_t other_dim(const OpView& op, size_t operand, size_t dim, int64_t parts);

  const Module& module_;
  ProgramPlacements& placements_;
  std::map<AxisRef, AlongAxis> by_axis_;
};

}  // namespace shardwise
