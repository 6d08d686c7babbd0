// SPDX-License-Identifier: Apache-2.0
//
// Arguments of main that nobody places: arrays that the function closes over. The caller has all of such an array, so that any
// placement of it is free, and the one that propagation gave is a guess:
//
//   %mask: tensor<4096x4096xi1>    propagation   [{"x"}, {}]   if all devices need all of it: an all_gather of 14 MiB
//                                  whole         [{}, {}]      nothing moves; a part is a slice
//
// An argument keeps its placement if an annotation places it, or what unary ops make of it: whoever splits weights like this wants
// them gathered where they are used.
#pragma once

#include <span>
#include <vector>

#include "shardwise/choice/choice.h"
#include "shardwise/ir/module.h"

namespace shardwise {

class FreeArguments {
 public:
  // Those of the given arguments of main that are split, without annotation, in the placement that they have now.
  FreeArguments(Module& module, std::span<const size_t> captured);

  bool is_empty() const { return arguments_.empty(); }
  void make_whole();
  // Splits those again that all users take as they were, so that they take no more memory. Returns whether there are any.
  bool split_again(const Choice& choice);
  void split_all();
  std::vector<size_t> whole() const;  // their places among the arguments of main

 private:
  struct Argument {
    size_t place;  // among the arguments of main
    ValueId value;
    ShardingId split;
    PlacementId placement;  // of `split`
  };

  Module& module_;
  std::vector<Argument> arguments_;
};

}  // namespace shardwise
