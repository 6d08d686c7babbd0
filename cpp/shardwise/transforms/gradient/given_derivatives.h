// SPDX-License-Identifier: Apache-2.0
//
// Derivatives that come with a function, in place of those of its ops. An op refers to one by number:
//
//   %y = "shardwise.custom_derivative"(%x) <{derivative = 3, name = "f"}> …
//
//   %y, %r = "shardwise.custom_derivative"(%x) <{derivative = 4, name = "f_forward"}> …         in its place
//   %dx = "shardwise.custom_derivative"(%r, %dy) <{derivative = 5, name = "f_backward"}> …
//
// A program with a number has a given derivative itself; the ops of one without a number stand in its place. The other
// kind of a derivative is one program, `tangents`, of the operands and their tangents. It serves both modes: its
// gradient by the tangents is the gradient of the function.
//
// A batch of the op has a derivative of its own, with a negative number: the programs are batched when they are needed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ops/collectives/batch_axes.h"

namespace shardwise {

struct GivenProgram {
  std::string name = {};
  std::optional<int64_t> derivative = {};
  RegionId body = {};
};

struct GivenDerivative {
  GivenProgram forward = {};                  // operands of the op → its results, then the residuals
  GivenProgram backward = {};                 // residuals, then the cotangents of the results that have one → gradients
  std::optional<GivenProgram> tangents = {};  // operands, then tangents of those with a gradient → results, tangents
  std::vector<bool> has_gradient = {};        // by operand
  std::vector<bool> has_cotangent = {};       // by result
  std::vector<bool> is_closed_over = {};      // by operand, or empty: the function captures it
  bool is_reverse_only = false;               // the backward program need not be linear
};

// An op whose operands have rows along these axes (ops/collectives/batch_axes.h).
struct BatchedDerivative {
  int64_t number = 0;  // of the op without rows
  BatchAxes axes = {};
  std::vector<AxisSet> operands = {}, results = {};
};

// Makes the regions of a derivative in the module.
using DerivativeSource = std::function<GivenDerivative(Module& module, int64_t number)>;

// The derivatives of one program.
class DerivativeTable {
 public:
  GivenDerivative find(Module& module, int64_t number) const;
  int64_t add(BatchedDerivative batched);  // returns its number

  DerivativeSource source;

 private:
  std::vector<BatchedDerivative> batched_;
};

// While it lives, transforms on this thread use this table.
class GivenDerivatives {
 public:
  explicit GivenDerivatives(DerivativeTable& table);
  ~GivenDerivatives();
  GivenDerivatives(const GivenDerivatives&) = delete;
  GivenDerivatives& operator=(const GivenDerivatives&) = delete;

 private:
  DerivativeTable* outer_;
};

GivenDerivative given_derivative(Module& module, OpId op);
// batch/batched_derivative.cpp
GivenDerivative batch_derivative(Module& module, const GivenDerivative& given, const BatchedDerivative& batched);
// Sets the derivative of `made`, the op of rows that `op` became.
void batch_given_derivative(Module& module, OpId op, OpId made, BatchedDerivative batched);
// The number of a batch of the derivative `number`.
int64_t batched_number(int64_t number, BatchedDerivative batched);
// Appends the program on these operands: its results.
std::vector<ValueId> append_given(Builder& builder, const GivenProgram& program, std::span<const ValueId> operands);
// Throws UnsupportedError if an operand that the function closes over is differentiated.
void refuse_closed_over(const Module& module, OpId op, const GivenDerivative& derivative,
                        const std::function<bool(size_t)>& is_active);

}  // namespace shardwise
