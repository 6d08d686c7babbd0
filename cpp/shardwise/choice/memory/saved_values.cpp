// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/memory/saved_values.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "shardwise/base/minimum_cut.h"
#include "shardwise/base/quantity.h"

namespace shardwise {
namespace {

// A branch keeps a value, or does not. A value that it keeps counts as needed, so that no plan is in both branches.
enum class Settled : uint8_t { kNothing, kKept, kNotKept };

// The cut minimises bytes * per_byte + ps * per_ps.
struct Rates {
  int64_t per_byte, per_ps;
};

// Values that are needed are on the side of the source, as `needed`; those that are repeated also as `repeated`.
class CutOfValues {
 public:
  explicit CutOfValues(const SavedValues& values)
      : values_(values), settled_(values.size(), Settled::kNothing), numbers_(values.size(), kNotReached) {
    find_reached();
  }

  void settle(uint32_t value, Settled how) { settled_[value] = how; }

  // None if nothing is possible.
  std::optional<Saved> cheapest(const Rates& rates) {
    MinimumCut cut(2 * static_cast<uint32_t>(reached_.size()));
    for (const uint32_t v : reached_) add(cut, v, rates);
    if (cut.run() >= kUncuttable) return std::nullopt;
    Saved saved{std::vector<bool>(values_.size()), std::vector<bool>(values_.size())};
    for (const uint32_t v : reached_) {
      if (!cut.is_on_source_side(needed(v))) continue;
      const bool again = cut.is_on_source_side(repeated(v));
      (again ? saved.is_repeated : saved.is_kept)[v] = true;
      int64_t& sum = again ? saved.ps : saved.bytes;
      sum = saturated_sum(sum, again ? values_[v].ps : values_[v].bytes);
    }
    return saved;
  }

 private:
  static constexpr uint32_t kNotReached = ~uint32_t{0};
  uint32_t needed(uint32_t v) const { return 2 * numbers_[v]; }
  uint32_t repeated(uint32_t v) const { return 2 * numbers_[v] + 1; }

  // Leaves out the values from which nothing that is needed can be computed: most of a large program.
  void find_reached() {
    const auto reach = [&](uint32_t v) {
      if (numbers_[v] != kNotReached) return;
      numbers_[v] = static_cast<uint32_t>(reached_.size());
      reached_.push_back(v);
    };
    for (uint32_t v = 0; v < values_.size(); ++v) {
      if (values_[v].is_needed) reach(v);
    }
    for (size_t i = 0; i < reached_.size(); ++i) {
      if (!values_[reached_[i]].can_repeat) continue;
      for (const uint32_t operand : values_[reached_[i]].operands) reach(operand);
    }
  }

  void add(MinimumCut& cut, uint32_t v, const Rates& rates) const {
    const SavedValue& value = values_[v];
    if (value.is_needed || settled_[v] == Settled::kKept) cut.add_edge(cut.source(), needed(v), kUncuttable);
    const bool can_be_kept = value.can_be_kept && settled_[v] != Settled::kNotKept;
    cut.add_edge(needed(v), repeated(v), can_be_kept ? Capacity{value.bytes} * rates.per_byte : kUncuttable);
    const bool can_repeat = value.can_repeat && settled_[v] != Settled::kKept;
    cut.add_edge(repeated(v), cut.sink(), can_repeat ? Capacity{value.ps} * rates.per_ps : kUncuttable);
    if (!value.can_repeat) return;
    for (const uint32_t operand : value.operands) cut.add_edge(repeated(v), needed(operand), kUncuttable);
    // A cut must not repeat a value that it does not need.
    cut.add_edge(repeated(v), needed(v), kUncuttable);
  }

  const SavedValues& values_;
  std::vector<Settled> settled_;
  std::vector<uint32_t> reached_;  // values
  std::vector<uint32_t> numbers_;  // by value, among them
};

// So much that one unit of it weighs more than all of the other quantity.
template <int64_t SavedValue::* field>
int64_t more_than_all(const SavedValues& values) {
  int64_t sum = 1;
  for (const SavedValue& value : values) sum = saturated_sum(sum, value.*field);
  return sum;
}

Rates least_time(const SavedValues& values) { return {1, more_than_all<&SavedValue::bytes>(values)}; }
Rates least_bytes(const SavedValues& values) { return {more_than_all<&SavedValue::ps>(values), 1}; }

// The two corners of the hull beside `bytes`: less time and more bytes, and the other way round.
struct Corners {
  Saved faster, smaller;
  int64_t bound_ps = 0;
};

class BranchAndBound {
 public:
  BranchAndBound(const SavedValues& values, int64_t bytes, const SaveEffort& effort)
      : values_(values), bytes_(bytes), effort_(effort), cut_(values) {}

  SavedWithin run() {
    SavedWithin found;
    const std::optional<Corners> root = corners(&found.saved);
    found.fits = root.has_value();
    if (!root) return found;
    best_ = root->smaller;
    found.bound_ps = root->bound_ps;
    branch(*root);
    found.saved = best_;
    if (is_complete_ && effort_.tolerance == 0) found.bound_ps = best_.ps;
    return found;
  }

 private:
  // None if nothing is within the bytes; then `fewest` has the fewest bytes.
  std::optional<Corners> corners(Saved* fewest = nullptr) {
    const std::optional<Saved> smaller = cut_.cheapest(least_bytes(values_));
    if (fewest != nullptr && smaller) *fewest = *smaller;
    if (!smaller || smaller->bytes > bytes_) return std::nullopt;
    Corners found{*cut_.cheapest(least_time(values_)), *smaller};
    if (found.faster.bytes <= bytes_) {
      found.bound_ps = found.faster.ps;
      found.smaller = found.faster;
      return found;
    }
    // Each cut at the slope of the two corners is one between them, or shows that there is none.
    while (true) {
      const int64_t bytes = found.faster.bytes - found.smaller.bytes, ps = found.smaller.ps - found.faster.ps;
      const Saved between = *cut_.cheapest({ps, bytes});
      const auto height = [&](const Saved& saved) { return Capacity{saved.bytes} * ps + Capacity{saved.ps} * bytes; };
      if (height(between) >= height(found.smaller)) {
        const Capacity over = Capacity{found.faster.bytes - bytes_} * ps;
        found.bound_ps = found.faster.ps + static_cast<int64_t>((over + bytes - 1) / bytes);
        return found;
      }
      (between.bytes <= bytes_ ? found.smaller : found.faster) = between;
    }
  }

  void branch(const Corners& from) {
    if (from.smaller.ps < best_.ps) best_ = from.smaller;
    const auto gain = static_cast<double>(best_.ps - from.bound_ps);
    if (gain <= effort_.tolerance * static_cast<double>(best_.ps)) return;
    if (++branches_ > effort_.branches) {
      is_complete_ = false;
      return;
    }
    // The largest value that one corner keeps and the other does not.
    uint32_t chosen = 0;
    int64_t most = -1;
    for (uint32_t v = 0; v < values_.size(); ++v) {
      if (from.faster.is_kept[v] == from.smaller.is_kept[v] || values_[v].bytes <= most) continue;
      chosen = v;
      most = values_[v].bytes;
    }
    if (most < 0) return;
    for (const Settled how : {Settled::kNotKept, Settled::kKept}) {
      cut_.settle(chosen, how);
      if (const std::optional<Corners> inside = corners()) branch(*inside);
    }
    cut_.settle(chosen, Settled::kNothing);
  }

  const SavedValues& values_;
  const int64_t bytes_;
  const SaveEffort effort_;
  CutOfValues cut_;
  Saved best_;
  int64_t branches_ = 0;
  bool is_complete_ = true;
};

}  // namespace

SavedWithin save_within(const SavedValues& values, int64_t bytes, const SaveEffort& effort) {
  return BranchAndBound(values, bytes, effort).run();
}

}  // namespace shardwise
