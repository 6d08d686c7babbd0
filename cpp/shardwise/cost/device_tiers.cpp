// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/device_tiers.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "shardwise/base/error.h"
#include "shardwise/base/quantity.h"
#include "shardwise/base/recently_used.h"
#include "shardwise/base/text.h"
#include "shardwise/cost/torus_slice.h"

namespace shardwise {
namespace {

// How many of `units` in a row are surely joined by one group of a tier for `most`: all, or what divides both.
int64_t units_joined(int64_t units, int64_t most) {
  return most == Tier::kUnlimited || units <= most ? units : std::gcd(units, most);
}

// The dims of a slice, with the borders between them on those of mesh axes where that can be.
Dims aligned_slice(const Mesh& mesh, Dims slice, int64_t begin) {
  const int64_t end = begin * element_count(slice);
  std::set<int64_t> axis_borders;
  for (int axis = 0; axis < mesh.ndim(); ++axis) {
    const int64_t border = mesh.axis_stride(axis);
    if (border > begin && border < end) axis_borders.insert(border);
  }
  const auto misaligned = [&](const Dims& dims) {
    std::set<int64_t> borders;
    int64_t border = begin;
    for (size_t d = dims.size(); d-- > 0;) borders.insert(border *= dims[d]);
    borders.erase(begin);
    borders.erase(end);
    size_t common = 0;
    for (const int64_t each : borders) common += axis_borders.contains(each) ? 1 : 0;
    return borders.size() + axis_borders.size() - 2 * common;
  };
  std::ranges::sort(slice, std::greater<>());
  Dims best = slice;
  while (std::ranges::prev_permutation(slice).found) {
    if (misaligned(slice) < misaligned(best)) best = slice;
  }
  return best;
}

Dims prime_factors(int64_t size) {
  Dims factors;
  for (int64_t prime = 2; prime * prime <= size; ++prime) {
    for (; size % prime == 0; size /= prime) factors.push_back(prime);
  }
  if (size > 1) factors.push_back(size);
  return factors;
}

// What the tiers of a mesh follow from: views of the caller's mesh and hardware, or of a copy that the cache keeps. Device
// ids are shared, so that a key of the same mesh is equal without a look at them.
class TiersKey {
 public:
  TiersKey(const Mesh& mesh, const Hardware& hardware)
      : axes_(mesh.axes()),
        ids_(mesh.shared_device_ids()),
        json_(hardware.json),
        hash_(hash_combine(mesh.hash(), hardware.hash)) {}

  TiersKey copy() const {
    const auto owned = std::make_shared<const Owned>(Owned{{axes_.begin(), axes_.end()}, std::string(json_)});
    TiersKey key = *this;
    key.axes_ = owned->axes, key.json_ = owned->json;
    key.owned_ = owned;
    return key;
  }

  friend bool operator==(const TiersKey& a, const TiersKey& b) {
    return a.hash_ == b.hash_ && std::ranges::equal(a.axes_, b.axes_) && a.has_ids_of(b) && a.json_ == b.json_;
  }
  friend size_t hash_value(const TiersKey& key) { return key.hash_; }

 private:
  struct Owned {
    std::vector<MeshAxis> axes;
    std::string json;
  };

  bool has_ids_of(const TiersKey& other) const {
    return ids_ == other.ids_ || (ids_ && other.ids_ && *ids_ == *other.ids_);
  }

  std::span<const MeshAxis> axes_;
  std::shared_ptr<const Dims> ids_;  // null: none
  std::string_view json_;
  size_t hash_ = 0;
  std::shared_ptr<const Owned> owned_;
};

}  // namespace

DeviceTiers::DeviceTiers(const Mesh& mesh, const Hardware& hardware) {
  add_blocks(mesh, hardware);
  for (int axis = 0; axis < mesh.ndim(); ++axis) digits_.push_back(digits_of_axis(mesh, axis));
}

void DeviceTiers::add_blocks(const Mesh& mesh, const Hardware& hardware) {
  const int64_t devices = mesh.device_count();
  int64_t begin = 1;
  for (size_t i = 0; i < hardware.tiers.size() && begin < devices; ++i) {
    const Tier& tier = hardware.tiers[i];
    const int64_t units = units_joined(devices / begin, tier.size);
    if (tier.topology == Topology::kTorus) {
      add_torus(mesh, tier, i, begin, units);
    } else if (units > 1) {
      blocks_.push_back({.tier = i,
                         .begin = begin,
                         .end = begin * units,
                         .sharers = tier.topology == Topology::kRing ? begin : 1,
                         .is_dim = tier.topology == Topology::kRing,
                         .closes = tier.closes(units)});
    }
    begin *= units;
  }
  if (begin == devices) return;
  int64_t most = 1;
  for (const Tier& tier : hardware.tiers) most = saturated_product(most, tier.size);
  fail<MeshError>("hardware " + hardware.name, str("its tiers of links join at most ", most, " devices"),
                  str(devices, " devices of ", mesh.reference()), "add a tier without size to the file");
}

void DeviceTiers::add_torus(const Mesh& mesh, const Tier& tier, size_t index, int64_t begin, int64_t units) {
  const int64_t sharers = begin;
  Dims slice = slice_shape(tier.shape, units);
  const bool is_slice = slice.size() == tier.shape.size();  // else a line through the torus, which does not close
  if (mesh.device_ids().empty()) slice = aligned_slice(mesh, std::move(slice), begin);
  for (size_t d = slice.size(); d-- > 0;) {
    if (slice[d] == 1) continue;
    const int64_t end = begin * slice[d];
    blocks_.push_back({.tier = index,
                       .begin = begin,
                       .end = end,
                       .sharers = sharers,
                       .is_dim = true,
                       .closes = is_slice && tier.closes(slice[d], slice)});
    begin = end;
  }
}

std::vector<DeviceTiers::Digit> DeviceTiers::digits_of_axis(const Mesh& mesh, int axis) const {
  if (mesh.device_ids().empty()) return {{.pre = 1, .size = mesh.axis_size(axis), .stride = mesh.axis_stride(axis)}};
  std::vector<Digit> digits;
  int64_t pre = 1;
  for (const int64_t prime : prime_factors(mesh.axis_size(axis))) {
    const Digit digit = digit_of_ids(mesh, axis, pre, prime);
    pre *= prime;
    Digit* last = digits.empty() ? nullptr : &digits.back();
    if (last && last->stride != 0 && digit.stride != 0 && last->stride == digit.stride * digit.size) {
      last->size *= digit.size;
      last->stride = digit.stride;
    } else {
      digits.push_back(digit);
    }
  }
  return digits;
}

DeviceTiers::Digit DeviceTiers::digit_of_ids(const Mesh& mesh, int axis, int64_t pre, int64_t size) const {
  const Dims& ids = mesh.device_ids();
  const int64_t step = mesh.axis_stride(axis) * (mesh.axis_size(axis) / (pre * size));
  Digit digit{.pre = pre, .size = size, .stride = ids[static_cast<size_t>(step)] - ids[0]};
  for (int64_t i = 0; i < mesh.device_count(); ++i) {
    if (i / step % size == 0) continue;
    const int64_t id = ids[static_cast<size_t>(i)], before = ids[static_cast<size_t>(i - step)];
    if (id - before != digit.stride) digit.stride = 0;
    while (id / blocks_[digit.block].end != before / blocks_[digit.block].end) ++digit.block;
  }
  return digit;
}

// Each ref is cut at the digits of its axis.
std::vector<DeviceTiers::Digit> DeviceTiers::digits_of(AxisSpan axes) const {
  std::vector<Digit> found;
  for (const AxisRef& ref : axes) {
    for (const Digit& digit : digits_[static_cast<size_t>(ref.axis)]) {
      const int64_t pre = std::max(ref.pre, digit.pre), next = std::min(ref.next(), digit.next());
      if (pre >= next) continue;
      // Digits of ids follow one order of the primes of an axis; a ref of another order takes about as much.
      const int64_t below = std::max<int64_t>(1, digit.next() / next);
      found.push_back({.size = std::max<int64_t>(1, next / pre),
                       .stride = (digit.stride < 0 ? -digit.stride : digit.stride) * below,
                       .block = digit.block});
    }
  }
  return found;
}

void DeviceTiers::cut_digit(int64_t size, int64_t stride, std::vector<Part>& parts) const {
  for (size_t b = 0; b < blocks_.size() && size > 1; ++b) {
    const Block& block = blocks_[b];
    const bool is_last = b + 1 == blocks_.size();
    if (stride >= block.end && !is_last) continue;
    const int64_t inside = is_last ? size : block.end % stride == 0 ? std::gcd(size, block.end / stride) : 1;
    if (inside == 1) continue;
    parts.push_back({b, inside, std::max<int64_t>(1, stride / block.begin)});
    size /= inside;
    stride *= inside;
  }
}

std::vector<DeviceTiers::Part> DeviceTiers::parts_of(AxisSpan axes) const {
  std::vector<Part> parts;
  std::vector<Digit> digits = digits_of(axes);
  std::ranges::sort(digits, {}, &Digit::stride);
  for (size_t i = 0; i < digits.size(); ++i) {
    Digit digit = digits[i];
    if (digit.stride == 0) {
      if (digit.size > 1) parts.push_back({digit.block, digit.size, 1});
      continue;
    }
    // Digits that follow each other among the ids are one.
    while (i + 1 < digits.size() && digits[i + 1].stride == digit.stride * digit.size) digit.size *= digits[++i].size;
    cut_digit(digit.size, digit.stride, parts);
  }
  std::ranges::stable_sort(parts, {}, &Part::block);
  return parts;
}

TierCut DeviceTiers::cut(AxisSpan axes) const {
  TierCut stages;
  size_t first = 0;                           // stage of the tier
  std::vector<size_t> taken(blocks_.size());  // times that a part takes the dim
  for (const Part& part : parts_of(axes)) {
    const Block& block = blocks_[part.block];
    if (stages.empty() || stages.back().tier != block.tier) first = stages.size();
    const size_t at = first + (block.is_dim ? taken[part.block]++ : 0);
    if (at == stages.size()) stages.push_back({.tier = block.tier, .sharers = block.sharers});
    stages[at].size *= part.size;
    if (!block.is_dim) continue;
    const bool goes_around = part.spacing * part.size == block.end / block.begin;
    stages[at].spans.push_back({part.size, part.spacing, block.closes && goes_around});
  }
  return stages;
}

std::shared_ptr<const DeviceTiers> device_tiers(const Mesh& mesh, const Hardware& hardware) {
  static RecentlyUsed<TiersKey, DeviceTiers> kept(64);
  const TiersKey key(mesh, hardware);
  if (auto known = kept.find(key)) return known;
  auto made = std::make_shared<const DeviceTiers>(mesh, hardware);
  kept.keep(key.copy(), made);
  return made;
}

}  // namespace shardwise
