// SPDX-License-Identifier: Apache-2.0
//
// Writes a counted loop that reads or writes one row per trip as a scan (ops/control/scan.h), loops in loops first:
//
//   while(%i = 0, %h = %h0, %ys = zeros)              %h, %ys = shardwise.scan %xs, %h0
//   cond { %i < 10 }                              ->  { ^bb0(%x, %h):
//   do { %x = dynamic_slice %xs, %i                     %y = tanh (add %x, %h)
//        %y = tanh (add %x, %h)                         return %y, %y }
//        return %i + 1, %y, dynamic_update_slice %ys, %y, %i }
//
// A value from around the loop whose next row each trip reads is an input, and so is select(%i = 0, %h0, row %i - 1 of
// %ys): its offset is -1 and %h0 its border. A carry of rows that is written entirely and not read is an output. The
// counter stays where something else reads it. All inputs and outputs count along one dim in one direction, the most
// frequent ones; other reads and writes stay. Other loops stay as they are.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

Module form_scans(Module module, PassContext& context);
inline constexpr Pass kFormScans{.name = "form_scans",
                                 .doc = "write counted loops over rows as scans",
                                 .run = form_scans,
                                 .needs_runnable = true,
                                 .takes = {.first = Stage::kLocal}};

}  // namespace shardwise
