// SPDX-License-Identifier: Apache-2.0
//
// An exchange whose operands are replaced one by one, and the elements that devices receive in it. A replacement is
// priced by its changes only, so n of them cost n times the positions, not n² times.
//
//   ExchangeInProgress exchange(map, axes);           // all axes that a replacement may have
//   exchange.costs_no_more(k, from, &saved)           // compares with now; `saved` is an exchange that becomes unused
//   exchange.replace(k, from);
#pragma once

#include <vector>

#include "shardwise/mesh/exchange.h"

namespace shardwise {

class ExchangeInProgress {
 public:
  ExchangeInProgress(ExchangeMap map, AxisSpan axes);

  const ExchangeMap& map() const { return map_; }
  // Compares the most that any device receives, if operand `k` is read as `from`. With too many positions and operands
  // to count, compares operand `k` alone. `saved` may be null.
  bool costs_no_more(size_t k, const std::vector<ExchangeSource>& from, const ExchangeMap* saved) const;
  void replace(size_t k, std::vector<ExchangeSource> from);

 private:
  std::vector<double> counts(const std::vector<ExchangeSource>& from) const;
  ExchangeMap alone(std::vector<ExchangeSource> from) const;

  ExchangeMap map_;
  AxisList axes_;
  std::vector<double> received_;  // by position along `axes_`; empty: too many
};

}  // namespace shardwise
