// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/executions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "shardwise/base/quantity.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/counted_loop.h"

namespace shardwise {
namespace {

Wide128 common_divisor(Wide128 a, Wide128 b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

// In lowest terms. One of terms beyond 2^62 is shifted down: no program gets there.
Fraction fraction_of(Wide128 numerator, Wide128 denominator) {
  const Wide128 divisor = common_divisor(numerator, denominator);
  numerator /= divisor, denominator /= divisor;
  while (std::max(numerator, denominator) > static_cast<Wide128>(kSaturated)) numerator >>= 1, denominator >>= 1;
  return {static_cast<int64_t>(numerator), std::max<int64_t>(static_cast<int64_t>(denominator), 1)};
}

Fraction operator*(const Fraction& a, const Fraction& b) {
  return fraction_of(widened(a.numerator) * widened(b.numerator), widened(a.denominator) * widened(b.denominator));
}

Fraction fraction_near(double value) {
  const bool is_large = value >= 1;
  const double rounded = std::round(is_large ? value : 1 / value);
  const int64_t term = rounded < static_cast<double>(kSaturated) ? static_cast<int64_t>(rounded) : kSaturated;
  return is_large ? Fraction{term, 1} : Fraction{1, term};
}

double number(const Fraction& fraction) {
  return static_cast<double>(fraction.numerator) / static_cast<double>(fraction.denominator);
}

// The mean of two factors, weighted by the counts that they go with.
Fraction mean(const Executions& a, const Executions& b) {
  if (a.factor == b.factor || b.count == 0) return a.factor;
  if (a.count == 0) return b.factor;
  const int64_t x = a.count, y = b.count;
  const auto [p, q] = a.factor;
  const auto [r, s] = b.factor;
  // Beyond these sizes, which no program has, products of three terms might not fit.
  if (std::max({x, y, p, q, r, s}) >= int64_t{1} << 40) {
    const double sum = static_cast<double>(x) * number(a.factor) + static_cast<double>(y) * number(b.factor);
    return fraction_near(sum / (static_cast<double>(x) + static_cast<double>(y)));
  }
  const Wide128 sum = widened(x) * widened(p) * widened(s) + widened(y) * widened(r) * widened(q);
  return fraction_of(sum, widened(x + y) * widened(q) * widened(s));
}

// The user declares it; otherwise, all branches have an equal share.
Fraction share_of_branch(const OpView& op, size_t branch) {
  const auto branches = static_cast<int64_t>(op.regions().size());
  const auto* weights = op.attrs().find<IntArray>(kWeightsAttr);
  if (weights == nullptr || weights->size() != op.regions().size()) return {1, branches};
  Wide128 sum = 0;
  for (const int64_t weight : *weights) sum += widened(weight);
  return sum == 0 ? Fraction{1, branches} : fraction_of(widened((*weights)[branch]), sum);
}

int64_t assumed_trips(const OpView& loop) {
  const auto* declared = loop.attrs().find<IntAttr>(kTripsAttr);
  return declared == nullptr ? kAssumedTrips : std::clamp<int64_t>(declared->value, 1, kSaturated);
}

// A loop has a condition and a body, or a body alone, as a scan has.
bool is_condition(const OpView& loop, size_t region) { return region == 0 && loop.regions().size() == 2; }

}  // namespace

int64_t Executions::times(int64_t quantity) const {
  // Quantities are at most 2^62, so that the first product fits; the second one is of a saturated quantity.
  const int64_t counted = saturated_product(quantity, count);
  if (counted == kSaturated) return kSaturated;
  const Wide128 expected = widened(counted) * widened(factor.numerator);
  return saturated((expected + widened(factor.denominator) - 1) / widened(factor.denominator));
}

Executions& Executions::operator+=(const Executions& other) {
  factor = mean(*this, other);
  count = saturated_sum(count, other.count);
  if (other.count > 0) kind = std::max(kind, other.kind);
  return *this;
}

int64_t expected_trips(const OpView& loop) {
  const auto counted = trip_count(loop);
  return counted ? *counted : assumed_trips(loop);
}

Executions executions_inside(const OpView& op, size_t region, const Executions& outside) {
  Executions inside = outside;
  if (op.def().regions == Regions::kBranches) {
    inside.factor = outside.factor * share_of_branch(op, region);
    inside.kind = std::max(outside.kind, CountKind::kBranch);
  } else if (op.def().regions == Regions::kLoop) {
    // The condition is computed once more than the body: it ends the loop.
    const int64_t last = is_condition(op, region) ? 1 : 0;
    if (const auto trips = trip_count(op)) {
      inside.count = saturated_product(outside.count, saturated_sum(*trips, last));
    } else {
      inside.factor = outside.factor * Fraction{saturated_sum(assumed_trips(op), last), 1};
      inside.kind = CountKind::kAssumed;
    }
  }
  return inside;
}

ModuleExecutions::ModuleExecutions(const Module& module)
    : module_(module),
      functions_(module.functions.size(), Executions{.count = 0, .factor = {}}),
      regions_(module.region_count(), Executions{.count = 0, .factor = {}}) {
  const CallGraph calls(module);
  for (const size_t f : calls.reached()) {  // callers first
    if (f == calls.reached().front()) functions_[f].count = 1;
    add_region(module_.functions[f].body, functions_[f]);
    for (const OpId call : calls.calls(f)) functions_[calls.callee(call)] += of(call);
  }
}

void ModuleExecutions::add_region(RegionId region, const Executions& executions) {
  regions_[region.index] = executions;
  for (const OpId id : module_.region(region).ops) {
    const OpView op(module_, id);
    for (size_t r = 0; r < op.regions().size(); ++r) {
      add_region(op.regions()[r], executions_inside(op, r, executions));
    }
  }
}

}  // namespace shardwise
