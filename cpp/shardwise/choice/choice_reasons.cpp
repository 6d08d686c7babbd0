// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/choice_reasons.h"

#include <algorithm>
#include <utility>

#include "shardwise/base/text.h"
#include "shardwise/choice/choice_text.h"
#include "shardwise/emission/cause.h"

namespace shardwise {
namespace {

std::string name_of(const ChosenOp& way, const ChosenOp& chosen) {
  if (way.results != chosen.results) return join(way.results, ", ");
  if (way.operands != chosen.operands) return str("with operands ", join(way.operands, ", "));
  return way.method.empty() ? "without a method" : str("by ", way.method);
}

std::string reason_of(const Choice& choice, const Context& context, const Choice::NamedOp& named) {
  if (choice.pinned.contains(named.op)) return "pinned";
  const auto other = choice.next_best.find(named.op);
  if (other == choice.next_best.end()) return {};
  const auto text = [&](const OpChoice& way) { return described(choice, context, named.key, named.name, way); };
  const std::string name = name_of(text(other->second.way), text(choice.ops[named.op.index]));
  return str(other->second.is_by_time ? "faster than " : "fewer bytes than ", name);
}

}  // namespace

ChoiceReasons::ChoiceReasons(const Choice* choice, const Context& context) {
  if (choice == nullptr) return;
  for (const Choice::NamedOp& named : choice->named_ops) {
    std::string text = reason_of(*choice, context, named);
    std::vector<Reason>& here = reasons_[named.loc];
    const auto known = std::ranges::find(here, named.name, &Reason::op);
    if (known == here.end()) {
      here.push_back({named.name, std::move(text)});
    } else if (known->text != text) {
      known->text.clear();
    }
  }
}

std::string_view ChoiceReasons::of(LocId loc, std::string_view cause) const {
  const auto found = reasons_.find(loc);
  if (found == reasons_.end()) return {};
  for (const Reason& reason : found->second) {
    if (Cause::is_about(cause, reason.op)) return reason.text;
  }
  return {};
}

}  // namespace shardwise
