// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/exchanges/exchange_in_progress.h"

#include <algorithm>

#include "shardwise/cost/exchange_cost.h"

namespace shardwise {
namespace {

constexpr int64_t kMostPositions = 256;
constexpr size_t kMostOperands = 4;  // that are counted all for each replacement, with more positions

}  // namespace

ExchangeInProgress::ExchangeInProgress(ExchangeMap map, AxisSpan axes)
    : map_(std::move(map)), axes_(axes.begin(), axes.end()) {
  const AxisList used = map_.axes();
  axes_.insert(axes_.end(), used.begin(), used.end());
  const int64_t positions = product(Coordinates(axes_).grid());
  if (positions > kMostPositions) return;
  received_.assign(static_cast<size_t>(positions), 0);
  for (const std::vector<ExchangeSource>& from : map_.from) {
    const std::vector<double> own = counts(from);
    for (size_t i = 0; i < own.size(); ++i) received_[i] += own[i];
  }
}

ExchangeMap ExchangeInProgress::alone(std::vector<ExchangeSource> from) const {
  return {.to = map_.to, .from = {std::move(from)}};
}

std::vector<double> ExchangeInProgress::counts(const std::vector<ExchangeSource>& from) const {
  const ExchangeMap map = alone(from);
  Coordinates device(axes_);
  std::vector<double> found;
  for (int64_t i = 0; i < product(device.grid()); ++i) {
    device.set_grid(i);
    found.push_back(elements_at(map, device));
  }
  return found;
}

bool ExchangeInProgress::costs_no_more(size_t k, const std::vector<ExchangeSource>& from,
                                       const ExchangeMap* saved) const {
  if (received_.empty()) {
    ExchangeMap old = alone(map_.from[k]), made = alone(from);
    if (map_.from.size() <= kMostOperands) {
      old = made = map_;
      made.from[k] = from;
    }
    std::vector<ExchangeMap> before{std::move(old)};
    if (saved != nullptr) before.push_back(*saved);
    return most_elements({&made, 1}) <= most_elements(before);
  }
  const std::vector<double> old = counts(map_.from[k]), made = counts(from);
  Coordinates device(axes_);
  double before = 0, after = 0;
  for (size_t i = 0; i < received_.size(); ++i) {
    device.set_grid(static_cast<int64_t>(i));
    before = std::max(before, received_[i] + (saved == nullptr ? 0 : elements_at(*saved, device)));
    after = std::max(after, received_[i] - old[i] + made[i]);
  }
  return after <= before;
}

void ExchangeInProgress::replace(size_t k, std::vector<ExchangeSource> from) {
  if (!received_.empty()) {
    const std::vector<double> old = counts(map_.from[k]), made = counts(from);
    for (size_t i = 0; i < received_.size(); ++i) received_[i] += made[i] - old[i];
  }
  map_.from[k] = std::move(from);
}

}  // namespace shardwise
