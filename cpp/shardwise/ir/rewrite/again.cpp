// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/again.h"

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/text_words.h"

namespace shardwise {
namespace {

bool is_in_combiner(const Module& module, OpId op) {
  const OpId owner = module.region(module.op(op).parent).op;
  return owner && module.op(owner).def->regions == Regions::kCombiner;
}

void mark(Module& module, OpId op, int64_t times) {
  if (module.op(op).operand_count > 0) module.set_attribute(op, text_words::kAgain, IntAttr{times});
}

}  // namespace

int64_t times_before(const Module& module, OpId op) {
  const auto* times = module.attrs(op).find<IntAttr>(text_words::kAgain);
  return times == nullptr ? 0 : times->value;
}

void mark_again(Module& module, OpId op) {
  mark(module, op, times_before(module, op) + 1);
  if (module.op(op).def->regions == Regions::kCombiner) return;
  for (size_t r = 0; r < module.regions(op).size(); ++r) {
    for (const OpId inner : module.region(module.regions(op)[r]).ops) mark_again(module, inner);
  }
}

void mark_as(Module& module, OpId op, size_t first) {
  const int64_t times = times_before(module, op);
  if (times == 0) return;
  for (size_t i = first; i < module.op_count(); ++i) {
    const OpId made{static_cast<uint32_t>(i)};
    if (times_before(module, made) < times && !is_in_combiner(module, made)) mark(module, made, times);
  }
}

void unmark(Module& module, size_t first) {
  for (size_t i = first; i < module.op_count(); ++i) {
    const OpId made{static_cast<uint32_t>(i)};
    if (times_before(module, made) == 0) continue;
    Attrs attrs = module.attrs(made);
    attrs.erase(text_words::kAgain);
    module.op(made).attrs = module.context().intern(attrs);
  }
}

}  // namespace shardwise
