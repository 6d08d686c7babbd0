// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/mergeable_groups.h"

#include <algorithm>
#include <utility>

namespace shardwise {
namespace {

// A group with more neighbors stays as it is: each attempt to merge it looks at them all.
constexpr size_t kMostNeighbors = 256;

bool waits(const GroupFacts& core, const GroupFacts& other) {
  return core.core_place > 0 && !core.has_batch && other.transfer_read > core.core_place;
}

bool fit(const GroupFacts& a, const GroupFacts& b, bool joins_products) {
  if (a.core == GroupCore::kBorder || b.core == GroupCore::kBorder) return false;
  if (waits(a, b) || waits(b, a)) return false;
  if (a.core == GroupCore::kNothing || b.core == GroupCore::kNothing) return true;
  return joins_products && a.core == GroupCore::kProduct && b.core == GroupCore::kProduct;
}

GroupFacts joined(const GroupFacts& a, const GroupFacts& b) {
  const GroupFacts& with_core = a.core == GroupCore::kNothing ? b : a;
  GroupFacts all = with_core;
  all.reduces_rows = a.reduces_rows || b.reduces_rows;
  all.products = a.products + b.products;
  all.transfer_read = std::max(a.transfer_read, b.transfer_read);
  return all;
}

}  // namespace

MergeableGroups::Id MergeableGroups::add(GroupFacts facts) {
  const auto id = static_cast<Id>(groups_.size());
  if (facts.core != GroupCore::kNothing) facts.core_place = id + 1;
  groups_.push_back({.parent = id, .place = id, .facts = facts, .reads = {}, .readers = {}, .apart = {}});
  return id;
}

MergeableGroups::Id MergeableGroups::find(Id group) {
  while (groups_[group].parent != group) {
    groups_[group].parent = groups_[groups_[group].parent].parent;
    group = groups_[group].parent;
  }
  return group;
}

void MergeableGroups::add_read(Id reader, Id read, bool is_from_memory) {
  reader = find(reader), read = find(read);
  if (reader == read) return;
  groups_[reader].reads.ids.push_back(read);
  groups_[read].readers.ids.push_back(reader);
  if (!is_from_memory) return;
  groups_[reader].apart.ids.push_back(read);
  groups_[read].apart.ids.push_back(reader);
}

// And what has become the group itself.
void MergeableGroups::drop_repeated(Id group, Neighbors& list) {
  std::vector<Id>& ids = list.ids;
  steps_ += static_cast<int64_t>(ids.size());
  for (Id& id : ids) id = find(id);
  std::ranges::sort(ids);
  const auto [first, last] = std::ranges::unique(ids);
  ids.erase(first, last);
  std::erase(ids, group);
  list.distinct = ids.size();
}

// The shorter list is copied. Repetitions of a long list are dropped when it has grown to twice its size.
void MergeableGroups::append(Id group, Neighbors& list, Neighbors& more) {
  if (list.ids.size() < more.ids.size()) std::swap(list, more);
  steps_ += static_cast<int64_t>(more.ids.size());
  list.ids.insert(list.ids.end(), more.ids.begin(), more.ids.end());
  more = {};
  const bool is_long = list.distinct > kMostNeighbors;
  if (list.ids.size() > (is_long ? 2 * list.distinct : kMostNeighbors)) drop_repeated(group, list);
}

bool MergeableGroups::are_apart(Id a, Id b) {
  if (groups_[a].apart.ids.size() > groups_[b].apart.ids.size()) std::swap(a, b);
  steps_ += static_cast<int64_t>(groups_[a].apart.ids.size());
  return std::ranges::any_of(groups_[a].apart.ids, [&](Id id) { return find(id) == b; });
}

// Whether the readers of `low`, apart from `high`, stand behind `high`.
bool MergeableGroups::may_rise(Id low, Id high) {
  return groups_[low].readers.ids.size() <= kMostNeighbors && std::ranges::all_of(groups_[low].readers.ids, [&](Id id) {
           const Id reader = find(id);
           return reader == high || reader == low || groups_[reader].place > groups_[high].place;
         });
}

// Whether what `high` reads, apart from `low`, stands before `low`.
bool MergeableGroups::may_sink(Id low, Id high) {
  return groups_[high].reads.ids.size() <= kMostNeighbors && std::ranges::all_of(groups_[high].reads.ids, [&](Id id) {
           const Id read = find(id);
           return read == low || read == high || groups_[read].place < groups_[low].place;
         });
}

bool MergeableGroups::merge(Id a, Id b, bool joins_products) {
  Id low = find(a), high = find(b);
  if (low == high) return true;
  if (groups_[low].place > groups_[high].place) std::swap(low, high);
  if (!fit(groups_[low].facts, groups_[high].facts, joins_products) || are_apart(low, high)) return false;
  const bool sinks = may_sink(low, high);
  if (!sinks && !may_rise(low, high)) return false;
  Group &kept = groups_[low], &gone = groups_[high];
  kept.facts = joined(kept.facts, gone.facts);
  if (!sinks) kept.place = gone.place;
  gone.parent = low;
  for (const auto list : {&Group::reads, &Group::readers, &Group::apart}) append(low, kept.*list, gone.*list);
  return true;
}

}  // namespace shardwise
