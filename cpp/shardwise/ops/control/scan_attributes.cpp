// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/scan_attributes.h"

#include <string>

namespace shardwise {

ScanOrder read_scan_order(const OpView& scan) {
  ScanOrder order{.dimension = scan.attrs().get<IntAttr>(kScanDimension).value};
  if (const bool* reverse = scan.attrs().find<bool>(kScanIsReverse)) order.is_reverse = *reverse;
  if (const auto* trips = scan.attrs().find<IntAttr>(kScanTrips)) {
    order.trips = trips->value;
  } else {
    const bool has_input = scan.attrs().get<NarrowIntArray>(kScanOperands).values[0] > 0;
    const Dims& shape = has_input ? scan.operand_type(0).shape : scan.result_type(0).shape;
    order.trips = shape[static_cast<size_t>(order.dimension)];
  }
  return order;
}

// In the trip of row 0, offset -1 reads row -1; in the last of 10 trips over 10 rows, offset 1 reads row 10.
LackingRow lacking_row(int64_t offset, int64_t trips, int64_t rows) {
  return {.first = offset == -1 && trips > 0, .last = offset >= 0 && trips > 0 && trips - 1 == rows - offset};
}

Attrs scan_attrs(const ScanOrder& order, const Dims& offsets, const ScanSegments& segments) {
  const auto sizes = [](std::initializer_list<size_t> counts) {
    return NarrowIntArray{32, Dims(counts.begin(), counts.end())};
  };
  Attrs attrs{{std::string(kScanDimension), IntAttr{order.dimension}}};
  if (order.is_reverse) attrs.set(kScanIsReverse, true);
  attrs.set(kScanOffsets, offsets);
  attrs.set(kScanOperands, sizes({offsets.size(), segments.borders, segments.carries}));
  attrs.set(kScanResults, sizes({segments.outputs, segments.carries}));
  attrs.set(kScanTrips, IntAttr{order.trips});
  return attrs;
}

}  // namespace shardwise
