// SPDX-License-Identifier: Apache-2.0
//
// Runs the fused chains of a plan: elementwise ops in one pass over memory, for all shards at once where they are
// stacked.
//
//   %3 = add %1, %2 ; %4 = maximum %3, %zero      %1 and %2 vary along x = 4, and %1 is dead afterwards
//     contiguous inputs      the program runs from pointer to pointer, over the memory of %1 if nothing else reads it
//     stacks with strides    one call of run_tiles; the result has the memory order of the inputs
//     a list of shards       one call for each
#pragma once

#include <memory>

#include "shardwise/runtime/run/slots.h"

namespace shardwise {

class ChainSteps {
 public:
  ChainSteps(const Module& module, Slots& slots, uint32_t runners)
      : module_(module), slots_(slots), runners_(runners) {}

  void run(const Step& step, const FusedChain& chain);

 private:
  bool run_contiguous(const Step& step, const FusedChain& chain);
  void make_result(const Step& step, const FusedChain& chain);
  Dims stack_shape(const Step& step) const;  // of all shards of the result
  Shards run_stack(const Step& step, const FusedChain& chain);
  Shards run_list(const Step& step, const FusedChain& chain) const;

  const Module& module_;
  Slots& slots_;
  std::vector<std::unique_ptr<TileRunner>> runners_;  // by FusedChain::runner
  // These belong to the current step. They are members because a short chain takes less time than allocating vectors.
  std::vector<Shards> inputs_;
  std::vector<NdArray> arrays_;
  std::vector<const void*> addresses_;
};

}  // namespace shardwise
