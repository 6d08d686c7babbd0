// SPDX-License-Identifier: Apache-2.0
//
// The sentences of explanations: for each verdict of propagation, why an axis was not taken and which rule decided.
//
//   verdict_text(Verdict::kOtherFactor)     {"the axis shards {place}", "basic propagation resolves no conflicts"}
//   filled("the axis shards {place}", "place", "result 0 dim 1")     "the axis shards result 0 dim 1"
#pragma once

#include <string>
#include <string_view>

#include "shardwise/propagation/axis_observer.h"
#include "shardwise/propagation/propagate_factors.h"

namespace shardwise {

struct VerdictText {
  std::string_view reason;  // {place}: the blocking dim; {size}: of the blocking factor; {axes}: those of the dim
  std::string_view rule;
};
VerdictText verdict_text(Verdict verdict);
std::string filled(std::string_view text, std::string_view placeholder, std::string_view value);

std::string_view direction_text(Direction allowed);  // what a barrier keeps back

// Why the factor of `first` is looked at before that of `second`; "" where their sources do not decide.
std::string order_text(const CandidateSource& first, const CandidateSource& second, size_t operands);

}  // namespace shardwise
