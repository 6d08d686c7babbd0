// SPDX-License-Identifier: Apache-2.0
//
// The pieces of StableHLO's and Shardy's syntax that the format language (assembly_format.h) cannot express. Each is a
// printer and a parser side by side, found by name. `custom<slice_ranges>`, for example:
//
//   attributes  {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 5, 5>, strides = array<i64: 2, 1>}
//   text        [0:5:2, 0:5]
#pragma once

#include "shardwise/text/custom_directive.h"

namespace shardwise {

extern const CustomDirective kReduceDirective;
extern const CustomDirective kWhileDirective, kScanDirective, kManualDirective, kNamedDirective;
extern const CustomDirective kConvolutionDims, kConvolutionWindow;

}  // namespace shardwise
