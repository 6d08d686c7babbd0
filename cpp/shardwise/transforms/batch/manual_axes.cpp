// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/batch/manual_axes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/mesh/digits.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/collectives/device_groups.h"
#include "shardwise/ops/sharding/manual_computation.h"

namespace shardwise {
namespace {

// Calls `visit` with the sharding of each argument and each result.
template <class Visit>
void visit_shardings(const OpView& op, Visit visit) {
  const Module& module = op.module();
  const auto one = [&](ValueId value) { visit(module.context().sharding(module.value(value).sharding)); };
  for (const ValueId argument : module.region(op.regions()[0]).arguments) one(argument);
  for (size_t i = 0; i < op.result_count(); ++i) one(op.result(i));
}

// The collectives of a region whose groups are no axes, and whether others move data from device to device.
struct Groups {
  std::vector<OpId> other;
  bool has_moves = false;
};

Groups groups_inside(const OpView& op, const BatchAxes& axes) {
  Groups groups;
  walk(op.module(), op.regions()[0], [&](OpId id) {
    const OpView inner(op.module(), id);
    groups.has_moves = groups.has_moves || inner.attrs().find("source_target_pairs") != nullptr;
    if (lists_other_groups(inner, axes)) groups.other.push_back(id);
  });
  return groups;
}

// The digits of axes, of prime size, in one order after the other: x = 6 is x:(1)2 and x:(2)3, then x:(1)3 and x:(3)2.
class PrimeDigits {
 public:
  explicit PrimeDigits(const AxisList& axes) : axes_(axes) {
    for (const AxisRef& axis : axes) {
      Dims& primes = primes_.emplace_back();
      for (int64_t prime = 2, left = axis.size; left > 1;) {
        if (left % prime != 0) {
          ++prime;
          continue;
        }
        primes.push_back(prime);
        left /= prime;
      }
    }
  }

  AxisList digits() const {
    AxisList digits;
    for (size_t i = 0; i < axes_.size(); ++i) {
      AxisRef digit = axes_[i];
      for (const int64_t prime : primes_[i]) {
        digit.size = prime;
        digits.push_back(digit);
        digit.pre *= prime;
      }
    }
    return digits;
  }

  bool next() {
    return std::ranges::any_of(primes_, [](Dims& primes) { return std::ranges::next_permutation(primes).found; });
  }

 private:
  const AxisList& axes_;
  std::vector<Dims> primes_;
};

}  // namespace

ManualAxes::ManualAxes(const OpView& op, const BatchAxes& around) : op_(op), around_(around.all()) {
  MeshPtr mesh;
  AxisList cuts;
  visit_shardings(op, [&](const TensorSharding& sharding) {
    if (!sharding.mesh->is_empty()) mesh = sharding.mesh;
    for (const DimSharding& dim : sharding.dims) append(cuts, dim.axes);
  });
  if (mesh != nullptr) manual_ = resolve(*mesh, op.attrs().get<AxesAttr>("manual_axes").axes);
  const std::optional<AxisList> digits = cut_at(manual_, cuts);
  if (!digits) {
    fail<UnsupportedError>(op.name(), "its shardings must cut an axis in one way",
                           mesh == nullptr ? std::string() : axis_list_text(*mesh, cuts), "use whole axes");
  }
  axes_ = around.with(mesh, *digits);
  const Groups groups = groups_inside(op, axes_);
  if (groups.other.empty() || groups.has_moves) return;
  // JAX's axis_index_groups of an axis of 4, ((0, 1), (2, 3)), are the groups along its minor half.
  PrimeDigits primes(*digits);
  constexpr int kMostOrders = 64;
  for (int tried = 0; tried == 0 || (tried < kMostOrders && primes.next()); ++tried) {
    const BatchAxes cut = around.with(mesh, primes.digits());
    const auto are_axes = [&](OpId id) { return !lists_other_groups(OpView(op.module(), id), cut); };
    if (!std::ranges::all_of(groups.other, are_axes)) continue;
    axes_ = cut;
    return;
  }
}

AxisSet ManualAxes::of_dim(const DimSharding& dim) const {
  AxisSet set = 0;
  for (const AxisRef& ref : dim.axes) set |= axes_.inside(ref) & ~around_;
  return set;
}

AxisSet ManualAxes::of(const TensorSharding& sharding) const {
  AxisSet set = 0;
  for (const DimSharding& dim : sharding.dims) set |= of_dim(dim);
  return set;
}

TensorSharding ManualAxes::inside(const TensorSharding& sharding) const { return seen_from_inside(sharding, manual_); }

void ManualAxes::refuse_unreduced() const {
  visit_shardings(op_, [&](const TensorSharding& sharding) {
    if (sharding.unreduced.empty()) return;
    fail<UnsupportedError>(op_.name(), "its values must not be unreduced", short_text(sharding),
                           "reduce them inside of the region");
  });
}

}  // namespace shardwise
