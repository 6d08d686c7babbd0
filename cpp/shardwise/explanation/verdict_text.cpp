// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/verdict_text.h"

#include "shardwise/base/text.h"
#include "shardwise/ir/value_names.h"

namespace shardwise {
namespace {

constexpr std::string_view kInCommon = "tensors that disagree about a dim keep what they have in common";
constexpr std::string_view kPartsDivide = "a dim that an op takes apart is split where its parts divide";

}  // namespace

VerdictText verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kTaken: break;
    case Verdict::kNotVisited: return {"propagation skips the op", "unused ops are not propagated"};
    case Verdict::kBlockedFactor: return {"the op does not propagate along this dim", "the op's sharding rule"};
    case Verdict::kBlockedByOption:
      return {"the op does not propagate along this dim", "conservative propagation causes no communication"};
    case Verdict::kLaterRound: return {"the op takes no part in this round", "the rounds of the op"};
    case Verdict::kDirection: return {"", "the direction that the op allows"};
    case Verdict::kDifferentMeshes:
      return {"the tensors of the op are on different meshes", "axes pass between tensors of one mesh only"};
    case Verdict::kOverflow: return {"it does not divide the part of size {size} of the dim", kPartsDivide};
    case Verdict::kDisagreement: return {"the tensors of the op disagree", kInCommon};
    case Verdict::kOtherAxes: return {"the dim is sharded along {axes} already", kInCommon};
    case Verdict::kOtherFactor: return {"the axis shards {place}", "basic propagation resolves no conflicts"};
    case Verdict::kReplicated:
      return {"its annotation lists the axis as replicated", "replicated axes shard no dim of the value"};
    case Verdict::kUnreduced:
      return {"the value is unreduced along the axis", "unreduced axes shard no dim of the value"};
    case Verdict::kClosedDim: return {"an annotation closes the dim", "closed dims take no further axes"};
    case Verdict::kUneven: return {"a part of size {size} of the dim cannot be split along it evenly", kPartsDivide};
    case Verdict::kPartBefore:
      return {"the part of size {size} before it in the dim is not fully split",
              "a part of a dim is split only if those before it are fully split"};
    case Verdict::kPartialAxis: return {"it is a part of an axis", "conservative propagation moves whole axes only"};
    case Verdict::kResultCannot:
      return {"{place} cannot take it: ", "an elementwise operand may only use axes that its result can use"};
  }
  return {};
}

std::string filled(std::string_view text, std::string_view placeholder, std::string_view value) {
  std::string result(text);
  const std::string name = str("{", placeholder, "}");
  if (const size_t at = result.find(name); at != std::string::npos) result.replace(at, name.size(), value);
  return result;
}

std::string_view direction_text(Direction allowed) {
  return allowed == Direction::kNone ? "the barrier blocks propagation"
                                     : "the barrier blocks propagation in this direction";
}

// In the order of order_candidates (propagate_factors.cpp): size, then shards, then position.
std::string order_text(const CandidateSource& first, const CandidateSource& second, size_t operands) {
  if (first.size > second.size) {
    return "of two factors that want an axis, the one whose axes come from the larger tensor goes first";
  }
  if (first.size < second.size) return {};
  const std::string equal = "of two factors that want an axis, and whose axes come from tensors of the same size, ";
  if (first.shards != second.shards) return equal + "the one with more shards goes first";
  if (first.tensor >= second.tensor) return {};
  return equal + str("that of ", tensor_text(operands, first.tensor), " goes before that of ",
                     tensor_text(operands, second.tensor));
}

}  // namespace shardwise
