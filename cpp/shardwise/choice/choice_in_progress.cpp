// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/choice_in_progress.h"

#include <utility>

namespace shardwise {

ChoiceInProgress::ChoiceInProgress(const Module& module, const OpKeys& keys, ProgramPlacements& placements,
                                   HardwarePtr hardware, PassContext& context)
    : module_(module),
      placements_(placements),
      choice_(choice_of(context)),
      keys_(keys),
      ops_(pinned_entries("ops", &Choices::ops, context)),
      sources_(pinned_entries("sources", &Choices::sources, context)),
      carries_(pinned_entries("carries", &Choices::carries, context)),
      asked_() {
  if (context.pinned != nullptr) asked_ = {context.pinned->asked.begin(), context.pinned->asked.end()};
  choice_ = {};
  choice_.mesh = placements.mesh();
  choice_.hardware = std::move(hardware);
  choice_.fingerprint = keys_.fingerprint();
  choice_.ops.resize(module.op_count());
  if (context.pinned == nullptr || context.pinned->program.empty()) return;
  const std::string own = fingerprint_text(choice_.fingerprint);
  if (context.pinned->program == own) return;
  fail<ShardingError>("jit", str("choices must be of this program, ", own),
                      str("choices of program ", context.pinned->program), "compile without choices");
}

void ChoiceInProgress::add_name(OpId op) {
  choice_.named_ops.push_back({op, keys_.of(op), OpView(module_, op).name(), module_.op(op).loc});
}

void ChoiceInProgress::check_pins() const {
  ops_.check_all_taken();
  sources_.check_all_taken();
  carries_.check_all_taken();
}

}  // namespace shardwise
