// SPDX-License-Identifier: Apache-2.0
//
// Axis refs: a mesh axis, or a sub-axis of it, and their algebra.
//
// An axis of size 8 has three digits of size 2, and can be read as 2·4, 4·2 or 8. The ref (pre)size consists of the
// digits after the first ones, whose sizes multiply to `pre`, up to `next = pre * size`:
//
//        x = 8:    "x":(1)2   "x":(2)2   "x":(4)2         most major … most minor digit
//                  "x":(1)4 = both first    "x" = (1)8    the whole axis
//
// In Shardy, a full axis has no pre and size. Here it is (1)n, so that every question is arithmetic on [pre, next) and
// needs no mesh. As in Shardy, a full axis contains, overlaps and coexists with each of its digits, never merges, and
// sorts after its own prefixes and before its other digits. Only text writes "x" instead of "x":(1)8.
//
//   AxisRef a{0, 1, 4}, b{0, 2, 4};           // of x = 8
//   overlap(a, b)                             // (2)2: the middle digit
//   prefix_without_overlap(a, b)              // (1)2
//   append_merged(list = {(1)2}, {0, 2, 4})   // list = {"x"}
//
// In `f(a, b)`, both refs belong to one mesh. Refs of different axes are disjoint and coexist. Refs that cannot coexist
// do not contain each other: (1)2 of 12 is not part of (1)3, because the three values of (1)3 do not determine it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/base/small_vector.h"
#include "shardwise/mesh/mesh.h"

namespace shardwise {

struct AxisRef {
  int32_t axis = 0;  // position in the mesh
  int64_t pre = 1;   // product of the sizes of the digits before it
  int64_t size = 1;

  constexpr int64_t next() const { return pre * size; }
  // Order of sorted lists: mesh position, then pre, then size.
  friend constexpr auto operator<=>(const AxisRef&, const AxisRef&) = default;
};

using AxisList = SmallVector<AxisRef, 2>;  // major to minor
using AxisSpan = std::span<const AxisRef>;

// A move of an all-to-all: `axes` shard from_dim before it, and to_dim after it.
struct AllToAllMove {
  AxisList axes;
  int64_t from_dim = 0;
  int64_t to_dim = 0;
};

AxisRef full_axis(const Mesh& mesh, int axis);
AxisList all_axes(const Mesh& mesh);  // those of size 1, too
bool is_full(const Mesh& mesh, const AxisRef& ref);
int64_t product(AxisSpan axes);  // number of shards; 1 for the empty list

// --- two refs ---
bool contains(const AxisRef& a, const AxisRef& b);   // every digit of b is in a
bool prefix_of(const AxisRef& a, const AxisRef& b);  // a consists of the first digits of b, or equals b
bool suffix_of(const AxisRef& a, const AxisRef& b);  // a consists of the last digits of b, or equals b
bool overlaps(const AxisRef& a, const AxisRef& b);   // [a.pre, a.next) and [b.pre, b.next) intersect
// Whether one split of the axis into digits has both: yes for (1)2 and (2)3 of 12, no for (1)2 and (3)2.
bool can_coexist(const AxisRef& a, const AxisRef& b);
// The digits of both. Returns none when they are disjoint or cannot coexist.
std::optional<AxisRef> overlap(const AxisRef& a, const AxisRef& b);
// The first digits of a, up to where b begins. Returns all of a when they are disjoint, and none when a starts in or
// after an overlap with b, or when they cannot coexist. The suffix is the mirror image: the rest of a after b.
std::optional<AxisRef> prefix_without_overlap(const AxisRef& a, const AxisRef& b);
std::optional<AxisRef> suffix_without_overlap(const AxisRef& a, const AxisRef& b);
// The smaller of the two if it is a prefix of the other.
std::optional<AxisRef> greatest_common_prefix(const AxisRef& a, const AxisRef& b);
bool can_merge(const AxisRef& a, const AxisRef& b);  // b follows a directly: (1)2 then (2)4, not the other way round

// --- lists, major to minor ---
inline void append(AxisList& list, AxisSpan refs) { list.insert(list.end(), refs.begin(), refs.end()); }
AxisList joined(AxisSpan a, AxisSpan b);
AxisList joined(std::span<const AxisList> lists);
// The axes of all dims of a sharding, a placement or a tile.
template <class Range>
AxisList axes_of_dims(const Range& dims) {
  AxisList axes;
  for (const auto& dim : dims) append(axes, dim.axes);
  return axes;
}
void append_merged(AxisList& list, const AxisRef& ref);  // merges ref into the last element, or appends it
void append_merged(AxisList& list, AxisSpan refs);
AxisList sort_and_merge(AxisSpan list);  // mesh order, neighbors merged
bool overlaps(AxisSpan list, const AxisRef& ref);
bool overlaps(AxisSpan a, AxisSpan b);
bool can_coexist(AxisSpan list, const AxisRef& ref);
// The digits of a that are not in b, in the order of a. A ref that overlaps b but cannot coexist with it is dropped
// whole.
AxisList difference(AxisSpan a, AxisSpan b);
// Cuts `list` at its first ref that overlaps or cannot coexist with one of `others`. The prefix of that ref that is
// free of all of them stays: {"y", "x"} at {"x":(2)2} is {"y", "x":(1)2}.
AxisList truncate_at_overlap(AxisSpan list, AxisSpan others);
// The equal refs, then the common prefix of the first two refs that differ.
AxisList greatest_common_prefix(AxisSpan a, AxisSpan b);
// Compares digit by digit, however the lists cut them: {"y", "x":(1)2} is a prefix of {"y", "x"}.
bool is_prefix_of(AxisSpan a, AxisSpan b);
// The rest of `list` after the prefix (before the suffix). Returns none when it does not have that prefix.
std::optional<AxisList> without_prefix(AxisSpan list, AxisSpan prefix);
std::optional<AxisList> without_suffix(AxisSpan list, AxisSpan suffix);

// --- text ---
std::string axis_text(const Mesh& mesh, const AxisRef& ref);  // "x" or "x":(1)2
std::string axis_list_text(const Mesh& mesh, AxisSpan axes);  // {"x", "y":(1)2}

// An axis ref as written, before a mesh resolves the name: {"x", (1, 2)} is "x":(1)2.
struct RawAxisRef {
  std::string name;
  std::optional<std::pair<int64_t, int64_t>> sub;  // pre, size
  friend bool operator==(const RawAxisRef&, const RawAxisRef&) = default;
};
// Throws ShardingError for an unknown name, pre < 1, size <= 1, size = axis size, or pre * size not dividing the axis
// size.
AxisRef resolve(const Mesh& mesh, const RawAxisRef& raw);
AxisList resolve(const Mesh& mesh, std::span<const RawAxisRef> raw);
RawAxisRef to_raw(const Mesh& mesh, const AxisRef& ref);
std::vector<RawAxisRef> to_raw(const Mesh& mesh, AxisSpan axes);
std::string axis_text(const RawAxisRef& raw);

size_t hash_value(const AxisRef& ref);
size_t hash_value(AxisSpan axes);

}  // namespace shardwise
