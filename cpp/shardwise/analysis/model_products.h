// SPDX-License-Identifier: Apache-2.0
//
// The products that a model needs, as time at the peak of one device: what model flops utilisation is measured by.
//
//   forward   %0 = dot_general %x, %w                              at train.py:9      counts
//   backward  %1 = optimization_barrier %x
//             %2 = dot_general %1, %w {shardwise.again = 1}        at train.py:9      does not: %0 is computed again
//             %3 = dot_general %dy, %w                             at train.py:9      counts: other dims are contracted
//
// Products that differ in the mark alone (ir/rewrite/again.h) are one that is computed again, and those with the mark
// that most of them have count: where nothing reads %0, %2 does.
//
// A program that another tool has written has no marks. There, a product behind a barrier computes one before the barriers
// again if both have the same source, attributes and types. This is right for one step with one recomputation.
#pragma once

#include <cstdint>

#include "shardwise/cost/hardware.h"
#include "shardwise/ir/module.h"

namespace shardwise {

struct ModelProducts {
  int64_t ps = 0;     // of all products, in all executions
  int64_t again = 0;  // of those among them that are computed again
};

// `global` is the program before it is partitioned.
ModelProducts model_products(const Module& global, const Hardware& hardware);

}  // namespace shardwise
