// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/choice_in_progress.h"

#include "shardwise/cost/hardware_json.h"

namespace shardwise {
namespace {

HardwarePtr hardware_called(const std::string& text) {
  HardwarePtr hardware = text.starts_with("{") ? hardware_from_json(text, "hardware") : builtin_hardware(text);
  if (hardware != nullptr) return hardware;
  fail<ShardingError>("compile", str("hardware must be one of ", join(builtin_hardware_names(), ", "), ", or JSON"),
                      text);
}

}  // namespace

ChoiceInProgress::ChoiceInProgress(const Module& module, const CallGraph& calls, ProgramPlacements& placements,
                                   PassContext& context)
    : module_(module),
      placements_(placements),
      choice_(choice_of(context)),
      keys_(module, calls),
      ops_(pinned_entries("ops", &Choices::ops, context)),
      sources_(pinned_entries("sources", &Choices::sources, context)),
      carries_(pinned_entries("carries", &Choices::carries, context)) {
  choice_ = {};
  choice_.mesh = placements.mesh();
  choice_.hardware = hardware_called(context.options.hardware);
  choice_.fingerprint = keys_.fingerprint();
  choice_.ops.resize(module.op_count());
  if (context.pinned == nullptr || context.pinned->program.empty()) return;
  const std::string own = fingerprint_text(choice_.fingerprint);
  if (context.pinned->program == own) return;
  fail<ShardingError>("jit", str("choices must be of this program, ", own),
                      str("choices of program ", context.pinned->program), "compile without choices");
}

void ChoiceInProgress::add_name(OpId op) {
  choice_.named_ops.push_back({op, keys_.of(op), OpView(module_, op).name()});
}

void ChoiceInProgress::check_pins() const {
  ops_.check_all_taken();
  sources_.check_all_taken();
  carries_.check_all_taken();
}

}  // namespace shardwise
