// SPDX-License-Identifier: Apache-2.0
//
// Visits the ops of a region and of the regions inside it, in the order of the program:
//
//   %0 = reduce %x {        walk(module, body, visit)                      %0, add, %1
//     add                   walk<Order::kRegionsFirst>(module, …)          add, %0, %1
//   }
//   %1 = tanh %0
//
// The visitor may append to the module, and to the region at hand: what it appends is visited, too.
#pragma once

#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

enum class Order : uint8_t { kOpFirst, kRegionsFirst };

template <Order order = Order::kOpFirst, class Visit>
void walk(const Module& module, RegionId region, Visit&& visit) {
  for (size_t i = 0; i < module.region(region).ops.size(); ++i) {
    const OpId op = module.region(region).ops[i];
    if constexpr (order == Order::kOpFirst) visit(op);
    for (size_t r = 0; r < module.regions(op).size(); ++r) walk<order>(module, module.regions(op)[r], visit);
    if constexpr (order == Order::kRegionsFirst) visit(op);
  }
}

// The bodies of all functions.
template <Order order = Order::kOpFirst, class Visit>
void walk(const Module& module, Visit&& visit) {
  for (size_t f = 0; f < module.functions.size(); ++f) walk<order>(module, module.functions[f].body, visit);
}

// Whether `test` holds for the definition of any op, also of one that is in no region any more: quicker than a walk.
template <class Test>
bool any_op(const Module& module, Test&& test) {
  for (uint32_t i = 1; i < module.op_count(); ++i) {
    if (test(*module.op(OpId{i}).def)) return true;
  }
  return false;
}

// The values of a region and of the regions inside it, in the order of the program: arguments first; what is inside an
// op's regions follows its results.
inline void append_values(const Module& module, RegionId region, std::vector<ValueId>& values) {
  values.insert(values.end(), module.region(region).arguments.begin(), module.region(region).arguments.end());
  for (const OpId op : module.region(region).ops) {
    for (uint32_t i = 0; i < module.op(op).result_count; ++i) values.push_back(module.result(op, i));
    for (const RegionId inner : module.regions(op)) append_values(module, inner, values);
  }
}

inline std::vector<ValueId> values_of_main(const Module& module) {
  std::vector<ValueId> values;
  append_values(module, module.main().body, values);
  return values;
}

}  // namespace shardwise
