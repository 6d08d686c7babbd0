// SPDX-License-Identifier: Apache-2.0
//
// Adds the user's line to errors of an op:
//
//   located(module, op, [&] { activity.visit(op); })       … got a captured value; pass it as an argument (at f.py:3)
#pragma once

#include "shardwise/base/error.h"
#include "shardwise/ir/module.h"

namespace shardwise {

template <class F>
void located(const Module& module, OpId op, F&& body) {
  try {
    body();
  } catch (Error& error) {
    error.at(module.context().location_text(module.op(op).loc));
    throw;
  }
}

}  // namespace shardwise
