// SPDX-License-Identifier: Apache-2.0
//
// Gradients that come with a function, in place of those of its ops. A named computation refers to one by number:
//
//   %y = sdy.named_computation<"f">(%x) {shardwise.derivative = 3} …
//
//   %y, %r = sdy.named_computation<"f_forward">(%x) {shardwise.derivative = 4} …         in its place
//   %dx = sdy.named_computation<"f_backward">(%r, %dy) {shardwise.derivative = 5} …
//
// Both programs have given gradients themselves, so they can be differentiated again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

inline constexpr std::string_view kDerivativeAttr = "shardwise.derivative";

struct GivenProgram {
  std::string name;
  int64_t derivative = 0;
  RegionId body;
};

struct GivenDerivative {
  GivenProgram forward;             // operands of the op → its results, then the residuals
  GivenProgram backward;            // residuals, then the cotangents of the results that have one → gradients
  std::vector<bool> has_gradient;   // by operand
  std::vector<bool> has_cotangent;  // by result
};

// Makes the regions of a derivative in the module.
using DerivativeSource = std::function<GivenDerivative(Module& module, int64_t number)>;

// While it lives, gradients on this thread use these derivatives.
class GivenDerivatives {
 public:
  explicit GivenDerivatives(DerivativeSource source);
  ~GivenDerivatives();
  GivenDerivatives(const GivenDerivatives&) = delete;
  GivenDerivatives& operator=(const GivenDerivatives&) = delete;

 private:
  DerivativeSource source_;
  const DerivativeSource* outer_;
};

}  // namespace shardwise
