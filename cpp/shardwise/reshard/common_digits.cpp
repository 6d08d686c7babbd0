// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/common_digits.h"

namespace shardwise {
namespace {

// Cuts the axes that a dim needs where its current shards end: if 256 shards by x replace 8 by y, x is cut after the
// first 8.
void align(const AxisList& to, const AxisList& from, Digits& digits) {
  int64_t shards = 1;  // of the refs before
  for (const AxisRef& ref : to) {
    int64_t border = 1;
    for (const AxisRef& against : from) {
      border *= against.size;
      // The border must be inside the ref, and both parts whole: with shards = 2 and size 6, borders 4 and 6, not 8.
      if (border % shards != 0 || border == shards || shards * ref.size % border != 0 || border == shards * ref.size) {
        continue;
      }
      digits.cut_inside(ref.axis, ref.pre * (border / shards));
    }
    shards *= ref.size;
  }
}

}  // namespace

std::optional<Digits> digits_of(const Placement& from, const Placement& to, Cuts cuts) {
  std::optional<Digits> digits = Digits::covering(joined(from.axes(), to.axes()));
  if (!digits) return std::nullopt;
  for (size_t d = 0; cuts == Cuts::kAligned && d < from.dims.size(); ++d) {
    align(to.dims[d].axes, from.dims[d].axes, *digits);
  }
  if (digits->size() > Digits::kMost) return std::nullopt;
  return digits;
}

}  // namespace shardwise
