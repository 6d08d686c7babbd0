// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/choice_text.h"

#include "shardwise/choice/choice_key.h"
#include "shardwise/choice/program_placements.h"

namespace shardwise {

Choices choices_of(const Choice& choice, const Context& context) {
  Choices choices{.program = fingerprint_text(choice.fingerprint),
                  .ops = {},
                  .plans = choice.plans,
                  .sources = choice.sources,
                  .carries = choice.carries,
                  .exchanges = choice.exchanges};
  const auto texts_of = [&](const std::vector<PlacementId>& placements) {
    std::vector<std::string> texts;
    for (const PlacementId id : placements) texts.push_back(placement_text(context, id, choice.mesh));
    return texts;
  };
  for (const Choice::NamedOp& named : choice.named_ops) {
    const OpChoice& op = choice.ops[named.op.index];
    choices.ops.push_back({.at = named.key.text(),
                           .op = std::string(named.name),
                           .method = op.method == nullptr ? "" : std::string(op.method->name),
                           .operands = texts_of(op.operands),
                           .results = texts_of(op.results)});
  }
  return choices;
}

std::string choice_text(const ChosenOp& choice) {
  std::string text = choice.method.empty() ? choice.op : str(choice.op, " by ", choice.method);
  for (const std::string& operand : choice.operands) text += " " + operand;
  text += " ->";
  for (const std::string& result : choice.results) text += " " + result;
  return text;
}

void fail_as_impossible(std::string_view subject, const std::string& pinned, const std::string& possible) {
  fail<ShardingError>(subject, "choices must be possible for the program on this mesh",
                      str(pinned, ", where the partitioner would choose ", possible), "leave this entry out");
}

}  // namespace shardwise
