// SPDX-License-Identifier: Apache-2.0
//
// The attributes of chlo.scan and shardwise.scan (scan.h), read and written:
//
//   dimension = 1, scan_dim_size = 10, is_reverse = true      ScanOrder: rows along dim 1 in 10 trips, last first
//   operandSegmentSizes = [2, 1, 1]                           2 inputs, 1 border, 1 carry; chlo.scan has no borders
//   offsets = [0, -1]                                         the inputs give row i, and row i - 1
#pragma once

#include <cstdint>
#include <string_view>

#include "shardwise/ir/module.h"

namespace shardwise {

inline constexpr std::string_view kScanDimension = "dimension", kScanTrips = "scan_dim_size",
                                  kScanIsReverse = "is_reverse", kScanOperands = "operandSegmentSizes",
                                  kScanResults = "resultSegmentSizes", kScanOffsets = "offsets";

struct ScanOrder {
  int64_t dimension = 0;  // of the stacked values
  int64_t trips = 0;
  bool is_reverse = false;
};
ScanOrder read_scan_order(const OpView& scan);

// Whether an input with this offset lacks the first row, -1, or the last one. Rows are counted along the dim.
struct LackingRow {
  bool first = false, last = false;
};
LackingRow lacking_row(int64_t offset, int64_t trips, int64_t rows);

// The attributes of a shardwise.scan. The operands are inputs, borders and carries; the results outputs and carries.
struct ScanSegments {
  size_t borders = 0, outputs = 0, carries = 0;
};
Attrs scan_attrs(const ScanOrder& order, const Dims& offsets, const ScanSegments& segments);

}  // namespace shardwise
