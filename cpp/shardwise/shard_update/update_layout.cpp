// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/update_layout.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "shardwise/base/text.h"
#include "shardwise/mesh/tiling.h"

namespace shardwise {
namespace {

constexpr double kMostPadding = 1.25;

// The axes as digits of prime size, major to minor: any cut of the list is a cut between digits.
AxisList digits_of(const AxisList& axes) {
  AxisList digits;
  for (const AxisRef& axis : axes) {
    int64_t pre = axis.pre, rest = axis.size;
    for (int64_t prime = 2; rest > 1; ++prime) {
      if (prime * prime > rest) prime = rest;
      for (; rest % prime == 0; rest /= prime, pre *= prime) digits.push_back({axis.axis, pre, prime});
    }
  }
  return digits;
}

AxisList merged(AxisSpan digits) {
  AxisList list;
  append_merged(list, digits);
  return list;
}

double stored_elements(const TensorType& type, const TensorSharding& sharding) {
  double stored = 1;
  for (int64_t d = 0; d < type.ndim(); ++d) {
    const int64_t shards = sharding.shard_count(d);
    stored *= static_cast<double>(block_size(type.shape[static_cast<size_t>(d)], shards) * shards);
  }
  return stored;
}

struct Candidate {
  TensorSharding sharding;
  double padding = 0;
  int cut = 0;              // dims that are split, and of which loops read a part
  int dims = 0, taken = 0;  // that are split; those of them that the model splits, too
  size_t first = 0;         // dim
  int64_t rest = 1;         // shards of the other dim: rows stay as long as they can
  auto order() const { return std::tuple(padding > kMostPadding, cut, padding, dims, taken, first, rest); }
};

class Candidates {
 public:
  Candidates(const TensorType& type, const TensorSharding& own, const std::vector<bool>& cut)
      : type_(type), own_(own), cut_(cut) {}

  // The best way to split the type over `digits`, over one dim or two.
  std::optional<Candidate> best(AxisSpan digits) {
    std::optional<Candidate> best;
    const size_t ndim = own_.dims.size();
    const auto offer = [&](Candidate candidate) {
      if (!best || candidate.order() < best->order()) best = std::move(candidate);
    };
    for (size_t d = 0; d < ndim; ++d) offer(split({{d, merged(digits)}}));
    for (size_t cut = 1; cut < digits.size(); ++cut) {
      for (size_t a = 0; a < ndim; ++a) {
        for (size_t b = 0; b < ndim; ++b) {
          if (a != b) offer(split({{a, merged(digits.first(cut))}, {b, merged(digits.subspan(cut))}}));
        }
      }
    }
    return best;
  }

 private:
  Candidate split(const std::vector<std::pair<size_t, AxisList>>& parts) const {
    Candidate made{.sharding = own_, .dims = static_cast<int>(parts.size()), .first = parts[0].first};
    if (parts.size() > 1) made.rest = product(parts[1].second);
    for (const auto& [dim, axes] : parts) {
      AxisList& list = made.sharding.dims[dim].axes;
      made.taken += list.empty() ? 0 : 1;
      made.cut += dim < cut_.size() && cut_[dim] ? 1 : 0;
      append_merged(list, axes);
    }
    made.padding = stored_elements(type_, made.sharding) / stored_elements(type_, own_);
    return made;
  }

  const TensorType& type_;
  const TensorSharding& own_;
  const std::vector<bool>& cut_;
};

}  // namespace

int64_t shard_bytes_of(const TensorType& type, const TensorSharding& sharding) {
  return element_count(local_shape(sharding, type.shape)) * item_size(type.dtype);
}

UpdateLayout described_layout(const TensorType& type, const TensorSharding& own, TensorSharding given,
                              std::string reason) {
  UpdateLayout layout;
  int64_t shards = 1, own_shards = 1;
  for (int64_t d = 0; d < type.ndim(); ++d) {
    shards *= given.shard_count(d);
    own_shards *= own.shard_count(d);
  }
  layout.group = std::max<int64_t>(shards / own_shards, 1);
  layout.shard_bytes = shard_bytes_of(type, given);
  layout.padding = type.size() == 0 ? 1.0 : stored_elements(type, given) / stored_elements(type, own);
  layout.reason = std::move(reason);
  layout.sharding = std::move(given);
  return layout;
}

UpdateLayout choose_update_layout(const TensorType& type, const TensorSharding& own, const AxisList& axes,
                                  const std::vector<bool>& cut) {
  const AxisList digits = digits_of(axes);
  std::string reason;
  Candidates candidates(type, own, cut);
  const int64_t own_bytes = shard_bytes_of(type, own);
  if (own_bytes < kLeastBytes) {
    return {.shard_bytes = own_bytes, .sums_gradient = true, .reason = str("it has ", own_bytes, " bytes")};
  }
  for (size_t dropped = 0; dropped < digits.size(); ++dropped) {
    const AxisSpan group = AxisSpan(digits).subspan(dropped);
    const auto best = candidates.best(group);
    if (!best) break;
    const int64_t bytes = shard_bytes_of(type, best->sharding);
    const bool is_small = bytes < kLeastShardBytes;
    if (!is_small && best->padding <= kMostPadding) {
      return described_layout(type, own, best->sharding, std::move(reason));
    }
    // The largest group has the reason.
    if (!reason.empty()) continue;
    reason = is_small ? str("a shard of ", product(group), " devices would have ", bytes, " bytes")
                      : str("over ", product(group), " devices it would store ", std::round(best->padding * 100) / 100,
                            " times its elements");
  }
  UpdateLayout whole{.shard_bytes = own_bytes, .sums_gradient = true, .reason = std::move(reason)};
  return whole;
}

}  // namespace shardwise
