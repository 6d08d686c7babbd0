// SPDX-License-Identifier: Apache-2.0
//
// Why a tensor of an op did not get an axis that another tensor of it has on the same factor.
//
//   %0 = add %x, %y            %x: [{"a", ?}p1, {?}]   %y: [{?}, {"a", ?}]   %0: [{?}, {"a", ?}]
//
//   judge({add, own: result 0, other: operand 0, factor i, "a"}, …)
//       "the axis shards result 0 dim 1", by the rule "priority 0 goes before 1"; it lost to "a" of argument %y
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/explanation/lost_axis.h"
#include "shardwise/propagation/propagate_factors.h"

namespace shardwise {

class AxisJudge {
 public:
  AxisJudge(const Module& module, AxisHistory& history, AxisTracer& tracer, const Mesh& mesh)
      : module_(module), history_(history), tracer_(tracer), mesh_(mesh) {}

  struct Case {
    OpId op;
    uint32_t result = 0;  // of main, where there is no op
    size_t own = 0, other = 0;
    FactorId factor = 0;
    AxisRef axis;
  };

  // Fills reason, rule and winner.
  void judge(const Case& at, const FactorProjection& projection, LostAxis& lost);

 private:
  static void say(LostAxis& lost, std::string reason, std::string rule);
  static void append(std::vector<AxisOrigin>& list, const std::vector<AxisOrigin>& more);
  bool op_keeps_it(const Case& at, const ShardingRule& rule, LostAxis& lost) const;
  // Whether tensor `t` shards no dim along the axis.
  bool is_kept_out(const Case& at, size_t t, const FactorProjection& projection, const std::vector<Holder>& tensors,
                   LostAxis& lost) const;
  // Whether the dim of tensor `t` takes no axes on the factor.
  bool has_no_room(const Case& at, size_t t, const FactorProjection& projection, const std::vector<Holder>& tensors,
                   LostAxis& lost) const;
  // Whether tensor `t`, which would have to take the axis before or with the one of the case, cannot.
  bool refused(const Case& at, size_t t, const FactorProjection& projection, const std::vector<Holder>& tensors,
               LostAxis& lost) const;
  // As propagation has it.
  bool is_elementwise_here(OpId op) const;
  // Whether another dim of tensor `t` has the axis.
  bool taken(const Case& at, size_t t, const FactorProjection& projection, const std::vector<Holder>& tensors,
             LostAxis& lost);
  // Why `winner` came to `dim` of the value before the axis of the case came to the dim of the case, which may be the
  // same one.
  std::string precedence(const Case& at, const std::vector<Holder>& tensors, size_t dim, const AxisRef& winner);
  // Which factor an op looks at first: propagate_factors.h.
  std::optional<std::string> order_of_factors(const Case& at, size_t won, size_t dim, const AxisRef& winner);
  // The largest tensor, the first of several, that has the axis on the factor.
  struct Offer {
    int64_t size = 0;
    int64_t shards = 1;
    size_t tensor = 0;
  };
  static Offer largest_offer(const FactorProjection& projection, FactorId factor, const AxisRef& axis);
  const PropagationStep* first_offer(const Holder& holder, size_t dim, const AxisRef& axis, size_t from) const;
  // In which the op speaks along the factor.
  int first_round(OpId op, const Factor& factor) const;
  std::optional<Annotation> first_said(const Holder& holder) const;
  std::optional<Annotation> first_closed(const Holder& holder, size_t dim) const;

  const Module& module_;
  AxisHistory& history_;
  AxisTracer& tracer_;
  const Mesh& mesh_;
};

std::string_view kept_back(Direction allowed);  // by a barrier
inline constexpr std::string_view kBarrierRule = "the direction that the op allows";

}  // namespace shardwise
