// SPDX-License-Identifier: Apache-2.0
//
// Why `assign` moves a value, or a method exchanges data, worded for the ledger:
//
//   {.kind = Cause::kOperand, .of = "stablehlo.dot_general", .index = 1}        operand 1 of dot_general
//   {.kind = Cause::kReduction, .of = …, .is_after_loop = true}                 reduction in dot_general, after the loop
//
// The text is the attribute `cause` of the reshard, and of the collectives that take its place. It does not distinguish
// collectives: cse ignores it.
#pragma once

#include <string>
#include <string_view>

#include "shardwise/ir/module.h"

namespace shardwise {

struct Cause {
  enum Kind : uint8_t {
    kNone,
    kAnnotation,
    kReshard,  // of the text
    kOperand,
    kMainArgument,  // that comes unreduced: `detail` is its name
    kArgument,      // of a function that is called
    kResult,        // of main, or of a function
    kResultOfRegion,
    kCondition,
    kReduction,
    kMethod,  // its data, or the reduction that it leaves
  };

  Kind kind = kNone;
  std::string_view of = {};  // the op or the function; empty: main
  size_t index = 0;
  std::string detail = {};  // the method; who annotated; of an operand: why its range needs another sharding
  bool is_after_loop = false;

  std::string text() const;
  // Whether a text is about how an op of this name is computed: its operand, its reduction or its method.
  static bool is_about(std::string_view text, std::string_view op);
  Attrs attrs() const;  // of the reshard
};

void set_cause(Module& module, ValueId result, std::string cause);  // on the op of `result`
void copy_cause(Module& module, OpView from, ValueId result);       // no-op if `from` has no cause

}  // namespace shardwise
