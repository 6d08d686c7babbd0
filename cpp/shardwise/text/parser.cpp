// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/parser.h"

#include <cctype>
#include <optional>

#include "shardwise/base/text.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/text/function_parser.h"

namespace shardwise {
namespace {

class ModuleParser : public FunctionParser {
 public:
  using FunctionParser::FunctionParser;

  void run() {
    // MLIR allows a file without `module`: its functions and meshes belong to an implicit one.
    while (!at_end()) parse_item(true);
    // The shapes of a local program are those of shards: its text must not pass for a
    // global one when the attribute is missing.
    if (!has_stage_ && holds_local_collectives()) module().stage = Stage::kLocal;
    // At the end, because an op may refer to a function or mesh that is declared after it.
    form_manual_regions();
    verify_ops();
  }

 private:
  // ---- modules
  void parse_item(bool top_level) {
    const size_t start = token_start();
    if (take("#") || take("!")) return skip_alias();
    // The same item in both forms: `func.func @f(…) {…}`, and `"func.func"() <{sym_name = "f", …}> ({…}) : () -> ()`.
    const bool is_generic = peek("\"");
    const std::string name = is_generic ? take_string() : std::string(take_word());
    if (name == "module" || name == "builtin.module") {
      // Modules may nest in MLIR. The functions of all of them go into one module; only
      // the outermost has a name and a stage.
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

  // Definitions of aliases are parsed where the aliases are used. This skips them: loc("f"(#loc3)), dense<1> : T, …
  void skip_alias() {
    take_suffix_id();
    expect("=", "after the name of an alias");
    // `dense<1> : tensor<2xi64>` and `(tensor<f32>) -> tensor<f32>` go on after their first part.
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
      expect(":", "after the label of a region");
    }
    while (!take("}")) {
      if (at_end()) fail_here("expected '}' at the end of the module");
      parse_item(false);
    }
  }

  void parse_module(bool top_level) {
    if (peek("@")) {
      const std::string name = take_symbol();
      // An anonymous module stays anonymous: a nested one must not give it a name.
      if (top_level) module().name = name;
    }
    if (take_keyword("attributes")) parse_module_attributes(top_level);
    parse_items();
    parse_optional_location();
  }

  void parse_generic_module(bool top_level) {
    expect("(", "after \"builtin.module\"");
    expect(")", "after \"builtin.module\"");
    if (take("<")) {
      parse_keys([&](std::string_view key) {
        if (key != "sym_name") return skip_value();
        const std::string name = take_string();
        if (top_level) module().name = name;
      });
      expect(">", "after the properties");
    }
    expect("(", "before the region of a module");
    parse_items();
    expect(")", "after a region");
    if (peek("{")) parse_module_attributes(top_level);
    parse_empty_type();
  }

  void parse_module_attributes(bool top_level) {
    parse_keys([&](std::string_view key) {
      if (key != text_words::kStage || !top_level) return skip_value();
      const size_t start = token_start();
      const std::string name = take_string();
      const std::optional<Stage> stage = stage_from_name(name);
      if (!stage) fail_at(start, str("a stage must be one of ", join(kStageNames, ", ")), quote(name));
      module().stage = *stage;
      has_stage_ = true;
    });
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
    expect("=", "after the name of a mesh");
    declare(start, name, parse_mesh_value(name));
    if (peek("{")) skip_dictionary();
    parse_optional_location();
  }

  void parse_generic_mesh() {
    const size_t start = pos;
    std::string name;
    // MLIR prints properties in alphabetical order, so `mesh` comes before the `sym_name` that the mesh is
    // built with: the cursor comes back to it.
    std::optional<size_t> mesh_start;
    for (std::string_view token : {"(", ")", "<"}) expect(token, "after \"sdy.mesh\"");
    parse_keys([&](std::string_view key) {
      skip_space();
      if (key == "sym_name") {
        name = take_string();
        return;
      }
      if (key == "mesh") mesh_start = pos;
      skip_value();
    });
    expect(">", "after the properties");
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

  bool has_stage_ = false;
};

}  // namespace

Module parse(std::string_view text, std::shared_ptr<Context> context, const ParseOptions& options) {
  Module module(std::move(context));
  // A new module is named main_module; a text without a name has none, and must print without one.
  module.name.clear();
  ModuleParser(text, module, options).run();
  return module;
}

}  // namespace shardwise
