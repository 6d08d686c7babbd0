// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/simplify.h"

#include <vector>

#include "shardwise/ir/rewrite/cse.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/build/decomposition.h"
#include "shardwise/transforms/decompose.h"
#include "shardwise/transforms/inline_calls.h"
#include "shardwise/transforms/unused_results.h"

namespace shardwise {
namespace {

// The value of a constant whose elements are all the same; null for other ops.
const DenseAttr* splat_of(const Module& module, ValueId value) {
  const OpId id = module.value(value).op;
  if (!id || !module.op(id).def->traits.constant_like || module.op(id).operand_count != 0) return nullptr;
  const auto* dense = module.attrs(id).find<DenseAttr>("value");
  return dense != nullptr && dense->data.is_splat() && dense->data.size() > 0 ? dense : nullptr;
}

// A movement of a splat is the splat with the result's shape. The op becomes that constant in place.
bool fold_splat(Module& module, OpId id) {
  const Operation op = module.op(id);
  const Traits& traits = op.def->traits;
  if (!traits.movement || traits.side_effect || traits.reshard || traits.constraint) return false;
  if (traits.collective != CollectiveKind::kNone) return false;
  if (op.operand_count != 1 || op.result_count != 1 || op.region_count != 0) return false;
  const ValueId operand = module.operands(id)[0];
  const DenseAttr* dense = splat_of(module, operand);
  if (dense == nullptr) return false;
  const TensorType& type = module.type(module.result(id));
  if (type.dtype != dense->data.dtype()) return false;
  const NdArray& data = dense->data;
  // The one element in memory is shared: a splat of a gigabyte costs four bytes.
  NdArray moved(type.dtype, type.shape, Dims(type.shape.size(), 0), data.data(), data.owner());
  Attrs attrs = module.attrs(module.value(operand).op);
  attrs.set("value", DenseAttr{std::move(moved)});
  module.become_constant(id, *module.op(module.value(operand).op).def, module.context().intern(attrs));
  return true;
}

// Whether `by` took the place of the op. An annotated result stays, unless `by` was made for it.
bool replace(Rewrite& rewrite, Module& module, OpId id, ValueId by, bool is_made) {
  const ValueId result = module.result(id);
  const ShardingId sharding = module.value(result).sharding;
  if (!by || (!is_made && sharding && module.value(by).sharding != sharding)) return false;
  if (is_made) {
    rewrite.hand_over(result, by);
  } else {
    rewrite.replace(result, by);
  }
  rewrite.erase(id);
  return true;
}

// By OpDef::fold.
int64_t fold_ops(Module& module) {
  const std::vector<OpId> ops = find_ops(module, [&](OpId id) { return module.op(id).def->fold != nullptr; });
  if (ops.empty()) return 0;
  Rewrite rewrite(module);
  int64_t folded = 0;
  for (const OpId id : ops) {
    const auto known_values = static_cast<uint32_t>(module.value_count());
    const Operation op = module.op(id);
    const ValueId by = rewrite.insert(rewrite.before(id), op.loc, [&](Builder& builder) {
      // Reports and errors lead to what was written.
      builder.set_loc(op.loc, op.origin);
      return module.op(id).def->fold(builder, OpView(module, id));
    });
    folded += replace(rewrite, module, id, by, by.index >= known_values) ? 1 : 0;
  }
  return folded;
}

// Annotations of the scalars in a combiner have no effect.
void drop_combiner_annotations(Module& module) {
  Rewrite rewrite(module);
  walk(module, [&](OpId id) {
    const OpId owner = module.region(module.op(id).parent).op;
    const Traits& traits = module.op(id).def->traits;
    if (!owner || module.op(owner).def->regions != Regions::kCombiner || !traits.annotates()) return;
    rewrite.replace(module.result(id), module.operands(id)[0]);
    rewrite.erase(id);
  });
}

void merge_and_drop(Module& module, PassContext& context) {
  context.counters.add("simplify.merged", cse(module));
  context.counters.add("simplify.removed", dce(module));
}

size_t count_calls(const Module& module) {
  return find_ops(module, [&](OpId id) { return module.op(id).def->is_call(); }).size();
}

// Equal calls become one. If nothing else calls the function then, its ops replace the call, as inline_calls says.
void merge_calls(Module& module, PassContext& context) {
  const size_t before = count_calls(module);
  merge_and_drop(module, context);
  if (count_calls(module) == before) return;
  inline_small_calls(module);
  merge_and_drop(module, context);
}

// Propagation stops at it.
bool is_opaque(const OpDef& def) { return is_composed(def) && def.rule == no_rule; }

}  // namespace

int64_t fold_splats(Module& module) {
  int64_t folded = 0;
  walk(module, [&](OpId id) { folded += fold_splat(module, id) ? 1 : 0; });
  return folded;
}

Module simplify(Module module, PassContext& context) {
  context.counters.add("simplify.decomposed", decompose_ops(module, is_opaque));
  // The body of a scan of rows is no combiner any more.
  drop_combiner_annotations(module);
  context.counters.add("simplify.folded", fold_splats(module));
  // Some folds depend on what else reads a value: a copy of a reader, or one that nothing uses, must not count.
  merge_calls(module, context);
  if (const int64_t folded = fold_ops(module); folded != 0) {
    context.counters.add("simplify.folded", folded);
    merge_and_drop(module, context);
  }
  context.counters.add("simplify.dropped_results", drop_unused_results(module));
  return module;
}

}  // namespace shardwise
