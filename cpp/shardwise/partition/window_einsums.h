// SPDX-License-Identifier: Apache-2.0
//
// Writes products beside an all_gather or a reduce_scatter as loops, in which each block is multiplied while the next one
// travels (emission/windowed_dot.h):
//
//   %w = all_gather %0                      %1 = while … {
//   %1 = dot_general %a, %w          ->       %next = collective_permute %block
//                                             %part = dot_general %a, %block
//                                             …
//                                           }
//
// By CompileOptions::windowed_einsum:
//
//   memory   none here: where a program would not fit in its memory limit otherwise, rematerialize takes some
//   time     where the loop takes less time than the product and what of the collective other kernels do not hide
//   always   wherever there is one
//   never    none, also where the limit asks for it
//
// By time, the program is estimated as a whole (analysis/step_estimate.h), because nothing else runs beside a loop: one set of equal
// windows after the other stays if it takes less time with them.
#pragma once

#include <span>
#include <vector>

#include "shardwise/emission/windowed_dot.h"
#include "shardwise/ir/pass.h"

namespace shardwise {

struct ChosenWindow {
  WindowedDot dot;
  Ring ring = Ring::kOneWay;
};

// The ops that a window takes the place of are gone then. Of two windows of one product, the first is written.
void write_windows(Module& local, std::span<const ChosenWindow> windows);

Module window_einsums(Module module, PassContext& context);
inline constexpr Pass kWindowEinsums{
    .name = "window_einsums",
    .doc = "write products beside a gather or a reduce_scatter as loops that overlap them",
    .run = window_einsums,
    .needs_runnable = true,
    .takes = {.first = Stage::kLocal},
    .reads = option("windowed_einsum") | option("hardware")};

}  // namespace shardwise
