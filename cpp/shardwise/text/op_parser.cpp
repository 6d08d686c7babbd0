// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/op_parser.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_verifier.h"
#include "shardwise/ir/refusals.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/text/attribute_parser.h"
#include "shardwise/text/custom_directive.h"

namespace shardwise {
namespace {

bool is_terminator(std::string_view name) {
  return name == "return" || name == text_words::kFunctionReturn || name == text_words::kRegionReturn ||
         name == text_words::kShardyReturn;
}

}  // namespace

// ---- values and scopes ---------------------------------------------------------------------------------------------

OpParser::NewName OpParser::take_new_name(std::string_view what) {
  if (!take("%")) fail_here(str("expected '%' before the name of ", what));
  const size_t position = pos - 1;
  const std::string_view name = take_suffix_id();
  if (name.empty()) fail_here(str("expected the name of ", what));
  return {name, position};
}

ValueId OpParser::parse_operand() {
  expect("%", "before the name of a value");
  const size_t start = pos - 1;
  const std::string_view name = take_suffix_id();
  const auto it = names_.find(name);
  if (it == names_.end()) {
    fail_at(start, "a value must be defined before its use", text.substr(start, pos - start));
  }
  uint32_t index = 0;
  const NamedValue& value = it->second;
  // %r#1 is the second result of `%r:2 = …`. A '#' without a digit begins an attribute that follows the operand.
  if (const size_t end = pos; peek("#") && pos + 1 < text.size() && text[pos + 1] >= '0' && text[pos + 1] <= '9') {
    ++pos;
    const int64_t number = take_integer("the number of a result");
    if (number < 0 || number >= value.count) {
      fail_at(start, str("%", name, " has ", value.count, " results, counted from 0"), text.substr(start, pos - start));
    }
    index = static_cast<uint32_t>(number);
  } else {
    pos = end;
  }
  // The results of an op are consecutive values.
  return ValueId{value.first.index + index};
}

void OpParser::parse_operand_list(std::vector<ValueId>& operands) {
  if (!peek("%")) return;
  while (true) {
    operands.push_back(parse_operand());
    const size_t end = pos;
    if (take(",") && peek("%")) continue;
    pos = end;  // a comma before something else belongs to the op's text
    return;
  }
}

void OpParser::define(const NewName& new_name, ValueId first, uint32_t count) {
  const auto& [name, position] = new_name;
  if (!names_.try_emplace(name, NamedValue{first, count}).second) {
    fail_at(position, "the name of a value must be new in its scope", str("%", name, " again"));
  }
  defined_.push_back(name);
  Value& value = module().value(first);
  // Results get the location of their op, which parse_statement names; an argument has none to inherit.
  if (!value.op && !value.loc) value.loc = named(str("%", name), place(position));
}

// Locations are requested from top to bottom, except for arguments that several regions share, so lines are counted
// from the last location.
LocId OpParser::place(size_t position) {
  if (options_.file.empty()) return {};
  for (; position < line_begin_; --line_number_) {
    const size_t previous = line_begin_ < 2 ? std::string_view::npos : text.rfind('\n', line_begin_ - 2);
    line_begin_ = previous == std::string_view::npos ? 0 : previous + 1;
  }
  for (size_t end = text.find('\n', line_begin_); end < position; end = text.find('\n', line_begin_)) {
    line_begin_ = end + 1;
    ++line_number_;
  }
  return context().file_location(options_.file, line_number_, static_cast<int32_t>(position - line_begin_) + 1);
}

void OpParser::close_scope(size_t mark) {
  // A name may be used again after its region, as in MLIR: the two regions of a while both name their values %0, %1, ….
  for (size_t i = mark; i < defined_.size(); ++i) names_.erase(defined_[i]);
  defined_.resize(mark);
}

LocId OpParser::named(std::string_view names, LocId loc) {
  return options_.name_values ? context().named_location(str(function_, " ", names), loc) : loc;
}

// A location without a line gets that of the text.
LocId OpParser::placed(LocId loc, LocId here) {
  if (!loc || !here) return loc ? loc : here;
  const Location location = context().location(loc);
  if (location.kind != Location::Kind::kName) return loc;
  const LocId child = placed(location.child, here);
  return child == location.child ? loc : context().named_location(location.text, child);
}

void OpParser::set_location(ValueId argument, LocId loc) {
  LocId& known = module().value(argument).loc;
  if (!options_.name_values) {
    known = placed(loc, known);
    return;
  }
  // The argument was defined with its name around its place in the text. The name stays;
  // the given location replaces the place.
  const Location text_name = context().location(known);
  known = context().named_location(text_name.text, placed(loc, text_name.child));
}

// ---- regions -------------------------------------------------------------------------------------------------------

ValueId OpParser::parse_argument(RegionId region) {
  const NewName name = take_new_name("an argument");
  expect(":", "after the name of an argument");
  const TypeId type = parse_type();
  const ValueId id = module().add_argument(region, type);
  define(name, id);
  if (const LocId loc = parse_optional_location()) set_location(id, loc);
  return id;
}

RegionId OpParser::parse_region() {
  return parse_region_from([&](RegionId region) {
    expect("{", "before a region");
    if (!take("^")) return;
    take_suffix_id();
    if (peek("(")) parse_list({"(", "", ")", "after the arguments of a region"}, [&] { parse_argument(region); });
    expect(":", "after the label of a region");
  });
}

void OpParser::parse_block(RegionId region) {
  while (parse_statement(region)) {
  }
  if (peek("^"))
    fail_here("a region must have a single block", "control flow is written with stablehlo.while and case");
  expect("}", "after the terminator of a region");
}

// ---- statements ----------------------------------------------------------------------------------------------------

std::vector<OpParser::ResultName> OpParser::parse_result_names() {
  std::vector<ResultName> names;
  if (!peek("%")) return names;
  do {
    const NewName name = take_new_name("a result");
    int64_t count = 1;
    if (take(":")) count = take_integer("the number of results");
    // The count comes from the text, and ResultName stores 32 bits.
    if (count < 1 || count > (1 << 20)) fail_at(name.position, "a name must cover 1 to 2^20 results");
    names.push_back({name, static_cast<uint32_t>(count)});
  } while (take(","));
  expect("=", "between the results and the op");
  return names;
}

std::string OpParser::text_of(const std::vector<ResultName>& names) {
  return join(names, ", ", [](const ResultName& result) {
    return result.count == 1 ? str("%", result.name.name) : str("%", result.name.name, ":", result.count);
  });
}

bool OpParser::parse_statement(RegionId region) {
  const std::vector<ResultName> names = parse_result_names();
  OpSyntax op;
  for (const ResultName& name : names) op.named_results += name.count;
  op.start = token_start();
  // Before the op's regions are parsed: place() is quick when positions ascend.
  const LocId here = place(op.start);
  const bool is_generic = peek("\"");
  std::string quoted_name;
  std::string_view name;
  if (is_generic) {
    quoted_name = take_string();
    name = quoted_name;
  } else {
    name = take_word();
    if (name.empty()) fail_here("expected an op, or the terminator of the region");
  }
  // Terminators are no ops here: their operands become Region::results.
  if (is_terminator(name) && names.empty()) return parse_terminator(region, name, is_generic);
  set_def(op, name);
  if (is_generic) {
    parse_generic(op);
  } else {
    // An op without a format has the generic form only. parse_formatted would accept
    // its bare name and read no operands.
    if (op.format->elements.empty())
      fail_at(op.start, str("'", name, "' must be written in quotes: it has no other form"));
    parse_formatted(op);
  }
  LocId loc = placed(parse_optional_location(), here);
  if (options_.name_values && !names.empty()) loc = named(text_of(names), loc);
  const OpId id = create(region, op, loc);
  const uint32_t count = module().op(id).result_count;
  // MLIR allows an op with results and no names: nothing uses it.
  if (!names.empty() && op.named_results != count) {
    fail_at(op.start, str("'", op.def->name, "' has ", count, " results"), str(op.named_results, " names"));
  }
  uint32_t first = 0;
  for (const ResultName& result : names) {
    define(result.name, module().result(id, first), result.count);
    first += result.count;
  }
  return true;
}

bool OpParser::parse_terminator(RegionId region, std::string_view name, bool generic) {
  std::vector<ValueId> values;
  std::vector<TypeId> types;
  const size_t start = token_start();
  if (generic) expect("(", str("after '", name, "'"));
  parse_operand_list(values);
  if (generic) expect(")", "after the operands");
  // Region::results has no place for attributes of a terminator, and no pass reads any.
  if (peek("{")) take_balanced();
  if (generic) {
    expect(":", "before the type");
    parse_type_tuple(types);
    for (std::string_view token : {"->", "(", ")"}) expect(token, "in the type of a terminator");
  } else if (!values.empty()) {
    expect(":", "before the types of the values returned");
    parse_type_list(types);
  }
  if (types.size() != values.size())
    fail_at(start, "as many types as values must be returned", str(types.size(), " types"));
  for (size_t i = 0; i < values.size(); ++i) expect_type(i, values[i], types[i], start);
  parse_optional_location();
  module().region(region).results = std::move(values);
  return false;
}

void OpParser::set_def(OpSyntax& op, std::string_view name) {
  if (const auto known = definitions_.find(name); known != definitions_.end()) {
    std::tie(op.def, op.format) = known->second;
    return;
  }
  op.def = find_op(name);
  // A text may omit these dialects.
  // MLIR omits the prefix of a region's default dialect: inside func.func it prints `call @f(…)`.
  for (std::string_view dialect : {"stablehlo.", "func.", "sdy."}) {
    if (op.def == nullptr && name.find('.') == std::string_view::npos) op.def = find_op(str(dialect, name));
  }
  if (op.def == nullptr) {
    const Refusal* refusal = refusal_of(name);
    fail_at(op.start, "an op must be one that shardwise knows", str("'", name, "'"),
            refusal == nullptr ? std::string() : advice(*refusal));
  }
  op.format = &assembly_format(*op.def);
  // The key must be part of the text: a decoded string does not live long enough.
  const std::string_view key = text.substr(text[op.start] == '"' ? op.start + 1 : op.start, name.size());
  if (key == name) definitions_.emplace(key, std::pair(op.def, op.format));
}

void OpParser::parse_generic(OpSyntax& op) {
  expect("(", "before the operands");
  parse_operand_list(op.operands);
  expect(")", "after the operands");
  if (peek("[")) fail_here("an op must have no successors", "control flow is written with stablehlo.while and case");
  // Properties <{…}> and attributes {…} go into one list; the printer knows from the format which is which.
  if (take("<")) {
    parse_dictionary_of(op);
    expect(">", "after the properties");
  }
  if (take("(")) {
    do {
      op.regions.push_back(parse_region());
    } while (take(","));
    expect(")", "after the regions");
  }
  parse_optional_attr_dict(op);
  expect(":", "before the type of an op");
  parse_functional_type(op);
}

OpId OpParser::create(RegionId region, OpSyntax& op, LocId loc) {
  // First, because it may replace the op's definition and attributes.
  if (!op.gspmd.empty()) make_constraint(op);
  // `reduce … applies stablehlo.add` creates the add before the location of the reduce is read.
  for (OpId inner : op.inner) module().op(inner).loc = loc;
  for (const FormatElement& element : op.format->elements) {
    if (element.custom != nullptr && element.custom->normalize != nullptr) {
      element.custom->normalize(op, context(), element.text);
    }
  }
  const OpId id = located(op.start, [&] {
    Builder builder(module(), region, loc);
    const AttrsId attrs = op.attributes.empty() ? AttrsId{} : context().intern(Attrs(std::move(op.attributes)));
    return builder.create_op(*op.def, op.operands, attrs, op.declared, op.regions);
  });
  // The pretty form cannot omit this sharding, but in the generic form it is one of the properties.
  if (!op.format->sharding.empty() && !op.format->sharding_optional && op.shardings.empty()) {
    fail_at(op.start, str("'", op.def->name, "' must have the attribute '", op.format->sharding, "'"));
  }
  set_columns(op, id);
  if (!op.gspmd.empty()) set_gspmd_shardings(op, id);
  // Verified at the end of the module, when all meshes and functions are declared.
  if (needs_verification(OpView(module(), id))) unverified_.emplace_back(id, op.start);
  return id;
}

bool OpParser::holds_local_collectives() const {
  return std::ranges::any_of(unverified_,
                             [&](const auto& entry) { return is_local_collective(OpView(module(), entry.first)); });
}

void OpParser::verify_ops() {
  for (const auto& [id, start] : unverified_) {
    located(start, [&] { verify_op(OpView(module(), id)); });
  }
  const DataFlowEdgeUses uses(module());
  for (const auto& [id, start] : unverified_) {
    located(start, [&] { uses.verify(id); });
  }
}

void OpParser::set_columns(const OpSyntax& op, OpId id) {
  const uint32_t count = module().op(id).result_count;
  if (op.has_shardings || !op.shardings.empty()) set_shardings(op, id);
  if (op.has_argument_shardings) {
    const std::vector<ValueId>& arguments = module().region(op.regions[0]).arguments;
    if (op.argument_shardings.size() != arguments.size()) {
      fail_at(op.start, str("'", op.def->name, "' must have ", arguments.size(), " shardings of arguments"),
              str(op.argument_shardings.size()));
    }
    // These shardings are of the operands, in global shapes; the arguments of a
    // manual region have the shapes of shards.
    for (size_t i = 0; i < arguments.size() && i < op.operands.size(); ++i) {
      const ShardingId sharding = op.argument_shardings[i];
      located(op.start, [&] { verify_sharding(context().sharding(sharding), module().type(op.operands[i])); });
      module().value(arguments[i]).sharding = sharding;
    }
  } else {
    // The text has one sharding for all values of an edge.
    for (const DataFlowEdge& edge : edges_of(OpView(module(), id))) {
      for (const ValueId target : edge.targets) module().value(target).sharding = module().value(edge.owner).sharding;
    }
  }
  if (op.parts.size() > count) fail_at(op.start, "there must be at most one placement per result");
  for (uint32_t i = 0; i < op.parts.size(); ++i) set_part(module().result(id, i), op.parts[i], op.start);
}

void OpParser::set_shardings(const OpSyntax& op, OpId id) {
  const uint32_t count = module().op(id).result_count;
  // Shardings are a column of values. An op without results has no value to hold one, so it keeps the attribute.
  if (count == 0 && op.format->result_shardings.empty()) {
    ShardingPerValue shardings;
    for (ShardingId sharding : op.shardings) shardings.push_back(context().sharding(sharding));
    return module().set_attribute(id, text_words::kSharding, std::move(shardings));
  }
  if (op.shardings.size() != count) {
    fail_at(op.start, str("'", op.def->name, "' must have ", count, count == 1 ? " sharding" : " shardings"),
            str(op.shardings.size()));
  }
  for (uint32_t i = 0; i < count; ++i) {
    const ValueId result = module().result(id, i);
    located(op.start, [&] { verify_sharding(context().sharding(op.shardings[i]), module().type(result)); });
    module().value(result).sharding = op.shardings[i];
  }
}

// ---- attributes ----------------------------------------------------------------------------------------------------

void OpParser::expect_new(const OpSyntax& op, std::string_view name, size_t position) const {
  for (const NamedAttribute& known : op.attributes) {
    if (known.first == name) fail_at(position, str("attribute '", name, "' must be given once"));
  }
}

void OpParser::add_attribute(OpSyntax& op, std::string_view name, Attribute value) {
  expect_new(op, name, op.start);
  op.attributes.emplace_back(std::string(name), std::move(value));
}

void OpParser::parse_optional_attr_dict(OpSyntax& op) {
  if (peek("{")) parse_dictionary_of(op);
}

void OpParser::parse_dictionary_of(OpSyntax& op) {
  parse_list(kDictionary, [&] {
    const size_t start = token_start();
    std::string name = take_attribute_name();
    if (parse_special_attribute(op, name)) return;
    expect_new(op, name, start);
    Attribute value = take("=") ? parse_attribute(*this) : Attribute(Unit{});
    op.attributes.emplace_back(std::move(name), std::move(value));
  });
}

// Attributes that are columns of the results.
bool OpParser::parse_special_attribute(OpSyntax& op, std::string_view name) {
  // `sharding` of sdy.sharding_constraint is one sharding; `sdy.sharding` of any
  // other op is a list, one for each result.
  const bool is_own = !op.format->sharding.empty() && name == op.format->sharding;
  if (!name.empty() && (name == op.format->argument_shardings || name == op.format->result_shardings)) {
    expect("=", "after the name of shardings");
    skip_space();
    const bool of_arguments = name == op.format->argument_shardings;
    std::vector<ShardingId>& list = of_arguments ? op.argument_shardings : op.shardings;
    // A flag, because a list that is given twice may be empty both times.
    if (std::exchange(of_arguments ? op.has_argument_shardings : op.has_shardings, true)) {
      fail_here("shardings must be given once");
    }
    list = parse_shardings_per_value();
    return true;
  }
  if (name == text_words::kSharding || is_own) {
    expect("=", "after a sharding's name");
    if (std::exchange(op.has_shardings, true)) fail_here("the sharding of a result must be given once");
    op.shardings = is_own ? std::vector{parse_sharding_id()} : parse_shardings_per_value();
    return true;
  }
  if (text_words::is_part_column(name)) {
    expect("=", str("after '", name, "'"));
    return parse_parts(op.parts, name);
  }
  if (name == text_words::kGspmdSharding) {
    expect("=", "after mhlo.sharding");
    parse_gspmd(op.gspmd, op.gspmd_start);
    return true;
  }
  return false;
}

// ---- types ---------------------------------------------------------------------------------------------------------

void OpParser::expect_type(size_t operand, ValueId value, TypeId type, size_t position) {
  if (type_of(value) == type) return;
  fail_at(position,
          str("value ", operand, " must have the type it was defined with, ", context().type(type_of(value)).text()),
          context().type(type).text());
}

void OpParser::parse_functional_type(OpSyntax& op) {
  const size_t start = token_start();
  std::vector<TypeId> types;
  parse_type_tuple(types);
  if (types.size() != op.operands.size()) {
    fail_at(start, str("'", op.def->name, "' must have a type for each of ", op.operands.size(), " operands"),
            str(types.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) expect_type(i, op.operands[i], types[i], start);
  expect("->", "between operand and result types");
  parse_type_tuple(op.declared);
}

}  // namespace shardwise
