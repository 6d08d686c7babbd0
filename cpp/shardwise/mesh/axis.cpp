// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/axis.h"

#include <algorithm>
#include <functional>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

// The ref whose digits fill the interval [pre, next).
AxisRef digits(int32_t axis, int64_t pre, int64_t next) { return {axis, pre, next / pre}; }

// The digits of `ref` that are in none of `others`, major first.
AxisList digits_outside(const AxisRef& ref, AxisSpan others) {
  // "x":(1)8 without (2)2: prefix (1)2 and suffix (4)2. Each of `others` cuts what the ones before it have left.
  AxisList left{ref};
  for (const AxisRef& other : others) {
    AxisList rest;
    for (const AxisRef& part : left) {
      if (!overlaps(part, other)) {
        rest.push_back(part);
        continue;
      }
      if (auto prefix = prefix_without_overlap(part, other)) rest.push_back(*prefix);
      if (auto suffix = suffix_without_overlap(part, other)) rest.push_back(*suffix);
    }
    left = std::move(rest);
  }
  return left;
}

// The first digits of `ref`, up to where the first of `others` begins. Each is compared with the whole ref, so that
// their order does not matter.
std::optional<AxisRef> prefix_outside(const AxisRef& ref, AxisSpan others) {
  AxisRef shortest = ref;
  for (const AxisRef& other : others) {
    auto prefix = prefix_without_overlap(ref, other);
    if (!prefix) return std::nullopt;
    // The shortest prefix is free of all of `others`, because prefixes of one ref nest.
    if (prefix->size < shortest.size) shortest = *prefix;
  }
  // The cut made for one of `others` need not be a digit border for another one.
  if (!can_coexist(others, shortest)) return std::nullopt;
  return shortest;
}

std::string names_of(const Mesh& mesh) {
  if (mesh.axes().empty()) return "no axis, for it has none";
  return "one of " + join(mesh.axes(), ", ", [](const MeshAxis& axis) { return quote(axis.name); });
}

}  // namespace

AxisRef full_axis(const Mesh& mesh, int axis) { return {axis, 1, mesh.axis_size(axis)}; }

AxisList all_axes(const Mesh& mesh) {
  AxisList axes;
  for (int axis = 0; axis < mesh.ndim(); ++axis) axes.push_back(full_axis(mesh, axis));
  return axes;
}

bool is_full(const Mesh& mesh, const AxisRef& ref) { return ref.pre == 1 && ref.size == mesh.axis_size(ref.axis); }

int64_t product(AxisSpan axes) {
  int64_t result = 1;
  for (const AxisRef& ref : axes) result *= ref.size;
  return result;
}

bool contains(const AxisRef& a, const AxisRef& b) {
  // The ends must divide as well: an interval inside another one need not consist of its digits.
  return a.axis == b.axis && a.pre <= b.pre && b.next() <= a.next() && b.pre % a.pre == 0 && a.next() % b.next() == 0;
}
bool prefix_of(const AxisRef& a, const AxisRef& b) { return contains(b, a) && a.pre == b.pre; }
bool suffix_of(const AxisRef& a, const AxisRef& b) { return contains(b, a) && a.next() == b.next(); }

bool overlaps(const AxisRef& a, const AxisRef& b) {
  // An axis of size 1 has an empty interval, but must not be used twice either.
  return a == b || (a.axis == b.axis && a.pre < b.next() && b.pre < a.next());
}

bool can_coexist(const AxisRef& a, const AxisRef& b) {
  if (a.axis != b.axis) return true;
  // One split of the axis has both refs exactly when each of their four ends, in order, divides the next.
  int64_t ends[] = {a.pre, a.next(), b.pre, b.next()};
  std::sort(std::begin(ends), std::end(ends));
  return ends[1] % ends[0] == 0 && ends[2] % ends[1] == 0 && ends[3] % ends[2] == 0;
}

std::optional<AxisRef> overlap(const AxisRef& a, const AxisRef& b) {
  if (!overlaps(a, b) || !can_coexist(a, b)) return std::nullopt;
  return digits(a.axis, std::max(a.pre, b.pre), std::min(a.next(), b.next()));
}

std::optional<AxisRef> prefix_without_overlap(const AxisRef& a, const AxisRef& b) {
  if (!can_coexist(a, b)) return std::nullopt;
  if (!overlaps(a, b)) return a;
  if (a.pre >= b.pre) return std::nullopt;
  return digits(a.axis, a.pre, b.pre);
}

std::optional<AxisRef> suffix_without_overlap(const AxisRef& a, const AxisRef& b) {
  if (!can_coexist(a, b)) return std::nullopt;
  if (!overlaps(a, b)) return a;
  if (a.next() <= b.next()) return std::nullopt;
  return digits(a.axis, b.next(), a.next());
}

std::optional<AxisRef> greatest_common_prefix(const AxisRef& a, const AxisRef& b) {
  if (prefix_of(a, b)) return a;
  if (prefix_of(b, a)) return b;
  return std::nullopt;
}

bool can_merge(const AxisRef& a, const AxisRef& b) {
  // A ref of size 1 is a whole axis of size 1, which would otherwise count as its own successor.
  return a.axis == b.axis && a.size > 1 && b.size > 1 && a.next() == b.pre;
}

AxisList joined(AxisSpan a, AxisSpan b) {
  AxisList all(a.begin(), a.end());
  append(all, b);
  return all;
}

AxisList joined(std::span<const AxisList> lists) {
  AxisList all;
  for (const AxisList& list : lists) append(all, list);
  return all;
}

void append_merged(AxisList& list, const AxisRef& ref) {
  if (!list.empty() && can_merge(list.back(), ref)) {
    list.back().size *= ref.size;
  } else {
    list.push_back(ref);
  }
}

void append_merged(AxisList& list, AxisSpan refs) {
  for (const AxisRef& ref : refs) append_merged(list, ref);
}

AxisList sort_and_merge(AxisSpan list) {
  AxisList sorted(list.begin(), list.end());
  std::sort(sorted.begin(), sorted.end());
  AxisList merged;
  append_merged(merged, sorted);
  return merged;
}

bool overlaps(AxisSpan list, const AxisRef& ref) {
  return std::any_of(list.begin(), list.end(), [&](const AxisRef& other) { return overlaps(other, ref); });
}

bool overlaps(AxisSpan a, AxisSpan b) {
  return std::any_of(b.begin(), b.end(), [&](const AxisRef& ref) { return overlaps(a, ref); });
}

bool can_coexist(AxisSpan list, const AxisRef& ref) {
  return std::all_of(list.begin(), list.end(), [&](const AxisRef& other) { return can_coexist(other, ref); });
}

AxisList difference(AxisSpan a, AxisSpan b) {
  AxisList result;
  for (const AxisRef& ref : a) append_merged(result, digits_outside(ref, b));
  return result;
}

AxisList truncate_at_overlap(AxisSpan list, AxisSpan others) {
  AxisList result;
  for (const AxisRef& ref : list) {
    const std::optional<AxisRef> left = prefix_outside(ref, others);
    if (left) append_merged(result, *left);
    // The axes after a cut would no longer split the same shards from major to minor.
    if (left != ref) break;
  }
  return result;
}

AxisList greatest_common_prefix(AxisSpan a, AxisSpan b) {
  AxisList result;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    auto common = greatest_common_prefix(a[i], b[i]);
    if (common) result.push_back(*common);
    // Past the first difference, equal refs would split different shards.
    if (a[i] != b[i]) break;
  }
  return result;
}

std::optional<AxisList> without_prefix(AxisSpan list, AxisSpan prefix) {
  // The unmatched rest of both, most major ref last.
  AxisList rest(list.rbegin(), list.rend());
  AxisList wanted(prefix.rbegin(), prefix.rend());
  while (!wanted.empty()) {
    if (rest.empty()) return std::nullopt;
    // The two lists may cut an axis at different digits, so only the common digits are matched in each step.
    auto common = greatest_common_prefix(rest.back(), wanted.back());
    if (!common) return std::nullopt;
    // {"x":(1)4, "y"} without {"x":(1)2}: the first step matches (1)2, and leaves "x":(2)2 in `rest`.
    for (AxisList* side : {&rest, &wanted}) {
      auto behind = suffix_without_overlap(side->back(), *common);
      side->pop_back();
      if (behind) side->push_back(*behind);
    }
  }
  return AxisList(rest.rbegin(), rest.rend());
}

std::optional<AxisList> without_suffix(AxisSpan list, AxisSpan suffix) {
  AxisList rest(list.begin(), list.end());
  AxisList wanted(suffix.begin(), suffix.end());
  while (!wanted.empty()) {
    if (rest.empty()) return std::nullopt;
    const AxisRef a = rest.back();
    const AxisRef b = wanted.back();
    if (!suffix_of(a, b) && !suffix_of(b, a)) return std::nullopt;
    // Both end at the same digit, so the ref that begins later is the common suffix.
    const AxisRef common = a.pre >= b.pre ? a : b;
    for (AxisList* side : {&rest, &wanted}) {
      auto before = prefix_without_overlap(side->back(), common);
      side->pop_back();
      if (before) side->push_back(*before);
    }
  }
  return rest;
}

bool is_prefix_of(AxisSpan a, AxisSpan b) { return without_prefix(b, a).has_value(); }

std::string axis_text(const RawAxisRef& raw) {
  return raw.sub ? str(quote(raw.name), ":(", raw.sub->first, ")", raw.sub->second) : quote(raw.name);
}

std::string axis_text(const Mesh& mesh, const AxisRef& ref) { return axis_text(to_raw(mesh, ref)); }

std::string axis_list_text(const Mesh& mesh, AxisSpan axes) {
  return str("{", join(axes, ", ", [&](const AxisRef& ref) { return axis_text(mesh, ref); }), "}");
}

AxisRef resolve(const Mesh& mesh, const RawAxisRef& raw) {
  const std::optional<int> axis = mesh.find_axis(raw.name);
  if (!axis) {
    fail<ShardingError>("sharding", "an axis must be of mesh " + mesh.reference(), quote(raw.name),
                        "use " + names_of(mesh));
  }
  if (!raw.sub) return full_axis(mesh, *axis);

  const auto [pre, size] = *raw.sub;
  const int64_t whole = mesh.axis_size(*axis);
  const std::string of_axis = str(axis_text(raw), " of ", quote(raw.name), "=", whole);
  if (pre < 1) fail<ShardingError>("sharding", "the pre-size of a sub-axis must be at least 1", of_axis);
  if (size <= 1) fail<ShardingError>("sharding", "the size of a sub-axis must be greater than 1", of_axis);
  // Divide rather than multiply: the product of two numbers from a text may overflow.
  if (whole % pre != 0 || (whole / pre) % size != 0) {
    fail<ShardingError>("sharding", "pre-size times size of a sub-axis must divide the size of its axis", of_axis,
                        str("split the axis into factors of ", whole));
  }
  // A second spelling of the whole axis would make equal shardings print differently.
  if (size == whole) {
    fail<ShardingError>("sharding", "a sub-axis must be smaller than its axis", of_axis, "write " + quote(raw.name));
  }
  return {*axis, pre, size};
}

AxisList resolve(const Mesh& mesh, std::span<const RawAxisRef> raw) {
  AxisList axes;
  axes.reserve(raw.size());
  for (const RawAxisRef& ref : raw) axes.push_back(resolve(mesh, ref));
  return axes;
}

RawAxisRef to_raw(const Mesh& mesh, const AxisRef& ref) {
  RawAxisRef raw{mesh.axis_name(ref.axis), std::nullopt};
  if (!is_full(mesh, ref)) raw.sub = {ref.pre, ref.size};
  return raw;
}

std::vector<RawAxisRef> to_raw(const Mesh& mesh, AxisSpan axes) {
  std::vector<RawAxisRef> raw;
  raw.reserve(axes.size());
  for (const AxisRef& ref : axes) raw.push_back(to_raw(mesh, ref));
  return raw;
}

size_t hash_value(const AxisRef& ref) {
  const std::hash<int64_t> hash;
  return hash_combine(hash_combine(hash(ref.axis), hash(ref.pre)), hash(ref.size));
}

size_t hash_value(AxisSpan axes) {
  size_t hash = axes.size();
  for (const AxisRef& ref : axes) hash = hash_combine(hash, hash_value(ref));
  return hash;
}

}  // namespace shardwise
