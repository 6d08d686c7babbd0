// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/value_queries.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/place.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/mesh.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/sharding/manual_computation.h"

namespace shardwise {

namespace {

LocId call_of(const Module& module, LocId loc) {
  const bool named = loc && module.context().location(loc).kind == Location::Kind::kName;
  return named ? module.context().location(loc).child : loc;
}

// Marks the values that an op of the same call uses. np.var records eleven ops, and `v = np.var(x)` assigns only the
// last one's result.
void mark_inner(const Module& module, const Provenance& provenance, RegionId region, std::vector<bool>& inner) {
  for (OpId op : module.region(region).ops) {
    for (const RegionId nested : module.regions(op)) mark_inner(module, provenance, nested, inner);
    if (module.op(op).result_count == 1 && is_made_constraint(module, provenance, module.result(op))) continue;
    const LocId call = call_of(module, module.op(op).loc);
    for (ValueId operand : module.operands(op)) {
      if (call && module.value(operand).op && call_of(module, loc_of(module, operand)) == call)
        inner[operand.index] = true;
    }
  }
}

std::vector<bool> inner_values(const Module& module, const Provenance& provenance) {
  std::vector<bool> inner(module.value_count());
  mark_inner(module, provenance, module.main().body, inner);
  return inner;
}

// The body of a reduction is recorded by the call that is assigned to the variable; a manual region's by other calls.
bool has_own_call(const Module& module, OpId op) {
  const OpId around = module.region(module.op(op).parent).op;
  return !around || call_of(module, module.op(op).loc) != call_of(module, module.op(around).loc);
}

// A value's names, the one to show first: those in the text, the one given to it, the variable assigned.
std::vector<std::string> names_of(const Module& module, ValueId id, const std::vector<bool>& inner) {
  std::vector<std::string> names;
  const Context& context = module.context();
  LocId loc = loc_of(module, id);
  std::string given = context.name_of(loc);
  if (const std::optional<TextNames> text = text_names(given)) {
    const std::string name = name_in_text(text->names, module.value(id).op ? module.value(id).index : 0);
    names = {name, in_full(text->function, name)};
    if (text->function != main_symbol(module)) std::swap(names[0], names[1]);
    loc = context.location(loc).child;
    given = context.name_of(loc);
  }
  if (!given.empty()) names.push_back(std::move(given));
  const OpId op = module.value(id).op;
  if (!op || inner[id.index] || !has_own_call(module, op)) return names;
  if (std::string variable = module.context().resolve(loc).variable; !variable.empty())
    names.push_back(std::move(variable));
  return names;
}

bool matches_name(const std::vector<std::string>& names, const std::string& query) {
  return std::ranges::any_of(names,
                             [&](const std::string& name) { return name == query || name.starts_with(query + "#"); });
}

void append_values(const Module& module, RegionId region, std::vector<ValueId>& values) {
  for (ValueId argument : module.region(region).arguments) values.push_back(argument);
  for (OpId op : module.region(region).ops) {
    for (uint32_t i = 0; i < module.op(op).result_count; ++i) values.push_back(module.result(op, i));
    for (RegionId inner : module.regions(op)) append_values(module, inner, values);
  }
}

// "train.py:31" is line 31 of a file of that name in any folder; "Cell In[2], line 6" a line of a notebook.
struct Line {
  std::string file;
  int32_t number = 0;
};

std::optional<Line> line_of(std::string_view query) {
  const std::string_view separator = separator_of_line(query);
  const size_t end_of_file = query.rfind(separator);
  if (end_of_file == std::string_view::npos || end_of_file == 0) return std::nullopt;
  const std::string_view digits = query.substr(end_of_file + separator.size());
  Line line{.file = std::string(query.substr(0, end_of_file))};
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

bool names_op(std::string_view op, std::string_view name) {
  return op == name || (op.size() > name.size() && op.ends_with(name) && op[op.size() - name.size() - 1] == '.');
}

// Of all functions, main first.
std::vector<ValueId> values_of_all(const Module& module) {
  std::vector<ValueId> values = values_of_main(module);
  for (const Function& function : module.functions) {
    if (function.body != module.main().body) append_values(module, function.body, values);
  }
  return values;
}

// A text may name an argument of several regions of an op at once, as with stablehlo.while: users see one value.
bool is_named_before(const Module& module, ValueId id, std::set<std::pair<OpId, LocId>>& named) {
  const Value& value = module.value(id);
  const OpId owner = value.op ? OpId{} : module.region(value.region).op;
  return owner && text_names(module.context().name_of(value.loc)) && !named.emplace(owner, value.loc).second;
}

std::vector<ValueId> results_of(const Module& module, const Provenance& provenance, const OpQuery& query) {
  std::vector<ValueId> found;
  size_t index = 0;
  OpId last;
  for (const ValueId value : values_of_all(module)) {
    const OpId op = module.value(value).op;
    if (!op || !names_op(shown_op(module, provenance, op), query.name)) continue;
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

std::vector<NamedValue> find_values(const Module& module, const Provenance& provenance, const std::string& query) {
  std::vector<NamedValue> found;
  std::vector<ValueId> values = values_of_all(module);
  std::set<std::pair<OpId, LocId>> named;
  std::erase_if(values, [&](ValueId value) {
    return is_made_constraint(module, provenance, value) || is_named_before(module, value, named);
  });
  const std::vector<bool> inner = inner_values(module, provenance);
  const auto add = [&](ValueId value) {
    const std::vector<std::string> names = names_of(module, value, inner);
    found.push_back({value, names.empty() ? std::string() : names.front()});
  };
  for (const ValueId value : values) {
    if (matches_name(names_of(module, value, inner), query)) add(value);
  }
  if (!found.empty()) return found;
  if (const std::optional<Line> line = line_of(query)) {
    for (const ValueId value : values) {
      if (is_at(module.context().resolve(loc_of(module, value)), *line)) add(value);
    }
  }
  if (found.empty()) std::ranges::for_each(results_of(module, provenance, op_of(query)), add);
  return found;
}

std::vector<std::string> meanings(const Module& module, const std::string& query) {
  std::vector<std::string> found;
  if (!query.starts_with("%")) return found;
  for (const ValueId value : values_of_all(module)) {
    const std::string given = module.context().name_of(loc_of(module, value));
    const std::optional<TextNames> text = text_names(given);
    if (!text) continue;
    if (!matches_name({name_in_text(text->names, module.value(value).op ? module.value(value).index : 0)}, query))
      continue;
    std::string meaning = in_full(text->function, query);
    if (std::ranges::find(found, meaning) == found.end()) found.push_back(std::move(meaning));
  }
  if (found.size() == 1) found.clear();
  return found;
}

std::vector<std::string> value_names(const Module& module) {
  std::set<std::string> names;
  const std::vector<bool> inner = inner_values(module, {});
  for (const ValueId value : values_of_all(module)) {
    for (std::string& name : names_of(module, value, inner)) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> op_names(const Module& module, const Provenance& provenance) {
  std::set<std::string> names;
  for (const ValueId value : values_of_main(module)) {
    if (const OpId op = module.value(value).op) names.insert(shown_op(module, provenance, op));
  }
  return {names.begin(), names.end()};
}

bool is_made_constraint(const Module& module, const Provenance& provenance, ValueId value) {
  const OpId op = module.value(value).op;
  return op && module.op(op).def->traits.constraint && value.index >= provenance.initial.size() &&
         !provenance.initial.empty();
}

bool is_called_region(const Module& module, const Provenance& provenance, OpId op) {
  return op && is_named_computation(module, op) &&
         provenance.called.contains(module.attrs(op).get<std::string>("name"));
}

std::string shown_op(const Module& module, const Provenance& provenance, OpId op) {
  return std::string(is_called_region(module, provenance, op) ? kCallName : module.op(op).def->name);
}

}  // namespace shardwise
