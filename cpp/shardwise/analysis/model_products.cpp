// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/model_products.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "shardwise/analysis/executions.h"
#include "shardwise/analysis/op_time.h"
#include "shardwise/base/quantity.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {
namespace {

// Two products with equal sources compute the same.
struct Source {
  const OpDef* def;
  LocId loc;
  AttrsId attrs;
  std::vector<TypeId> types;
  friend bool operator==(const Source&, const Source&) = default;
};

struct SourceHash {
  size_t operator()(const Source& source) const {
    size_t hash = hash_combine(source.loc.index, source.attrs.index);
    for (const TypeId type : source.types) hash = hash_combine(hash, type.index);
    return hash;
  }
};

class ProductCounter {
 public:
  ProductCounter(const Module& module, const Hardware& hardware)
      : module_(module), hardware_(hardware), executions_(module), is_behind_(module.value_count(), false) {}

  ModelProducts run() {
    walk(module_, [&](OpId id) { add_op(OpView(module_, id)); });
    ModelProducts found;
    for (const auto& [source, times] : times_) {
      found.ps = saturated_sum(found.ps, saturated_sum(times.before, times.behind));
      found.again = saturated_sum(found.again, std::min(times.before, times.behind));
    }
    return found;
  }

 private:
  struct Times {
    int64_t before = 0, behind = 0;  // a barrier
  };

  void add_op(const OpView& op) {
    bool is_behind = op.def().passes_through();
    visit_reads(module_, op.id(), [&](ValueId value) { is_behind = is_behind || is_behind_[value.index]; });
    for (size_t i = 0; i < op.result_count(); ++i) is_behind_[op.result(i).index] = is_behind;
    const OpCost cost = own_cost(op);
    if (cost.matrix == 0) return;
    const std::vector<TypeId> types = own_types(op);
    OpTime time;
    add_operations(op, LocalTypes(op, types), cost, hardware_, time);
    Times& of_source = times_[{&op.def(), op.loc(), module_.op(op.id()).attrs, types}];
    int64_t& sum = is_behind ? of_source.behind : of_source.before;
    sum = saturated_sum(sum, executions_.of(op.id()).times(time.products_ps));
  }

  const Module& module_;
  const Hardware& hardware_;
  const ModuleExecutions executions_;
  std::vector<bool> is_behind_;  // by value: a barrier
  std::unordered_map<Source, Times, SourceHash> times_;
};

}  // namespace

ModelProducts model_products(const Module& global, const Hardware& hardware) {
  return ProductCounter(global, hardware).run();
}

}  // namespace shardwise
