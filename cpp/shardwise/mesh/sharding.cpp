// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/sharding.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

// In the order of Reducer.
constexpr std::array<std::string_view, 7> kReducerNames{"none", "sum", "prod", "max", "min", "and", "or"};

void verify_ndim(const TensorSharding& sharding, DimSpan shape) {
  if (sharding.dims.size() == shape.size()) return;
  fail<ShardingError>("sharding", "it must have one entry per dim of the tensor",
                      str(sharding.dims.size(), " for shape ", shape), "write {} for a dim that is not sharded");
}

// Checks one sharding, rule by rule; `used_` collects its refs.
class Verifier {
 public:
  explicit Verifier(const TensorSharding& sharding) : sharding_(sharding), mesh_(*sharding.mesh) {}

  void verify_maximal() const {
    if (sharding_.dims.empty() && sharding_.replicated.empty() && sharding_.unreduced.empty()) return;
    fail<ShardingError>("sharding",
                        "on the single device of mesh " + mesh_.reference() + " no dim or axis can be named",
                        str(sharding_.ndim(), " dims, ", sharding_.replicated.size(), " replicated and ",
                            sharding_.unreduced.size(), " unreduced axes"),
                        "write <" + mesh_.reference() + ", []>");
  }

  void verify_dim(size_t dim) {
    const DimSharding& entry = sharding_.dims[dim];
    if (entry.priority && *entry.priority < 0) {
      fail<ShardingError>("sharding", str("the priority of dim ", dim, " must not be negative"), str(*entry.priority),
                          "p0 is the strongest");
    }
    if (entry.priority && entry.axes.empty() && !entry.open) {
      fail<ShardingError>("sharding", str("dim ", dim, " is closed and without axes, so it must have no priority"),
                          str("{}p", *entry.priority), "drop the priority, or open the dim: {?}");
    }
    verify_known(entry.axes);
    verify_list(entry.axes, str("dim ", dim));
  }

  void verify_sorted_list(const AxisList& axes, const std::string& what) {
    verify_known(axes);
    if (!std::is_sorted(axes.begin(), axes.end())) {
      AxisList sorted = axes;
      std::sort(sorted.begin(), sorted.end());
      fail<ShardingError>("sharding", what + " axes must be in the order of mesh " + mesh_.reference(),
                          axis_list_text(mesh_, axes), "write " + axis_list_text(mesh_, sorted));
    }
    verify_list(axes, what);
  }

  // Runs after every list is valid by itself: checks that the sub-axes of each axis fit together.
  void verify_digits() {
    std::sort(used_.begin(), used_.end());
    for (size_t i = 0; i < used_.size(); ++i) {
      const bool same_axis = i > 0 && used_[i - 1].axis == used_[i].axis;
      // Sorted by axis, pre and size, refs that conflict are neighbors, so that one pass finds them. A full axis
      // together with its sub-axis also overlaps it; the first check has the better message.
      if (same_axis) verify_full_alone(used_[i - 1], used_[i]);
      verify_sub_axis(used_[i]);
      if (same_axis) verify_disjoint(used_[i - 1], used_[i]);
    }
  }

 private:
  // The other checks index the mesh by axis, so this one comes first for every list.
  void verify_known(const AxisList& axes) const {
    for (const AxisRef& ref : axes) {
      if (ref.axis >= 0 && ref.axis < mesh_.ndim()) continue;
      fail<ShardingError>("sharding", str("axes must be of mesh ", mesh_.reference(), ", which has ", mesh_.ndim()),
                          str("axis number ", ref.axis));
    }
  }

  void verify_list(const AxisList& axes, const std::string& what) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (std::find(used_.begin(), used_.end(), axes[i]) != used_.end()) {
        fail<ShardingError>("sharding", "an axis must be used once", axis_text(mesh_, axes[i]) + " again in " + what,
                            "use another axis, or split this one into sub-axes");
      }
      used_.push_back(axes[i]);
      // Equal shardings must have equal refs, because they are compared and interned by them.
      if (i > 0 && can_merge(axes[i - 1], axes[i])) {
        AxisList merged;
        append_merged(merged, axes);
        fail<ShardingError>("sharding", "sub-axes of " + what + " that follow each other must be merged",
                            axis_list_text(mesh_, axes), "write " + axis_list_text(mesh_, merged));
      }
    }
  }

  void verify_full_alone(const AxisRef& a, const AxisRef& b) const {
    if (!is_full(mesh_, a) && !is_full(mesh_, b)) return;
    fail<ShardingError>("sharding", "an axis and a sub-axis of it must not both be used",
                        axis_text(mesh_, a) + " and " + axis_text(mesh_, b), "split the whole axis into sub-axes too");
  }

  // (1)n is the whole axis here, so `resolve` reports Shardy's "sub-size equals the axis size".
  void verify_sub_axis(const AxisRef& ref) const {
    if (is_full(mesh_, ref)) return;
    const int64_t whole = mesh_.axis_size(ref.axis);
    const std::string got = str(axis_text(mesh_, ref), " of size ", whole);
    if (ref.pre < 1) fail<ShardingError>("sharding", "the pre-size of a sub-axis must be at least 1", got);
    if (ref.size <= 1) fail<ShardingError>("sharding", "the size of a sub-axis must be greater than 1", got);
    if (whole % ref.pre != 0 || (whole / ref.pre) % ref.size != 0) {
      fail<ShardingError>("sharding", "pre-size times size of a sub-axis must divide the size of its axis", got);
    }
  }

  void verify_disjoint(const AxisRef& a, const AxisRef& b) const {
    if (!overlaps(a, b) && can_coexist(a, b)) return;
    const std::string both = axis_text(mesh_, a) + " and " + axis_text(mesh_, b);
    if (overlaps(a, b)) {
      fail<ShardingError>("sharding", "sub-axes of one axis must not overlap", both, "use disjoint digits of the axis");
    }
    fail<ShardingError>("sharding", "sub-axes of one axis must be digits of one split of it",
                        str(both, " of size ", mesh_.axis_size(a.axis)),
                        str("let the pre-size of the later be a multiple of ", a.next()));
  }

  const TensorSharding& sharding_;
  const Mesh& mesh_;
  AxisList used_;
};

}  // namespace

std::string_view name(Reducer reducer) { return kReducerNames[static_cast<size_t>(reducer)]; }

std::optional<Reducer> reducer_from_name(std::string_view name) {
  // From 1, because "none" is not a reducer that a text can name.
  const auto* found = std::find(kReducerNames.begin() + 1, kReducerNames.end(), name);
  if (found == kReducerNames.end()) return std::nullopt;
  return static_cast<Reducer>(found - kReducerNames.begin());
}

TensorSharding TensorSharding::fully_replicated(MeshPtr mesh, int64_t ndim) {
  TensorSharding sharding;
  sharding.mesh = std::move(mesh);
  sharding.dims.resize(static_cast<size_t>(ndim));
  return sharding;
}

TensorSharding TensorSharding::open(MeshPtr mesh, int64_t ndim) {
  TensorSharding sharding = fully_replicated(std::move(mesh), ndim);
  for (DimSharding& dim : sharding.dims) dim.open = true;
  return sharding;
}

bool TensorSharding::is_fully_replicated() const {
  return unreduced.empty() && std::ranges::all_of(dims, &AxisList::empty, &DimSharding::axes);
}

Reducer TensorSharding::pending_reducer() const {
  // A reducer whose axes were dropped has no meaning, and must not make two shardings unequal.
  if (unreduced.empty()) return Reducer::kNone;
  return reducer == Reducer::kNone ? Reducer::kSum : reducer;
}

TensorSharding TensorSharding::closed() const {
  TensorSharding copy = *this;
  for (DimSharding& dim : copy.dims) {
    dim.open = false;
    // A priority defers axes, so an empty closed dim must not have one.
    if (dim.axes.empty()) dim.priority.reset();
  }
  return copy;
}

TensorSharding TensorSharding::without_priorities() const {
  TensorSharding copy = *this;
  for (DimSharding& dim : copy.dims) dim.priority.reset();
  return copy;
}

AxisList TensorSharding::axes_sharding() const { return sort_and_merge(axes_of_dims(dims)); }

AxisList TensorSharding::axes_used() const {
  AxisList axes = axes_sharding();
  append(axes, replicated);
  append(axes, unreduced);
  return sort_and_merge(axes);
}

bool operator==(const TensorSharding& a, const TensorSharding& b) {
  return a.dims == b.dims && a.replicated == b.replicated && a.unreduced == b.unreduced &&
         a.pending_reducer() == b.pending_reducer() && equal(a.mesh, b.mesh);
}

size_t hash_value(const TensorSharding& sharding) {
  size_t hash = sharding.mesh ? sharding.mesh->hash() : 0;
  for (const DimSharding& dim : sharding.dims) {
    hash = hash_combine(hash, hash_value(dim.axes));
    hash = hash_combine(hash, dim.open ? 1 : 0);
    // Plus one, so that priority 0 differs from no priority.
    hash = hash_combine(hash, dim.priority ? std::hash<int64_t>{}(*dim.priority) + 1 : 0);
  }
  hash = hash_combine(hash, hash_value(sharding.replicated));
  hash = hash_combine(hash, hash_value(sharding.unreduced));
  return hash_combine(hash, static_cast<size_t>(sharding.pending_reducer()));
}

void verify(const TensorSharding& sharding, DimSpan shape) {
  if (!sharding.mesh) fail<ShardingError>("sharding", "it must have a mesh", "none");
  Verifier verifier(sharding);
  // Before the number of dims: a sharding on one device has none.
  if (sharding.mesh->is_maximal()) return verifier.verify_maximal();
  verify_ndim(sharding, shape);
  // In Shardy's order of checks; the digits come last, because they need all lists.
  for (size_t dim = 0; dim < sharding.dims.size(); ++dim) verifier.verify_dim(dim);
  verifier.verify_sorted_list(sharding.replicated, "replicated");
  verifier.verify_sorted_list(sharding.unreduced, "unreduced");
  verifier.verify_digits();
}

void verify_axis_lists(const MeshPtr& mesh, std::span<const AxisList> lists) {
  TensorSharding sharding{.mesh = mesh, .dims = {}, .replicated = {}, .unreduced = {}};
  // A list of axes obeys the rules of a dim, so each is checked as the dim of a sharding.
  for (const AxisList& axes : lists) sharding.dims.push_back({axes, false, {}});
  Verifier verifier(sharding);
  for (size_t dim = 0; dim < lists.size(); ++dim) verifier.verify_dim(dim);
  verifier.verify_digits();
}

void verify_sorted_axes(const MeshPtr& mesh, const AxisList& axes, std::string_view what) {
  const TensorSharding sharding{.mesh = mesh, .dims = {}, .replicated = {}, .unreduced = {}};
  Verifier verifier(sharding);
  verifier.verify_sorted_list(axes, std::string(what));
  verifier.verify_digits();
}

void verify_divisible(const TensorSharding& sharding, DimSpan shape) {
  if (sharding.mesh->is_maximal()) return;
  verify_ndim(sharding, shape);
  for (size_t dim = 0; dim < sharding.dims.size(); ++dim) {
    const int64_t shards = product(sharding.dims[dim].axes);
    if (shape[dim] % shards == 0) continue;
    fail<ShardingError>("sharding",
                        str("the size of dim ", dim, " must be a multiple of its ", shards, " shards along ",
                            axis_list_text(*sharding.mesh, sharding.dims[dim].axes)),
                        str(shape[dim]),
                        str("pad it to ", ceil_div(shape[dim], shards) * shards, ", or use fewer axes"));
  }
}

}  // namespace shardwise
