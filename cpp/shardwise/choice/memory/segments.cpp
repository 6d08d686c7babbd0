// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/memory/segments.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace shardwise {
namespace {

// A value is alive from the step that makes it to the last one before the peak that reads it or a view of it.
struct EarlyLife {
  size_t first = 0, last = 0;
  int64_t bytes = 0;
};

using EarlyLives = std::unordered_map<ValueId, EarlyLife>;

EarlyLives early_lives(const SegmentedSteps& before) {
  EarlyLives lives;
  for (size_t i = 0; i < before.steps.size(); ++i) {
    for (const ValueId input : before.steps[i].inputs) {
      const auto life = lives.find(before.memory_of(input));
      if (life != lives.end()) life->second.last = i;
    }
    for (const ValueId output : before.steps[i].outputs) {
      if (before.memory_of(output) == output) lives[output] = {i, i, before.bytes(output)};
    }
  }
  return lives;
}

// By step: what is saved up to it, and what crosses from it to the next one.
struct Profile {
  std::vector<int64_t> saved, crossing;
};

Profile profile_of(const SegmentedSteps& before, const EarlyLives& lives) {
  const size_t count = before.steps.size();
  Profile profile{std::vector<int64_t>(count, 0), std::vector<int64_t>(count + 1, 0)};
  for (const auto& [value, life] : lives) {
    if (before.is_saved(value)) profile.saved[life.first] += life.bytes;
    profile.crossing[life.first] += life.bytes;
    profile.crossing[life.last] -= life.bytes;
  }
  for (size_t i = 1; i < count; ++i) {
    profile.saved[i] += profile.saved[i - 1];
    profile.crossing[i] += profile.crossing[i - 1];
  }
  return profile;
}

}  // namespace

std::unordered_set<ValueId> values_across_borders(const SegmentedSteps& before, int64_t segments) {
  std::unordered_set<ValueId> across;
  if (segments < 2 || before.steps.size() < 2) return across;
  const EarlyLives lives = early_lives(before);
  const Profile profile = profile_of(before, lives);
  const auto step_with = [&](double saved) {
    return std::ranges::lower_bound(profile.saved, saved, {},
                                    [](int64_t bytes) { return static_cast<double>(bytes); }) -
           profile.saved.begin();
  };
  const double share = static_cast<double>(profile.saved.back()) / static_cast<double>(segments);
  for (int64_t s = 1; s < segments; ++s) {
    const auto middle = static_cast<double>(s);
    const auto first = profile.crossing.begin() + step_with((middle - 0.5) * share);
    const auto last = profile.crossing.begin() +
                      std::min<std::ptrdiff_t>(step_with((middle + 0.5) * share) + 1, std::ssize(before.steps) - 1);
    if (first >= last) continue;
    const auto border = static_cast<size_t>(std::min_element(first, last) - profile.crossing.begin());
    for (const auto& [value, life] : lives) {
      if (life.first <= border && border < life.last) across.insert(value);
    }
  }
  return across;
}

}  // namespace shardwise
