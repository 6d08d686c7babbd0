// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/choice_text.h"

#include "shardwise/choice/choice_key.h"
#include "shardwise/choice/program_placements.h"
#include "shardwise/ir/rewrite/located.h"

namespace shardwise {

ChosenOp described(const Choice& choice, const Context& context, const OpKey& key, std::string_view name,
                   const OpChoice& op) {
  const auto texts_of = [&](const std::vector<PlacementId>& placements) {
    std::vector<std::string> texts;
    for (const PlacementId id : placements) texts.push_back(placement_text(context, id, choice.mesh));
    return texts;
  };
  return {.at = key.text(),
          .op = std::string(name),
          .method = op.method == nullptr ? "" : std::string(op.method->name),
          .operands = texts_of(op.operands),
          .results = texts_of(op.results)};
}

Choices choices_of(const Choice& choice, const Context& context) {
  Choices choices{.program = fingerprint_text(choice.fingerprint),
                  .propagation = choice.is_state_last ? std::string(kStateLast) : std::string(),
                  .ops = {},
                  .plans = choice.plans,
                  .sources = choice.sources,
                  .carries = choice.carries,
                  .exchanges = choice.exchanges,
                  .asked = {}};
  for (const Choice::NamedOp& named : choice.named_ops) {
    choices.ops.push_back(described(choice, context, named.key, named.name, choice.ops[named.op.index]));
  }
  return choices;
}

std::vector<ChosenOp> ways_of(const Choice& choice, const Context& context) {
  std::vector<ChosenOp> ways;
  for (const Choice::NamedOp& named : choice.named_ops) {
    const auto asked = choice.ways.find(named.op);
    if (asked == choice.ways.end()) continue;
    for (const OpChoice& way : asked->second) {
      ways.push_back(described(choice, context, named.key, named.name, way));
    }
  }
  return ways;
}

std::string choice_text(const ChosenOp& choice) {
  std::string text = choice.method.empty() ? choice.op : str(choice.op, " by ", choice.method);
  for (const std::string& operand : choice.operands) text += " " + operand;
  text += " ->";
  for (const std::string& result : choice.results) text += " " + result;
  return text;
}

std::string entry_text(std::string_view kind, std::string_view at) { return str("choices.", kind, "['", at, "']"); }

void fail_as_impossible(const Module& module, OpId op, const ImpossibleEntry& entry) {
  const std::string of = op ? str(" of ", OpView(module, op).name()) : std::string();
  const std::string got = str(entry_text(entry.kind, entry.at), of, ": ", entry.pinned,
                              ", where the partitioner would choose ", entry.possible);
  fail_at<ShardingError>(
      module, op ? module.op(op).loc : LocId{},
      error_message("jit", "choices must be possible for the program on this mesh", got, "remove the entry"));
}

}  // namespace shardwise
