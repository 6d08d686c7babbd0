// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/model_products.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/analysis/executions.h"
#include "shardwise/analysis/op_time.h"
#include "shardwise/base/quantity.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/again.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/text_words.h"

namespace shardwise {
namespace {

// Two products with equal sources compute the same.
struct Source {
  const OpDef* def;
  LocId loc;    // none in a program with marks: they say more
  Attrs attrs;  // without the mark
  std::vector<TypeId> types;
  friend bool operator==(const Source&, const Source&) = default;
};

struct SourceHash {
  size_t operator()(const Source& source) const {
    size_t hash = hash_combine(source.loc.index, hash_value(source.attrs));
    for (const TypeId type : source.types) hash = hash_combine(hash, type.index);
    return hash;
  }
};

class ProductCounter {
 public:
  ProductCounter(const Module& module, const Hardware& hardware)
      : module_(module), hardware_(hardware), executions_(module), is_behind_(module.value_count(), false) {}

  ModelProducts run() {
    walk(module_, [&](OpId id) { has_marks_ = has_marks_ || times_before(module_, id) > 0; });
    walk(module_, [&](OpId id) { add_op(OpView(module_, id)); });
    ModelProducts found;
    for (const auto& [source, times] : times_) {
      int64_t all = 0, most = 0;
      for (const auto& [mark, ps] : times.by_mark) all = saturated_sum(all, ps), most = std::max(most, ps);
      found.ps = saturated_sum(found.ps, all);
      found.again = saturated_sum(found.again, has_marks_ ? all - most : std::min(all - times.behind, times.behind));
    }
    return found;
  }

 private:
  struct Times {
    std::map<int64_t, int64_t> by_mark;
    int64_t behind = 0;  // a barrier
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
    const int64_t all = executions_.of(op.id()).times(time.products_ps);
    Times& of_source = times_[{&op.def(), has_marks_ ? LocId{} : op.loc(), unmarked(op.id()), types}];
    int64_t& sum = of_source.by_mark[times_before(module_, op.id())];
    sum = saturated_sum(sum, all);
    if (is_behind) of_source.behind = saturated_sum(of_source.behind, all);
  }

  Attrs unmarked(OpId op) const {
    Attrs attrs = module_.attrs(op);
    attrs.erase(text_words::kAgain);
    return attrs;
  }

  const Module& module_;
  const Hardware& hardware_;
  const ModuleExecutions executions_;
  std::vector<bool> is_behind_;  // by value: a barrier
  std::unordered_map<Source, Times, SourceHash> times_;
  bool has_marks_ = false;
};

}  // namespace

ModelProducts model_products(const Module& global, const Hardware& hardware) {
  return ProductCounter(global, hardware).run();
}

}  // namespace shardwise
