// SPDX-License-Identifier: Apache-2.0
//
// Adds the user's line to errors of an op or a value:
//
//   located(module, op, [&] { activity.visit(op); })       … got a captured value; pass it as an argument (at f.py:3)
//   fail_at<ShardingError>(module, loc, error_message(…))  … (at f.py:3)
#pragma once

#include <string>

#include "shardwise/base/error.h"
#include "shardwise/ir/module.h"

namespace shardwise {

template <class F>
void located(const Module& module, LocId loc, F&& body) {
  try {
    body();
  } catch (Error& error) {
    error.at(module.context().location_text(loc));
    throw;
  }
}

template <class F>
void located(const Module& module, OpId op, F&& body) {
  located(module, module.op(op).loc, body);
}

template <class E>
[[noreturn]] void fail_at(const Module& module, LocId loc, const std::string& message) {
  E error(message);
  error.at(module.context().location_text(loc));
  throw error;
}

}  // namespace shardwise
