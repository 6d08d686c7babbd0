// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/value_names.h"

#include <algorithm>

#include "shardwise/base/text.h"

namespace shardwise {

LocId loc_of(const Module& module, ValueId id) {
  const Value& value = module.value(id);
  return value.op && !value.loc ? module.op(value.op).loc : value.loc;
}

std::string tensor_text(size_t operands, size_t tensor) {
  return tensor < operands ? str("operand ", tensor) : str("result ", tensor - operands);
}

std::string tensor_text(size_t operands, size_t tensor, size_t dim) {
  return str(tensor_text(operands, tensor), " dim ", dim);
}

std::optional<TextNames> text_names(std::string_view given) {
  if (!given.starts_with('@')) return std::nullopt;
  size_t end = 1;
  // A quoted symbol, @"f %x", may itself contain " %".
  if (given.size() > 1 && given[1] == '"') {
    for (end = 2; end < given.size() && given[end] != '"'; ++end) end += given[end] == '\\' ? 1 : 0;
  }
  end = given.find(" %", std::min(end, given.size()));
  if (end == std::string_view::npos) return std::nullopt;
  return TextNames{given.substr(0, end), given.substr(end + 1)};
}

// The text name of result `index`: "%b#1" of "%a, %b:2" for the third one.
std::string name_in_text(std::string_view names, uint32_t index) {
  while (true) {
    const std::string_view entry = names.substr(0, names.find(", "));
    const size_t colon = entry.find(':');
    const std::string name(entry.substr(0, colon));
    const uint32_t count =
        colon == std::string_view::npos ? 1 : static_cast<uint32_t>(std::stoul(std::string(entry.substr(colon + 1))));
    if (index < count || entry.size() == names.size()) return count == 1 ? name : str(name, "#", index);
    // The next name covers the results that follow.
    index -= count;
    names.remove_prefix(entry.size() + 2);
  }
}

std::string main_symbol(const Module& module) { return symbol_text(module.main().name); }

std::string in_full(std::string_view function, std::string_view name) { return str(function, " ", name); }

std::string shown_name(const Module& module, ValueId value) {
  const std::string given = module.context().name_of(loc_of(module, value));
  const std::optional<TextNames> text = text_names(given);
  if (!text) return given;
  const std::string name = name_in_text(text->names, module.value(value).op ? module.value(value).index : 0);
  // Most reports are about main, so only other functions are named.
  return text->function == main_symbol(module) ? name : in_full(text->function, name);
}

std::string shown_name(const Module& module, OpId op) {
  const std::string given = module.context().name_of(module.op(op).loc);
  const std::optional<TextNames> text = text_names(given);
  return text && text->function == main_symbol(module) ? std::string(text->names) : given;
}

std::string argument_text(const Module& module, ValueId argument) {
  const std::string name = shown_name(module, argument);
  return "argument " + (name.empty() ? std::to_string(module.value(argument).index) : name);
}

}  // namespace shardwise
