// SPDX-License-Identifier: Apache-2.0
//
// The place at which an op reads a dim of an operand, as data. Index i of the result's dim reads the indices
//
//   (scale·i + offset + dilation·t) / holes     for t in [0, window), if divisible
//
//   slice [1:8:2]                       {.scale = 2, .offset = 1}                        reads 1, 3, 5, 7
//   pad low = 2, interior = 1           {.offset = -2, .holes = 2, .outside = kScalar}   _ _ 0 _ 1 _ 2
//   reverse of 8                        {.scale = -1, .offset = 7}
//   second operand of concatenate       {.offset = -4, .outside = kAbsent}               the first has 4 rows
//   window 3, stride 2, low = 1         {.scale = 2, .offset = -1, .window = 3, .outside = kNeutral}
//   dynamic_slice                       {.start = 1}                                     plus operand 1, clamped
//   update of dynamic_update_slice      {.start = 2, .outside = kAbsent}                 minus operand 2, clamped
//
// A dim without a range is read at i.
#pragma once

#include <cstdint>

namespace shardwise {

// The values that an op reads beyond the ends of the operand's dim, and in its holes.
enum class Outside : uint8_t {
  kNever,    // it reads nothing there
  kScalar,   // a scalar operand
  kNeutral,  // the neutral element of what combines the window
  kAbsent    // another operand is read instead
};

// Indices [begin, end) of a dim.
struct Interval {
  int64_t begin = 0, end = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// A dim in equal blocks, one per shard; the last blocks may be cut off or empty.
struct Blocks {
  int64_t size = 0, block = 0;
};

struct Range {
  int64_t scale = 1;  // not 0; negative: in reverse
  int64_t offset = 0;
  int64_t window = 1;
  int64_t dilation = 1;
  int64_t holes = 1;  // elements of the operand are so far apart
  // An operand that gives a place, clamped so that all rows fit; -1: none. It is added to the offset: the rows are read
  // from there. With kAbsent it is subtracted: the rows of this operand begin there in the result.
  int32_t start = -1;
  Outside outside = Outside::kNever;
  friend bool operator==(const Range&, const Range&) = default;

  bool is_static() const { return start < 0; }
  // The indices, from the first to the last, that `result` reads of a dim of `size`. Static ranges only.
  Interval reads(Interval result, int64_t size) const;
  // Whether each block of the result reads only the operand's block of the same shard, at the same place in it, and
  // nothing outside the dim.
  bool stays_local(Blocks operand, Blocks result) const;
};

}  // namespace shardwise
