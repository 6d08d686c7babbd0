// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/value_names.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

LocId loc_of(const Module& module, ValueId id) {
  const Value& value = module.value(id);
  return value.op ? module.op(value.op).loc : value.loc;
}

namespace {

LocId call_of(const Module& module, LocId loc) {
  const bool named = loc && module.context().location(loc).kind == Location::Kind::kName;
  return named ? module.context().location(loc).child : loc;
}

// By value index: whether an op of the same call uses it. np.var records eleven ops, and only the last one's result is
// what `v = np.var(x)` stores.
std::vector<bool> inner_values(const Module& module) {
  std::vector<bool> inner(module.value_count());
  for (OpId op : module.region(module.main().body).ops) {
    const LocId call = call_of(module, module.op(op).loc);
    for (ValueId operand : module.operands(op)) {
      if (call && module.value(operand).op && call_of(module, loc_of(module, operand)) == call)
        inner[operand.index] = true;
    }
  }
  return inner;
}

// The name of result `index` in what a text has on the left of an op: "%b#1" of "%a, %b:2", for the third one.
std::string name_in_text(std::string_view names, uint32_t index) {
  while (true) {
    const std::string_view entry = names.substr(0, names.find(", "));
    const size_t colon = entry.find(':');
    const std::string name(entry.substr(0, colon));
    const uint32_t count =
        colon == std::string_view::npos ? 1 : static_cast<uint32_t>(std::stoul(std::string(entry.substr(colon + 1))));
    if (index < count || entry.size() == names.size()) return count == 1 ? name : str(name, "#", index);
    index -= count;
    names.remove_prefix(entry.size() + 2);
  }
}

// A value's names: that in the text; the one it was given; the variable that it was stored to.
std::vector<std::string> names_of(const Module& module, ValueId id, const std::vector<bool>& inner) {
  std::vector<std::string> names;
  const Context& context = module.context();
  LocId loc = loc_of(module, id);
  std::string given = context.name_of(loc);
  if (given.starts_with("%")) {
    names.push_back(name_in_text(given, module.value(id).op ? module.value(id).index : 0));
    loc = context.location(loc).child;
    given = context.name_of(loc);
  }
  if (!given.empty()) names.push_back(std::move(given));
  const OpId op = module.value(id).op;
  // The body of a reduction is recorded by the call whose result the variable holds.
  if (!op || inner[id.index] || module.op(op).parent != module.main().body) return names;
  if (std::string variable = module.context().resolve(loc).variable; !variable.empty())
    names.push_back(std::move(variable));
  return names;
}

void append_values(const Module& module, RegionId region, std::vector<ValueId>& values) {
  for (ValueId argument : module.region(region).arguments) values.push_back(argument);
  for (OpId op : module.region(region).ops) {
    for (uint32_t i = 0; i < module.op(op).result_count; ++i) values.push_back(module.result(op, i));
    for (RegionId inner : module.regions(op)) append_values(module, inner, values);
  }
}

// "train.py:31" is line 31 of a file of that name, in whatever folder.
struct Line {
  std::string file;
  int32_t number = 0;
};

std::optional<Line> line_of(std::string_view query) {
  const size_t colon = query.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view digits = query.substr(colon + 1);
  Line line{.file = std::string(query.substr(0, colon))};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), line.number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return line;
}

bool is_at(const ResolvedSource& source, const Line& line) {
  if (source.line != line.number || !source.file.ends_with(line.file)) return false;
  return source.file.size() == line.file.size() || source.file[source.file.size() - line.file.size() - 1] == '/';
}

// "dot_general[2]" is the third of these ops.
struct OpQuery {
  std::string name;
  std::optional<size_t> index;
};

OpQuery op_of(std::string_view query) {
  const size_t bracket = query.find('[');
  if (bracket == std::string_view::npos || !query.ends_with(']')) return {.name = std::string(query), .index = {}};
  const std::string_view digits = query.substr(bracket + 1, query.size() - bracket - 2);
  size_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
  if (!is_number) return {.name = std::string(query), .index = {}};
  return {.name = std::string(query.substr(0, bracket)), .index = index};
}

bool is_called(std::string_view op, std::string_view name) {
  return op == name || (op.size() > name.size() && op.ends_with(name) && op[op.size() - name.size() - 1] == '.');
}

std::vector<ValueId> results_of(const Module& module, const OpQuery& query) {
  std::vector<ValueId> found;
  size_t index = 0;
  OpId last;
  for (const ValueId value : values_of_main(module)) {
    const OpId op = module.value(value).op;
    if (!op || !is_called(module.op(op).def->name, query.name)) continue;
    if (last && op != last) ++index;
    last = op;
    if (!query.index || *query.index == index) found.push_back(value);
  }
  return found;
}

}  // namespace

std::vector<ValueId> values_of_main(const Module& module) {
  std::vector<ValueId> values;
  append_values(module, module.main().body, values);
  return values;
}

std::vector<NamedValue> find_values(const Module& module, const std::string& query) {
  std::vector<NamedValue> found;
  const std::vector<bool> inner = inner_values(module);
  const auto add = [&](ValueId value) {
    const std::vector<std::string> names = names_of(module, value, inner);
    found.push_back({value, names.empty() ? std::string() : names.front()});
  };
  for (const ValueId value : values_of_main(module)) {
    const std::vector<std::string> names = names_of(module, value, inner);
    const bool is_one_of_several = !names.empty() && names.front().starts_with(query + "#");
    if (is_one_of_several || std::ranges::find(names, query) != names.end()) add(value);
  }
  if (!found.empty()) return found;
  if (const std::optional<Line> line = line_of(query)) {
    for (const ValueId value : values_of_main(module)) {
      if (is_at(module.context().resolve(loc_of(module, value)), *line)) add(value);
    }
  }
  if (found.empty()) std::ranges::for_each(results_of(module, op_of(query)), add);
  return found;
}

std::vector<std::string> value_names(const Module& module) {
  std::set<std::string> names;
  const std::vector<bool> inner = inner_values(module);
  for (const ValueId value : values_of_main(module)) {
    for (std::string& name : names_of(module, value, inner)) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> op_names(const Module& module) {
  std::set<std::string> names;
  for (const ValueId value : values_of_main(module)) {
    if (const OpId op = module.value(value).op) names.emplace(module.op(op).def->name);
  }
  return {names.begin(), names.end()};
}

}  // namespace shardwise
