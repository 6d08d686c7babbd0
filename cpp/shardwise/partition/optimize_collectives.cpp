// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/optimize_collectives.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "shardwise/partition/plan_reshards.h"
#include "shardwise/transforms/rewriter.h"

namespace shardwise {
namespace {

// Ops with equal keys compute equal results on every device.
struct Key {
  const OpDef* def;
  AttrsId attrs;
  std::vector<ValueId> operands;
  std::vector<TypeId> types;
  friend bool operator==(const Key&, const Key&) = default;
};

struct KeyHash {
  size_t operator()(const Key& key) const {
    size_t seed = hash_combine(std::hash<const void*>()(key.def), key.attrs.index);
    for (const ValueId operand : key.operands) seed = hash_combine(seed, operand.index);
    for (const TypeId type : key.types) seed = hash_combine(seed, type.index);
    return seed;
  }
};

class Merger {
 public:
  Merger(const Module& module, const std::vector<LocalLayout>& layouts) : layouts_(layouts), rewriter_(module) {}

  Module run(PassContext& context) {
    rewriter_.copy_arguments();
    for (const ValueId argument : rewriter_.source_body().arguments) keep_layout(argument);
    const std::vector<bool> needed = needed_ops();
    for (const OpId id : rewriter_.source_body().ops) {
      if (needed[id.index]) add(OpView(rewriter_.source(), id));
    }
    rewriter_.return_mapped_results();
    kept_layouts_.resize(rewriter_.target().value_count());
    context.counters.add("optimize_collectives.merged", merged_);
    context.counters.add("optimize_collectives.removed",
                         std::ssize(rewriter_.source_body().ops) - std::count(needed.begin(), needed.end(), true));
    context.layouts = std::move(kept_layouts_);
    return rewriter_.finish();
  }

 private:
  // By op id: ops that a result or a side effect depends on. An annotated value whose users all start from the original
  // value leaves an unused collective.
  std::vector<bool> needed_ops() const {
    const Module& source = rewriter_.source();
    std::vector<bool> needed(source.op_count(), false);
    std::vector<bool> used(source.value_count(), false);
    const Region& body = rewriter_.source_body();
    for (const ValueId result : body.results) used[result.index] = true;
    for (auto id = body.ops.rbegin(); id != body.ops.rend(); ++id) {
      const Operation& op = source.op(*id);
      bool wanted = op.def->has_side_effect(OpView(source, *id));
      for (uint32_t i = 0; i < op.result_count; ++i) wanted = wanted || used[source.result(*id, i).index];
      if (!wanted) continue;
      needed[id->index] = true;
      mark_operands(*id, used);
    }
    return needed;
  }

  // Marks operands of the op and of the ops in its regions, which may capture values.
  void mark_operands(OpId id, std::vector<bool>& used) const {
    const Module& source = rewriter_.source();
    for (const ValueId operand : source.operands(id)) used[operand.index] = true;
    for (const RegionId region : source.regions(id)) {
      for (const ValueId result : source.region(region).results) used[result.index] = true;
      for (const OpId inner : source.region(region).ops) mark_operands(inner, used);
    }
  }

  void add(const OpView& op) {
    if (op.def().has_side_effect(op) || !op.regions().empty() || op.result_count() == 0) {
      rewriter_.copy(op);
    } else {
      const auto [it, is_new] = made_.try_emplace(key_of(op), ValueId{});
      if (!is_new && merge(op, it->second)) return;
      it->second = rewriter_.target().result(rewriter_.copy(op));
    }
    for (size_t i = 0; i < op.result_count(); ++i) keep_layout(op.result(i));
  }

  // Equal bits may be shards of different values, one of which has padding that must not be read.
  bool merge(const OpView& op, ValueId first_result) {
    for (size_t i = 0; i < op.result_count(); ++i) {
      const ValueId kept{first_result.index + static_cast<uint32_t>(i)};
      if (!same_layout(layout_of(layouts_, op.result(i)), layout_of(kept_layouts_, kept))) return false;
    }
    for (size_t i = 0; i < op.result_count(); ++i) {
      rewriter_.set(op.result(i), ValueId{first_result.index + static_cast<uint32_t>(i)});
    }
    ++merged_;
    return true;
  }

  // Values without a global value, such as offsets, may be beyond the end of the table.
  static const LocalLayout& layout_of(const std::vector<LocalLayout>& layouts, ValueId value) {
    static const LocalLayout none;
    return value.index < layouts.size() ? layouts[value.index] : none;
  }

  static bool same_layout(const LocalLayout& a, const LocalLayout& b) {
    return a.global_type == b.global_type && a.dims == b.dims && a.unreduced == b.unreduced && a.reducer == b.reducer &&
           a.padding == b.padding;
  }

  Key key_of(const OpView& op) const {
    Key key{&op.def(), op.module().op(op.id()).attrs, {}, {}};
    if (op.attrs().find(kCauseAttr) != nullptr) {
      Attrs attrs = op.attrs();
      attrs.erase(kCauseAttr);
      key.attrs = op.module().context().intern(attrs);
    }
    for (const ValueId operand : op.operands()) key.operands.push_back(rewriter_.get(operand));
    for (size_t i = 0; i < op.result_count(); ++i) key.types.push_back(op.module().value(op.result(i)).type);
    return key;
  }

  void keep_layout(ValueId source) {
    const ValueId kept = rewriter_.get(source);
    if (kept_layouts_.size() <= kept.index) kept_layouts_.resize(kept.index + 1);
    if (source.index < layouts_.size()) kept_layouts_[kept.index] = layouts_[source.index];
  }

  const std::vector<LocalLayout>& layouts_;
  Rewriter rewriter_;
  std::vector<LocalLayout> kept_layouts_;
  std::unordered_map<Key, ValueId, KeyHash> made_;  // first result
  int64_t merged_ = 0;
};

}  // namespace

Module optimize_collectives(Module module, PassContext& context) {
  return Merger(module, context.layouts).run(context);
}

}  // namespace shardwise
