// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/collectives/device_groups.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

constexpr std::string_view kGroups = "replica_groups";
constexpr std::string_view kPairs = "source_target_pairs";
// Of the ids of an op: they are positions along these manual axes, in the form of #stablehlo.replica_group_mesh_axes.
constexpr std::string_view kAlong = "shardwise.along";
// The ids of an op are positions in the mesh, whatever devices are there (names_positions).
constexpr std::string_view kPositions = "shardwise.positions";
constexpr std::string_view kPutIntoRegion =
    "write the function on whole arrays, or put the op into a region of sdy.manual_computation";

using GroupList = std::vector<Dims>;

std::string groups_text(const GroupList& groups) {
  constexpr size_t kMostShown = 8;
  std::string text = join(std::span(groups).first(std::min(groups.size(), kMostShown)), ", ", dims_text);
  if (groups.size() > kMostShown) text += ", …";
  return text;
}

// Rows of the attribute; shorter ones are filled with -1.
GroupList listed(const OpView& op, std::string_view name) {
  const NdArray& data = op.attrs().get<DenseAttr>(name).data;
  GroupList groups;
  for (int64_t i = 0; i < data.shape()[0]; ++i) {
    Dims group;
    for (int64_t k = 0; k < data.shape()[1]; ++k) {
      const int64_t id = data.scalar_at(i * data.shape()[1] + k).integer;
      if (id >= 0) group.push_back(id);
    }
    if (!group.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

int64_t channel_of(const OpView& op) {
  const auto* channel = op.attrs().find<StructAttr>("channel_handle");
  if (channel == nullptr) return 0;
  const Attrs fields(channel->fields);
  const IntAttr* handle = fields.find<IntAttr>("handle");
  return handle == nullptr ? 0 : handle->value;
}

// ---- places of devices ---------------------------------------------------------------------------------------------

// The row of each device, and its position along the free axes.
class Places {
 public:
  Places(const OpView& op, const BatchAxes& axes) : op_(op), axes_(axes), mesh_(axes.mesh().get()) {
    strides_.resize(axes.count());
    int64_t stride = 1;
    for (size_t axis = axes.count(); axis-- > 0;) {
      strides_[axis] = stride;
      stride *= axes.size(axis);
    }
    rows_ = stride;
  }

  struct Place {
    int64_t row = 0, free = 0;
  };

  Place of(int64_t device) const {
    if (device >= device_count()) {
      fail<ShardingError>(op_.name(), str("ids must be below ", device_count(), ", the number of devices"),
                          str(device));
    }
    if (mesh_ == nullptr) return {};
    Place place{.row = 0, .free = names_positions(op_) ? device : mesh_->logical_index(device)};
    for (size_t axis = 0; axis < axes_.count(); ++axis) {
      const int64_t stride = axes_.stride_in_mesh(axis), digit = place.free / stride % axes_.size(axis);
      place.row += digit * strides_[axis];
      place.free -= digit * stride;
    }
    return place;
  }

  int64_t stride(size_t axis) const { return strides_[axis]; }  // in the row
  int64_t rows() const { return rows_; }
  int64_t device_count() const { return mesh_ == nullptr ? 1 : mesh_->device_count(); }
  int64_t free_count() const { return device_count() / rows_; }

 private:
  const OpView& op_;
  const BatchAxes& axes_;
  const Mesh* mesh_;
  Dims strides_;
  int64_t rows_ = 1;
};

// The groups of ids as groups of rows, which must be the same at all places along the free axes.
GroupList rows_of_groups(const OpView& op, const Places& places, const GroupList& groups) {
  std::map<int64_t, GroupList> by_place;
  for (const Dims& group : groups) {
    Dims rows;
    const int64_t free = places.of(group[0]).free;
    for (const int64_t device : group) {
      const Places::Place place = places.of(device);
      if (place.free != free) {
        fail<UnsupportedError>(op.name(), "devices that communicate must differ along manual axes only",
                               dims_text(group), "make the other axes manual, too");
      }
      rows.push_back(place.row);
    }
    by_place[free].push_back(std::move(rows));
  }
  for (auto& [free, list] : by_place) std::ranges::sort(list);
  const bool covered = groups.empty() || std::ssize(by_place) == places.free_count();
  if (!covered ||
      std::ranges::any_of(by_place, [&](const auto& entry) { return entry.second != by_place.begin()->second; })) {
    fail<UnsupportedError>(op.name(), "the groups must be the same everywhere along the axes that are not manual",
                           groups_text(groups), "make these axes manual, too");
  }
  return groups.empty() ? GroupList{} : by_place.begin()->second;
}

// ---- groups --------------------------------------------------------------------------------------------------------

void expect_whole_groups(const OpView& op, int64_t rows, const GroupList& groups) {
  std::vector<bool> known(static_cast<size_t>(rows));
  for (const Dims& group : groups) {
    if (group.size() != groups[0].size()) {
      fail<UnsupportedError>(op.name(), "all groups must have the same size", groups_text(groups),
                             "use groups of one size");
    }
    for (const int64_t row : group) {
      if (known[static_cast<size_t>(row)]) {
        fail<ShardingError>(op.name(), "a device must be in one group", groups_text(groups));
      }
      known[static_cast<size_t>(row)] = true;
    }
  }
  if (std::ranges::find(known, false) == known.end()) return;
  fail<UnsupportedError>(op.name(), "each device must be in a group", groups_text(groups),
                         "add groups for the other devices");
}

// The axes along which the members of all groups count, major to minor: none where they are no axes.
std::optional<std::vector<size_t>> order_of_members(const BatchAxes& axes, const Places& places,
                                                    const GroupList& groups) {
  const Dims& first = groups[0];
  std::vector<size_t> order;
  std::vector<bool> used(axes.count());
  for (int64_t known = 1; known < std::ssize(first);) {
    const int64_t step = first[static_cast<size_t>(known)] - first[0];
    size_t axis = 0;
    while (axis < axes.count() && (used[axis] || places.stride(axis) != step)) ++axis;
    if (axis == axes.count() || std::ssize(first) % (known * axes.size(axis)) != 0) return std::nullopt;
    used[axis] = true;
    order.insert(order.begin(), axis);
    known *= axes.size(axis);
  }
  for (const Dims& group : groups) {
    for (int64_t i = 0; i < std::ssize(group); ++i) {
      int64_t row = group[0], rest = i;
      for (size_t k = order.size(); k-- > 0; rest /= axes.size(order[k])) {
        row += rest % axes.size(order[k]) * places.stride(order[k]);
      }
      if (group[static_cast<size_t>(i)] != row) return std::nullopt;
    }
    for (const size_t axis : order) {
      if (group[0] / places.stride(axis) % axes.size(axis) != 0) return std::nullopt;
    }
  }
  return order;
}

AxisSet set_of(const std::vector<size_t>& members) {
  AxisSet set = 0;
  for (const size_t axis : members) set |= AxisSet{1} << axis;
  return set;
}

RowGroups of_all_rows(const BatchAxes& axes) {
  return {.axes = axes.all(), .order = axes.members(axes.all()), .rows = {}, .size = axes.rows(axes.all())};
}

// The ids name replicas, of which there is one.
void expect_one_replica(const OpView& op, const GroupList& groups) {
  const bool fits = std::ranges::all_of(groups, [](const Dims& group) { return group == Dims{0}; });
  if (fits) return;
  fail<UnsupportedError>(op.name(), "without a channel_handle the ids name replicas, and a program has one replica",
                         groups_text(groups), "give the op a channel_handle, and use_global_device_ids if it has that");
}

// #stablehlo.axis_ref<name = "x", sub_axis_info = #stablehlo.sub_axis_info<pre_size = 1, size = 2>>
RawAxisRef axis_of(const Attribute& attribute) {
  const auto fields = [](const Attribute& of) { return Attrs(std::get<StructAttr>(of.base()).fields); };
  const Attrs axis = fields(attribute);
  RawAxisRef ref{.name = axis.get<std::string>("name"), .sub = {}};
  if (const Attribute* part = axis.find("sub_axis_info")) {
    ref.sub.emplace(fields(*part).get_int("pre_size"), fields(*part).get_int("size"));
  }
  return ref;
}

// Groups by mesh axes, #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = […]>.
RowGroups groups_along(const OpView& op, const BatchAxes& axes, const Attrs& fields) {
  RowGroups found;
  for (const Attribute& attribute : fields.get<AttrArray>("axes")) {
    const RawAxisRef raw = axis_of(attribute);
    const AxisRef ref = axes.mesh() == nullptr ? AxisRef() : resolve(*axes.mesh(), raw);
    const AxisSet set = axes.inside(ref);
    if (axes.mesh() == nullptr || axes.rows(set) != ref.size) {
      fail<UnsupportedError>(op.name(), "devices that communicate must differ along manual axes only", axis_text(raw),
                             "make the axis manual; of an axis of vmap, differentiate around the vmap");
    }
    found.axes |= set;
    for (const size_t axis : axes.members(set)) found.order.push_back(axis);
    found.size *= ref.size;
  }
  return found;
}

// Lists of positions along mesh axes (kAlong), and the same rows at all places along the other manual axes.
struct PositionLists {
  RowGroups axes;
  GroupList rows;  // along the members of the axes in their own order, which lists of a device number have
};

PositionLists positions_along(const OpView& op, const BatchAxes& axes, const StructAttr& along,
                              const GroupList& lists) {
  PositionLists found{.axes = groups_along(op, axes, Attrs(along.fields)), .rows = {}};
  const RowGroups& whole = found.axes;
  const auto row_of = [&](int64_t position) {
    if (position >= whole.size) {
      fail<ShardingError>(op.name(), str("positions must be below ", whole.size, ", the size of the axes"),
                          str(position));
    }
    int64_t row = 0;
    for (size_t k = whole.order.size(); k-- > 0; position /= axes.size(whole.order[k])) {
      int64_t stride = 1;
      for (const size_t axis : axes.members(whole.axes)) stride *= axis > whole.order[k] ? axes.size(axis) : 1;
      row += position % axes.size(whole.order[k]) * stride;
    }
    return row;
  };
  for (const Dims& list : lists) {
    Dims& group = found.rows.emplace_back();
    for (const int64_t position : list) group.push_back(row_of(position));
  }
  return found;
}

}  // namespace

bool names_positions(const OpView& op) { return op.attrs().find(kPositions) != nullptr; }

RowGroups read_groups(const OpView& op, const BatchAxes& axes, GroupIds ids) {
  if (const auto* along = op.attrs().find<StructAttr>(kGroups)) return groups_along(op, axes, Attrs(along->fields));
  const GroupList groups = listed(op, kGroups);
  if (const auto* along = op.attrs().find<StructAttr>(kAlong); along != nullptr && axes.mesh() != nullptr) {
    const PositionLists lists = positions_along(op, axes, *along, groups);
    expect_whole_groups(op, lists.axes.size, lists.rows);
    RowGroups found{.axes = lists.axes.axes, .order = {}, .rows = {}, .size = std::ssize(lists.rows[0])};
    for (const Dims& group : lists.rows) found.rows.insert(found.rows.end(), group.begin(), group.end());
    return found;
  }
  if (axes.mesh() == nullptr) {
    if (std::ranges::all_of(groups, [](const Dims& group) { return group.size() == 1; })) return {};
    fail<UnsupportedError>(op.name(), "outside of a manual computation each group must have one device",
                           groups_text(groups), kPutIntoRegion);
  }
  const bool has_channel = channel_of(op) > 0;
  if (!has_channel) {
    expect_one_replica(op, groups);
    return {};
  }
  if (ids == GroupIds::kGlobalIfAttribute && op.attrs().find("use_global_device_ids") == nullptr) {
    // All partitions of the replicas that are listed.
    expect_one_replica(op, groups);
    return of_all_rows(axes);
  }
  if (groups.empty()) return of_all_rows(axes);
  const Places places(op, axes);
  const GroupList rows = rows_of_groups(op, places, groups);
  expect_whole_groups(op, places.rows(), rows);
  RowGroups found{.axes = axes.all(), .order = {}, .rows = {}, .size = std::ssize(rows[0])};
  if (auto order = order_of_members(axes, places, rows)) {
    found.axes = set_of(*order);
    found.order = std::move(*order);
    return found;
  }
  for (const Dims& group : rows) found.rows.insert(found.rows.end(), group.begin(), group.end());
  return found;
}

bool lists_other_groups(const OpView& op, const BatchAxes& axes) {
  const bool is_listed = op.attrs().find<DenseAttr>(kGroups) != nullptr && op.attrs().find(kAlong) == nullptr;
  if (!is_listed || axes.mesh() == nullptr || channel_of(op) == 0) return false;
  const GroupList groups = listed(op, kGroups);
  const auto is_alone = [](const Dims& group) { return group.size() == 1; };
  if (std::ranges::all_of(groups, is_alone)) return false;
  try {
    const Places places(op, axes);
    const GroupList rows = rows_of_groups(op, places, groups);
    expect_whole_groups(op, places.rows(), rows);
    return !order_of_members(axes, places, rows);
  } catch (const Error&) {
    return false;  // read_groups tells what is wrong with them
  }
}

// ---- permutations --------------------------------------------------------------------------------------------------

namespace {

// Rows along fewer axes, as long as the others take no part: each row keeps its place along them, and all move alike.
class MovesInProgress {
 public:
  // Of rows along `set`.
  MovesInProgress(const BatchAxes& axes, AxisSet set, Dims sources)
      : axes_(axes), order_(axes.members(set)), sources_(std::move(sources)) {}

  RowMoves run() {
    for (size_t i = order_.size(); i-- > 0;) drop(i);
    // Neighbors along one order of the axes may be far apart along another: a ring over (y, x).
    const std::vector<size_t> order = order_;
    const Dims sources = sources_;
    constexpr size_t kMostOrdered = 4;
    for (std::vector<size_t> places = identity(); places.size() <= kMostOrdered && !is_uniform();) {
      if (!std::ranges::next_permutation(places).found) {
        order_ = order, sources_ = sources;
        break;
      }
      reorder(order, sources, places);
    }
    return {.axes = set_of(order_), .order = order_, .sources = sources_};
  }

 private:
  std::vector<size_t> identity() const {
    std::vector<size_t> places(order_.size());
    std::iota(places.begin(), places.end(), size_t{0});
    return places;
  }

  int64_t stride(size_t i) const {
    int64_t stride = 1;
    for (size_t k = i + 1; k < order_.size(); ++k) stride *= axes_.size(order_[k]);
    return stride;
  }

  // All rows come from the same distance, which `move_rows` does by slices.
  bool is_uniform() const {
    std::optional<int64_t> distance;
    const int64_t count = std::ssize(sources_);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t source = sources_[static_cast<size_t>(i)];
      if (source < 0) continue;
      const int64_t step = (i - source + count) % count;
      if (distance && *distance != step) return false;
      distance = step;
    }
    return true;
  }

  void drop(size_t i) {
    const int64_t size = axes_.size(order_[i]), inner = stride(i);
    Dims fewer(sources_.size() / static_cast<size_t>(size));
    for (int64_t row = 0; row < std::ssize(sources_); ++row) {
      const int64_t digit = row / inner % size, source = sources_[static_cast<size_t>(row)];
      if (source >= 0 && source / inner % size != digit) return;
      const auto shorter = [&](int64_t of) { return of < 0 ? of : of / (inner * size) * inner + of % inner; };
      int64_t& known = fewer[static_cast<size_t>(shorter(row))];
      if (digit == 0) known = shorter(source);
      if (known != shorter(source)) return;
    }
    sources_ = std::move(fewer);
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void reorder(const std::vector<size_t>& order, const Dims& sources, const std::vector<size_t>& places) {
    Dims sizes, strides;
    order_.clear();
    for (const size_t place : places) order_.push_back(order[place]);
    for (size_t i = 0; i < order.size(); ++i) {
      sizes.push_back(axes_.size(order[i]));
      strides.push_back(stride(static_cast<size_t>(std::ranges::find(places, i) - places.begin())));
    }
    const auto moved = [&](int64_t row) {
      int64_t to = 0;
      for (size_t i = sizes.size(); i-- > 0; row /= sizes[i]) to += row % sizes[i] * strides[i];
      return to;
    };
    for (int64_t row = 0; row < std::ssize(sources); ++row) {
      const int64_t source = sources[static_cast<size_t>(row)];
      sources_[static_cast<size_t>(moved(row))] = source < 0 ? source : moved(source);
    }
  }

  const BatchAxes& axes_;
  std::vector<size_t> order_;
  Dims sources_;
};

// Pairs of rows along `set`.
RowMoves row_moves_of(const OpView& op, const BatchAxes& axes, AxisSet set, const GroupList& rows,
                      const GroupList& pairs) {
  Dims sources(static_cast<size_t>(axes.rows(set)), -1);
  std::vector<bool> sent(sources.size());
  for (const Dims& pair : rows) {
    const auto source = static_cast<size_t>(pair[0]), target = static_cast<size_t>(pair[1]);
    if (sent[source] || sources[target] >= 0) {
      fail<ShardingError>(op.name(), "a device must send once and receive once", groups_text(pairs));
    }
    sent[source] = true;
    sources[target] = pair[0];
  }
  return MovesInProgress(axes, set, std::move(sources)).run();
}

}  // namespace

RowMoves read_moves(const OpView& op, const BatchAxes& axes) {
  GroupList pairs = listed(op, kPairs);
  const auto* along = op.attrs().find<StructAttr>(kAlong);
  if (along == nullptr && channel_of(op) <= 0 && axes.mesh() != nullptr) {
    if (pairs.empty())
      return MovesInProgress(axes, axes.all(), Dims(static_cast<size_t>(axes.rows(axes.all())), -1)).run();
    if (pairs != GroupList{{0, 0}}) expect_one_replica(op, pairs);
    return {.axes = 0, .order = {}, .sources = {0}};
  }
  if (axes.mesh() == nullptr && !pairs.empty() && pairs != GroupList{{0, 0}}) {
    fail<UnsupportedError>(op.name(), "outside of a manual computation there is one device", groups_text(pairs),
                           kPutIntoRegion);
  }
  if (along != nullptr && axes.mesh() != nullptr) {
    const PositionLists lists = positions_along(op, axes, *along, pairs);
    return row_moves_of(op, axes, lists.axes.axes, lists.rows, pairs);
  }
  const Places places(op, axes);
  return row_moves_of(op, axes, axes.all(), rows_of_groups(op, places, pairs), pairs);
}

}  // namespace shardwise
