// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/function_parser.h"

#include <algorithm>
#include <array>

#include "shardwise/base/text.h"
#include "shardwise/ir/op_verifier.h"
#include "shardwise/ir/text_words.h"

namespace shardwise {
namespace {

constexpr std::array kVisibilities{Visibility::kPublic, Visibility::kPrivate, Visibility::kNested};

std::string_view word_of(Visibility visibility) { return text_words::kVisibilities[static_cast<size_t>(visibility)]; }

}  // namespace

void FunctionParser::skip_value() {
  // The value's kind does not matter, only its end: the first ',' or '}' outside brackets and strings.
  while (!peek(",") && !peek("}")) {
    if (at_end()) fail_here("expected the end of an attribute");
    if (peek("\"")) {
      take_string();
    } else if (std::string_view("([{<").find(text[pos]) != std::string_view::npos) {
      take_balanced();
    } else {
      // An arrow is one step: its '>' must not be taken for a bracket, which would end the skipping.
      pos += peek("->") ? 2 : 1;
    }
  }
}

void FunctionParser::parse_generic_end() {
  expect(")", "after a region");
  if (peek("{")) skip_dictionary();
  parse_empty_type();
}

void FunctionParser::parse_empty_type() {
  for (std::string_view token : {":", "(", ")", "->", "(", ")"}) expect(token, "in the type of an op without values");
  parse_optional_location();
}

FunctionParser::ValueSyntax FunctionParser::parse_value_attributes() {
  skip_space();
  // The location of a result is its place in the signature, where an annotation of it is written.
  ValueSyntax value{.loc = place(pos), .sharding = {}, .parts = {}, .gspmd = {}};
  parse_keys([&](std::string_view key) {
    if (key == text_words::kSharding) {
      value.sharding = parse_sharding_id();
    } else if (parse_parts(value.parts, key)) {
      // parse_parts also reads lists, which only an op with several results may have.
      if (value.parts.size() > 1) {
        fail_at(pos, "an argument or result must have one placement", std::to_string(value.parts.size()));
      }
    } else if (key == text_words::kGspmdSharding) {
      parse_gspmd(value.gspmd, value.gspmd_start);
    } else {
      skip_value();
    }
  });
  return value;
}

ShardingId FunctionParser::sharding_of(const ValueSyntax& syntax, TypeId type, size_t position) {
  // JAX prints one of the two. If a text has both, Shardy's wins: it is the one that names the mesh.
  if (!syntax.gspmd.empty() && !syntax.sharding) {
    return gspmd_sharding(syntax.gspmd, context().type(type), {}, syntax.gspmd_start);
  }
  if (syntax.sharding) {
    located(position, [&] { verify_sharding(context().sharding(syntax.sharding), context().type(type)); });
  }
  return syntax.sharding;
}

void FunctionParser::set_argument(ValueId id, const ValueSyntax& syntax, size_t position) {
  module().value(id).sharding = sharding_of(syntax, type_of(id), position);
  for (const PartSyntax& part : syntax.parts) set_part(id, part, position);
}

void FunctionParser::parse_function(size_t start) {
  FunctionSyntax function;
  function.start = start;
  const size_t scope = open_scope();
  // No word means public in MLIR, but the printer must not add one: kUnspecified is the default of FunctionSyntax.
  const auto* written =
      std::ranges::find_if(kVisibilities, [&](Visibility each) { return take_keyword(word_of(each)); });
  if (written != kVisibilities.end()) function.visibility = *written;
  function.name = take_symbol();
  // Value names are local to a function: loc("@main %h"(…)) keeps those of two functions apart.
  function_ = symbol_text(function.name);
  function.body = module().add_region();
  parse_arguments(function);
  if (take("->")) parse_results(function);
  if (take_keyword("attributes")) skip_dictionary();
  expect("{", "before the body of a function");
  parse_block(function.body);
  close_scope(scope);
  parse_optional_location();
  add(function);
}

void FunctionParser::parse_arguments(FunctionSyntax& function) {
  parse_list({"(", "before the arguments of a function", ")", "after the arguments of a function"}, [&] {
    // A declaration without a body has types only: func.func private @f(tensor<f32>).
    if (!peek("%")) fail_here("expected a named argument", "a function must have a body");
    const size_t position = pos;
    const ValueId id = parse_argument(function.body);
    if (!peek("{")) return;
    set_argument(id, parse_value_attributes(), position);
    if (const LocId loc = parse_optional_location()) set_location(id, loc);
  });
}

Visibility FunctionParser::parse_visibility() {
  const size_t start = token_start();
  const std::string word = take_string();
  for (Visibility visibility : kVisibilities) {
    if (word == word_of(visibility)) return visibility;
  }
  fail_at(start, "the visibility of a function must be public, private or nested", quote(word));
}

void FunctionParser::parse_results(FunctionSyntax& function) {
  // A single result without attributes has no parentheses, and attributes need them.
  if (!peek("(")) return function.outputs.push_back(parse_type());
  parse_list({"(", "", ")", "after the results of a function"}, [&] {
    function.outputs.push_back(parse_type());
    function.results.emplace_back();
    if (peek("{")) function.results.back() = parse_value_attributes();
  });
}

std::vector<FunctionParser::ValueSyntax> FunctionParser::parse_value_attribute_list() {
  std::vector<ValueSyntax> values;
  parse_list({"[", "before the attributes of each value", "]", "after the attributes of each value"},
             [&] { values.push_back(parse_value_attributes()); });
  return values;
}

void FunctionParser::parse_generic_function(size_t start) {
  FunctionSyntax function;
  function.start = start;
  for (std::string_view token : {"(", ")", "<"}) expect(token, "after \"func.func\"");
  parse_keys([&](std::string_view key) {
    if (key == "sym_name") {
      function.name = take_string();
    } else if (key == "sym_visibility") {
      function.visibility = parse_visibility();
    } else if (key == "arg_attrs") {
      function.arguments = parse_value_attribute_list();
    } else if (key == "res_attrs") {
      function.results = parse_value_attribute_list();
    } else if (key == "function_type") {
      parse_type_tuple(function.inputs);
      expect("->", "in the type of a function");
      parse_type_tuple(function.outputs);
    } else {
      skip_value();
    }
  });
  for (std::string_view token : {">", "("}) expect(token, "before the body of a function");
  function_ = symbol_text(function.name);
  // The block label ^bb0(…) of the region declares the arguments; the properties repeat their types.
  function.body = parse_region();
  set_generic_arguments(function);
  parse_generic_end();
  add(function);
}

void FunctionParser::set_generic_arguments(const FunctionSyntax& function) {
  const std::vector<ValueId>& arguments = module().region(function.body).arguments;
  // function_type and the block label give the types twice, and each may be wrong.
  if (!have_types(arguments, function.inputs))
    fail_at(function.start, "the arguments of the body must have the types of the function");
  if (!function.arguments.empty() && function.arguments.size() != arguments.size()) {
    fail_at(function.start, "there must be attributes for each argument");
  }
  for (size_t i = 0; i < function.arguments.size(); ++i)
    set_argument(arguments[i], function.arguments[i], function.start);
}

void FunctionParser::add(const FunctionSyntax& syntax) {
  // A call finds its callee by name, so a second function of that name would never run.
  if (!function_names_.insert(syntax.name).second) {
    fail_at(syntax.start, "the name of a function must be new", "@" + syntax.name + " again");
  }
  const std::vector<ValueId>& results = module().region(syntax.body).results;
  if (!have_types(results, syntax.outputs)) {
    fail_at(syntax.start, str("@", syntax.name, ": the values returned must have the result types of the function"));
  }
  if (!syntax.results.empty() && syntax.results.size() != results.size()) {
    fail_at(syntax.start, str("@", syntax.name, ": there must be attributes for each result"));
  }
  Function function{.name = syntax.name, .visibility = syntax.visibility, .body = syntax.body, .result_shardings = {}};
  function.result_shardings.resize(results.size());
  for (size_t i = 0; i < syntax.results.size(); ++i) {
    function.result_shardings[i] = sharding_of(syntax.results[i], type_of(results[i]), syntax.start);
    // A function stores shardings of its results, but no parts: the part of a returned value is its own.
    for (const PartSyntax& part : syntax.results[i].parts) set_part(results[i], part, syntax.start);
    // There are none without ParseOptions::file, and result_locs stays empty.
    if (syntax.results[i].loc) function.result_locs.resize(results.size());
    if (syntax.results[i].loc) function.result_locs[i] = syntax.results[i].loc;
  }
  module().functions.push_back(std::move(function));
}

}  // namespace shardwise
