// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/parser.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <unordered_set>

#include "shardwise/base/text.h"
#include "shardwise/ir/op_verifier.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/text/op_parser.h"

namespace shardwise {
namespace {

// What the text says about an argument or result of a function, besides its type.
struct ValueSyntax {
  LocId loc;
  ShardingId sharding;
  std::optional<Dims> blocks;
};

struct FunctionSyntax {
  size_t start = 0;
  std::string name;
  Visibility visibility = Visibility::kUnspecified;
  std::vector<TypeId> inputs, outputs;
  std::vector<ValueSyntax> arguments, results;  // empty, or one for each
  RegionId body;
};

constexpr std::array kVisibilities{Visibility::kPublic, Visibility::kPrivate, Visibility::kNested};

std::string_view word_of(Visibility visibility) { return text_words::kVisibilities[static_cast<size_t>(visibility)]; }

class ModuleParser : public OpParser {
 public:
  using OpParser::OpParser;

  void run() {
    while (!at_end()) parse_item(true);
    if (!has_stage_ && holds_local_collectives()) module().stage = Stage::kLocal;
    verify_ops();
  }

 private:
  // ---- modules
  void parse_item(bool top_level) {
    skip_space();
    const size_t start = pos;
    if (take("#") || take("!")) return skip_alias();
    const bool is_generic = peek("\"");
    const std::string name = is_generic ? take_string() : std::string(take_word());
    if (name == "module" || name == "builtin.module") {
      const Nesting nesting(*this);
      is_generic ? parse_generic_module(top_level) : parse_module(top_level);
    } else if (name == text_words::kFunction || name == "func") {
      is_generic ? parse_generic_function(start) : parse_function(start);
    } else if (name == text_words::kMesh) {
      is_generic ? parse_generic_mesh() : parse_mesh_declaration();
    } else if (name.empty()) {
      fail_here("expected module, func.func or sdy.mesh");
    } else {
      fail_at(start, "what a module holds must be func.func or sdy.mesh", str("'", name, "'"));
    }
  }

  // Definitions of aliases are read where the aliases are used. Here they only end: loc("f"(#loc3)), dense<1> : T, …
  void skip_alias() {
    take_suffix_id();
    expect("=", "behind the name of an alias");
    do {
      if (peek("\"")) {
        take_string();
      } else if (!at_bracket()) {
        skip_token();
      }
      while (at_bracket()) take_balanced();
    } while (take(":") || take("->"));
  }
  bool at_bracket() {
    skip_space();
    return pos < text.size() && std::string_view("([{<").find(text[pos]) != std::string_view::npos;
  }
  // A word or a number, with the mark before it: #sdy.mesh, !stablehlo.token, @f, -1.5.
  void skip_token() {
    const auto is_part = [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("#!@_$.+-").find(c) != text.npos;
    };
    const size_t start = pos;
    while (pos < text.size() && is_part(text[pos])) ++pos;
    if (pos == start) fail_here("expected the meaning of an alias");
  }

  void parse_items() {
    expect("{", "before the contents of a module");
    if (take("^")) {  // as MLIR prints an empty module in generic form
      take_suffix_id();
      expect(":", "behind the label of a region");
    }
    while (!take("}")) {
      if (at_end()) fail_here("expected '}' at the end of the module");
      parse_item(false);
    }
  }

  void parse_module(bool top_level) {
    if (peek("@")) {
      const std::string name = take_symbol();
      if (top_level) module().name = name;
    }
    if (take_keyword("attributes")) parse_module_attributes(top_level);
    parse_items();
    parse_optional_location();
  }

  void parse_generic_module(bool top_level) {
    expect("(", "behind \"builtin.module\"");
    expect(")", "behind \"builtin.module\"");
    if (take("<")) {
      parse_keys([&](std::string_view key) {
        if (key != "sym_name") return skip_value();
        const std::string name = take_string();
        if (top_level) module().name = name;
      });
      expect(">", "behind the properties");
    }
    expect("(", "before the region of a module");
    parse_items();
    expect(")", "behind a region");
    if (peek("{")) parse_module_attributes(top_level);
    parse_empty_type();
  }

  void parse_module_attributes(bool top_level) {
    parse_keys([&](std::string_view key) {
      if (key != text_words::kStage || !top_level) return skip_value();
      skip_space();
      const size_t start = pos;
      const std::string name = take_string();
      const std::optional<Stage> stage = stage_from_name(name);
      if (!stage) fail_at(start, str("a stage must be one of ", join(kStageNames, ", ")), quote(name));
      module().stage = *stage;
      has_stage_ = true;
    });
  }

  // `) {...} : () -> () loc(...)`
  void parse_generic_end() {
    expect(")", "behind a region");
    if (peek("{")) skip_dictionary();
    parse_empty_type();
  }
  void parse_empty_type() {
    for (std::string_view token : {":", "(", ")", "->", "(", ")"}) expect(token, "in the type of an op without values");
    parse_optional_location();
  }

  // ---- dictionaries of which only some keys are read
  template <class F>
  void parse_keys(F&& value_of) {
    expect("{", "before a dictionary of attributes");
    if (take("}")) return;
    do {
      const std::string key = take_attribute_name();
      if (take("=")) value_of(key);
    } while (take(","));
    expect("}", "at the end of a dictionary of attributes");
  }
  void skip_dictionary() {
    parse_keys([&](std::string_view) { skip_value(); });
  }
  void skip_value() {
    while (!peek(",") && !peek("}")) {
      if (at_end()) fail_here("expected the end of an attribute");
      if (peek("\"")) {
        take_string();
      } else if (std::string_view("([{<").find(text[pos]) != std::string_view::npos) {
        take_balanced();
      } else {
        pos += peek("->") ? 2 : 1;
      }
    }
  }

  // ---- meshes
  void declare(size_t start, std::string name, Mesh mesh) {
    located(start, [&] {
      if (module().find_mesh(name) != nullptr) fail<MeshError>("mesh @" + name, "a mesh must be declared once");
      module().declare_mesh(std::make_shared<const Mesh>(std::move(mesh)));
    });
  }

  void parse_mesh_declaration() {
    const size_t start = pos;
    const std::string name = take_symbol();
    expect("=", "behind the name of a mesh");
    declare(start, name, parse_mesh_value(name));
    if (peek("{")) skip_dictionary();
    parse_optional_location();
  }

  void parse_generic_mesh() {
    const size_t start = pos;
    std::string name;
    std::optional<size_t> mesh_start;
    for (std::string_view token : {"(", ")", "<"}) expect(token, "behind \"sdy.mesh\"");
    parse_keys([&](std::string_view key) {
      skip_space();
      if (key == "sym_name") {
        name = take_string();
        return;
      }
      if (key == "mesh") mesh_start = pos;
      skip_value();
    });
    expect(">", "behind the properties");
    const size_t end = pos;
    if (!mesh_start) fail_here("expected a property 'mesh' of sdy.mesh");
    pos = *mesh_start;
    if (!peek("#")) fail_here("the property 'mesh' of sdy.mesh must be #sdy.mesh<…> or an alias of it");
    Mesh mesh = parse_mesh_value(name);
    pos = end;
    declare(start, name, std::move(mesh));
    if (peek("{")) skip_dictionary();
    parse_empty_type();
  }

  // ---- functions
  ValueSyntax parse_value_attributes() {
    skip_space();
    ValueSyntax value{.loc = place(pos), .sharding = {}, .blocks = {}};
    parse_keys([&](std::string_view key) {
      if (key == text_words::kSharding) {
        value.sharding = parse_sharding_id();
      } else if (key == text_words::kLocalBlocks) {
        parse_blocks(value);
      } else if (key == text_words::kGspmdSharding) {
        fail_here("shardings must be Shardy's, as sdy.sharding",
                  "lower the program with jax_use_shardy_partitioner=True");
      } else {
        skip_value();
      }
    });
    return value;
  }

  void parse_blocks(ValueSyntax& value) {
    for (std::string_view token : {"array", "<", "i64"}) expect(token, "of local blocks, array<i64: ...>");
    value.blocks.emplace();
    if (take(":")) {
      do {
        value.blocks->push_back(take_integer("a block size"));
      } while (take(","));
    }
    expect(">", "behind the block sizes");
  }

  void set_argument(ValueId id, const ValueSyntax& syntax, size_t position) {
    const Dims& shape = module().type(id).shape;
    if (syntax.sharding)
      located(position, [&] { verify_sharding(context().sharding(syntax.sharding), module().type(id)); });
    module().value(id).sharding = syntax.sharding;
    if (!syntax.blocks) return;
    if (syntax.blocks->size() != shape.size()) fail_at(position, "there must be one block size per dim");
    module().set_blocks(id, *syntax.blocks);
  }

  void parse_function(size_t start) {
    FunctionSyntax function;
    function.start = start;
    const size_t scope = open_scope();
    const auto* written =
        std::ranges::find_if(kVisibilities, [&](Visibility each) { return take_keyword(word_of(each)); });
    if (written != kVisibilities.end()) function.visibility = *written;
    function.name = take_symbol();
    function_ = symbol_text(function.name);
    function.body = module().add_region();
    expect("(", "before the arguments of a function");
    if (!take(")")) {
      do {
        if (!peek("%")) fail_here("expected a named argument", "a function must have a body");
        const size_t position = pos;
        const ValueId id = parse_argument(function.body);
        if (!peek("{")) continue;
        set_argument(id, parse_value_attributes(), position);
        if (const LocId loc = parse_optional_location()) set_location(id, loc);
      } while (take(","));
      expect(")", "behind the arguments of a function");
    }
    if (take("->")) parse_results(function);
    if (take_keyword("attributes")) skip_dictionary();
    expect("{", "before the body of a function");
    parse_block(function.body);
    close_scope(scope);
    parse_optional_location();
    add(function);
  }

  Visibility parse_visibility() {
    skip_space();
    const size_t start = pos;
    const std::string word = take_string();
    for (Visibility visibility : kVisibilities) {
      if (word == word_of(visibility)) return visibility;
    }
    fail_at(start, "the visibility of a function must be public, private or nested", quote(word));
  }

  void parse_results(FunctionSyntax& function) {
    if (!take("(")) return function.outputs.push_back(parse_type());
    if (take(")")) return;
    do {
      function.outputs.push_back(parse_type());
      function.results.emplace_back();
      if (peek("{")) function.results.back() = parse_value_attributes();
    } while (take(","));
    expect(")", "behind the results of a function");
  }

  std::vector<ValueSyntax> parse_value_attribute_list() {
    std::vector<ValueSyntax> values;
    expect("[", "before the attributes of each value");
    if (take("]")) return values;
    do {
      values.push_back(parse_value_attributes());
    } while (take(","));
    expect("]", "behind the attributes of each value");
    return values;
  }

  void parse_generic_function(size_t start) {
    FunctionSyntax function;
    function.start = start;
    for (std::string_view token : {"(", ")", "<"}) expect(token, "behind \"func.func\"");
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
    function.body = parse_region();
    const std::vector<ValueId>& arguments = module().region(function.body).arguments;
    const bool same = std::equal(arguments.begin(), arguments.end(), function.inputs.begin(), function.inputs.end(),
                                 [&](ValueId id, TypeId type) { return type_of(id) == type; });
    if (!same) fail_at(start, "the arguments of the body must have the types of the function");
    if (!function.arguments.empty() && function.arguments.size() != arguments.size()) {
      fail_at(start, "there must be attributes for each argument");
    }
    for (size_t i = 0; i < function.arguments.size(); ++i) set_argument(arguments[i], function.arguments[i], start);
    parse_generic_end();
    add(function);
  }

  void add(const FunctionSyntax& syntax) {
    if (!function_names_.insert(syntax.name).second) {
      fail_at(syntax.start, "the name of a function must be new", "@" + syntax.name + " again");
    }
    const std::vector<ValueId>& results = module().region(syntax.body).results;
    const bool same = std::equal(results.begin(), results.end(), syntax.outputs.begin(), syntax.outputs.end(),
                                 [&](ValueId id, TypeId type) { return type_of(id) == type; });
    if (!same)
      fail_at(syntax.start, str("@", syntax.name, ": the values returned must have the result types of the function"));
    if (!syntax.results.empty() && syntax.results.size() != results.size()) {
      fail_at(syntax.start, str("@", syntax.name, ": there must be attributes for each result"));
    }
    Function function{
        .name = syntax.name, .visibility = syntax.visibility, .body = syntax.body, .result_shardings = {}};
    function.result_shardings.resize(results.size());
    for (size_t i = 0; i < syntax.results.size(); ++i) {
      const ShardingId sharding = syntax.results[i].sharding;
      if (sharding)
        located(syntax.start, [&] { verify_sharding(context().sharding(sharding), module().type(results[i])); });
      function.result_shardings[i] = sharding;
      if (syntax.results[i].loc) function.result_locs.resize(results.size());
      if (syntax.results[i].loc) function.result_locs[i] = syntax.results[i].loc;
    }
    module().functions.push_back(std::move(function));
  }

  std::unordered_set<std::string> function_names_;
  bool has_stage_ = false;
};

}  // namespace

Module parse(std::string_view text, std::shared_ptr<Context> context, const ParseOptions& options) {
  Module module(std::move(context));
  module.name.clear();
  ModuleParser(text, module, options).run();
  return module;
}

}  // namespace shardwise
