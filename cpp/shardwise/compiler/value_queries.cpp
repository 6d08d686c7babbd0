// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/value_queries.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "shardwise/base/text.h"
#include "shardwise/compiler/assigned_names.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/place.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/ops/control/counted_loop.h"
#include "shardwise/propagation/sharding_groups.h"
#include "shardwise/transforms/call_regions.h"

namespace shardwise {
namespace {

LocId call_of(const Module& module, LocId loc) {
  const bool named = loc && module.context().location(loc).kind == Location::Kind::kName;
  return named ? module.context().location(loc).child : loc;
}

// The values of main that an op of the same call uses. np.var records eleven ops, and `v = np.var(x)` assigns only the
// last one's result.
std::vector<bool> inner_values(const Module& module, const Provenance& provenance) {
  std::vector<bool> inner(module.value_count());
  walk(module, module.main().body, [&](OpId op) {
    if (module.op(op).result_count == 1 && is_made_constraint(module, provenance, module.result(op))) return;
    const LocId call = call_of(module, module.op(op).loc);
    for (const ValueId operand : module.operands(op)) {
      const bool same_call = call && module.value(operand).op && call_of(module, loc_of(module, operand)) == call;
      if (same_call) inner[operand.index] = true;
    }
  });
  return inner;
}

// The body of a reduction is recorded by the call that is assigned to the variable; a manual region's by other calls.
bool has_own_call(const Module& module, OpId op) {
  const OpId around = module.region(module.op(op).parent).op;
  return !around || call_of(module, module.op(op).loc) != call_of(module, module.op(around).loc);
}

// A loop that counts has a carry more than the call of a scan gives, which nothing reads afterwards.
bool is_counter(const Module& module, ValueId id) {
  const OpView op(module, module.value(id).op);
  if (op.def().regions != Regions::kLoop) return false;
  const std::optional<CountedLoop> counted = counted_loop(op);
  return counted && counted->counter == module.value(id).index;
}

std::vector<bool> used_values(const Module& module) {
  std::vector<bool> used(module.value_count());
  const auto use = [&](std::span<const ValueId> values) {
    for (const ValueId value : values) used[value.index] = true;
  };
  for (const Function& function : module.functions) use(module.region(function.body).results);
  walk(module, [&](OpId op) {
    use(module.operands(op));
    for (const RegionId region : module.regions(op)) use(module.region(region).results);
  });
  return used;
}

// A short form of a text has one place for an op and the op of its combiner.
bool is_of_short_form(const Module& module, ValueId id) {
  const OpId op = module.value(id).op;
  const OpId around = op ? module.region(module.op(op).parent).op : OpId{};
  return around && module.op(around).def->regions == Regions::kCombiner && module.op(around).loc == module.op(op).loc;
}

bool matches_name(const std::vector<std::string>& names, const std::string& query) {
  return std::ranges::any_of(names,
                             [&](const std::string& name) { return name == query || name.starts_with(query + "#"); });
}

struct Numbered {
  std::string text;
  int64_t number = 0;
};

// "train.py" and 31 of "train.py:31", whose number stands between ":" and "". Not by a regular expression: std::regex
// recurses once for each character of what a user asks for.
std::optional<Numbered> numbered(std::string_view query, std::string_view before, std::string_view after) {
  if (!query.ends_with(after)) return std::nullopt;
  query.remove_suffix(after.size());
  const size_t at = query.rfind(before);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const auto number = number_of<int64_t>(query.substr(at + before.size()));
  return number ? std::optional(Numbered{std::string(query.substr(0, at)), *number}) : std::nullopt;
}

// Whether the last parts of `path`, between separators, are `query`: "train.py" of "/home/train.py".
bool ends_with_part(std::string_view path, std::string_view query, char separator) {
  return path.ends_with(query) && (path.size() == query.size() || path[path.size() - query.size() - 1] == separator);
}

}  // namespace

ValueQueries::ValueQueries(const Module& module, const Provenance& provenance) : module_(module) {
  std::vector<ValueId> values = values_of_main(module);
  main_count_ = values.size();
  for (const Function& function : module.functions) {
    if (function.body != module.main().body) append_values(module, function.body, values);
  }
  const std::vector<bool> inner = inner_values(module, provenance);
  const std::vector<bool> used = used_values(module);
  // The results of each call, in the order in which it unpacks them.
  std::unordered_map<LocId, std::vector<ValueId>> results;
  const auto is_result = [&](ValueId id) {
    return module.value(id).op && !inner[id.index] && has_own_call(module, module.value(id).op) &&
           (used[id.index] || !is_counter(module, id));
  };
  for (const ValueId id : values) {
    if (is_result(id)) results[call_of(module, loc_of(module, id))].push_back(id);
  }
  std::set<std::pair<OpId, LocId>> named;
  for (const ValueId id : values) {
    const Value& value = module.value(id);
    Entry& entry = entries_.emplace_back(Entry{.value = id});
    if (value.op) entry.op = name_with_calls(module, provenance.called, value.op);
    add_given_names(entry);
    if (is_result(id)) add_variables(entry, results[call_of(module, loc_of(module, id))]);
    // A text may name an argument of several regions of an op at once, as with stablehlo.while.
    const OpId owner = value.op ? OpId{} : module.region(value.region).op;
    const bool is_named_before = owner && !entry.function.empty() && !named.emplace(owner, value.loc).second;
    entry.is_repeated = is_named_before || is_made_constraint(module, provenance, id) || is_of_short_form(module, id);
  }
}

// Those in the text, and the one given to it.
void ValueQueries::add_given_names(Entry& entry) {
  const Context& context = module_.context();
  const Value& value = module_.value(entry.value);
  LocId loc = loc_of(module_, entry.value);
  std::string given = context.name_of(loc);
  if (const std::optional<TextNames> text = text_names(given)) {
    entry.function = text->function;
    const std::string name = name_in_text(text->names, value.op ? value.index : 0);
    // %h and "@main %h" both find a value of main. Elsewhere "@f %h" is the name to show: %h alone may be main's.
    entry.names = {name, in_full(entry.function, name)};
    if (entry.function != main_symbol(module_)) std::swap(entry.names[0], entry.names[1]);
    given = context.name_of(context.location(loc).child);
  }
  if (!given.empty()) entry.names.push_back(std::move(given));
}

// Those that the call is assigned to. The k-th of its results is the k-th leaf that is unpacked. If the program has
// another number of them, such as one that is left of two, each may be any of the leaves: it is shown with all names.
void ValueQueries::add_variables(Entry& entry, const std::vector<ValueId>& results) {
  const auto place = static_cast<size_t>(std::ranges::find(results, entry.value) - results.begin());
  const std::string assigned = module_.context().resolve(loc_of(module_, entry.value)).variable;
  for (std::vector<std::string>& leaves : assigned_targets(assigned)) {
    if (leaves.size() == results.size()) {
      entry.names.push_back(std::move(leaves[place]));
    } else {
      if (leaves.size() > 1) entry.names.push_back(join(leaves, ", "));
      entry.names.insert(entry.names.end(), leaves.begin(), leaves.end());
    }
  }
}

std::vector<NamedValue> ValueQueries::find(const std::string& query) const {
  std::vector<NamedValue> found;
  const auto add = [&](const Entry& entry) {
    found.push_back({entry.value, entry.names.empty() ? std::string() : entry.names.front()});
  };
  for (const Entry& entry : entries_) {
    if (!entry.is_repeated && matches_name(entry.names, query)) add(entry);
  }
  const std::optional<Numbered> line = numbered(query, separator_of_line(query), "");
  // A name wins over a line, and a line over the name of an op: "dot_general[1]" is the second one of the program.
  if (found.empty() && line) {
    for (const Entry& entry : entries_) {
      const ResolvedSource source = module_.context().resolve(loc_of(module_, entry.value));
      const bool is_at = source.line == line->number && ends_with_part(source.file, line->text, '/');
      if (!entry.is_repeated && is_at) add(entry);
    }
  }
  if (!found.empty()) return found;
  const std::optional<Numbered> one = numbered(query, "[", "]");
  const std::string& op_name = one ? one->text : query;
  int64_t number = -1;  // of the op among those of this name
  OpId last;
  for (const Entry& entry : entries_) {
    if (entry.op.empty() || !ends_with_part(entry.op, op_name, '.')) continue;
    // The results of one op follow each other and share its number.
    if (const OpId op = module_.value(entry.value).op; std::exchange(last, op) != op) ++number;
    if (!one || number == one->number) add(entry);
  }
  return found;
}

std::vector<std::string> ValueQueries::meanings(const std::string& query) const {
  std::vector<std::string> found;
  if (!query.starts_with("%")) return found;
  for (const Entry& entry : entries_) {
    if (entry.function.empty() || !matches_name(entry.names, query)) continue;
    std::string meaning = in_full(entry.function, query);
    if (std::ranges::find(found, meaning) == found.end()) found.push_back(std::move(meaning));
  }
  // One meaning is no ambiguity.
  return found.size() == 1 ? std::vector<std::string>() : found;
}

std::vector<std::string> ValueQueries::all() const {
  std::set<std::string> names, ops;
  for (const Entry& entry : entries_) names.insert(entry.names.begin(), entry.names.end());
  // Ops of other functions would fill the list of suggestions.
  for (size_t i = 0; i < main_count_; ++i) {
    if (!entries_[i].op.empty()) ops.insert(entries_[i].op);
  }
  std::vector<std::string> all(names.begin(), names.end());
  all.insert(all.end(), ops.begin(), ops.end());
  return all;
}

}  // namespace shardwise
