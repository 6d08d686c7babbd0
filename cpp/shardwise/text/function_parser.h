// SPDX-License-Identifier: Apache-2.0
//
// Reads functions into a module, in MLIR's pretty and generic forms:
//
//   func.func public @main(%x: tensor<8xf32> {sdy.sharding = …}) -> tensor<8xf32> { … return %y : tensor<8xf32> }
//   "func.func"() <{sym_name = "main", function_type = (tensor<8xf32>) -> tensor<8xf32>, arg_attrs = […]}> ({ … }) …
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "shardwise/text/op_parser.h"

namespace shardwise {

class FunctionParser : public OpParser {
 public:
  using OpParser::OpParser;

  // The words func.func have been read; `start` is their position.
  void parse_function(size_t start);
  void parse_generic_function(size_t start);

 protected:
  // A dictionary of attributes of which only some are read: value_of(key) reads the value of a key, or skips it.
  template <class F>
  void parse_keys(F&& value_of) {
    parse_list(kDictionary, [&] {
      const std::string key = take_attribute_name();
      if (take("=")) value_of(key);
    });
  }
  void skip_dictionary() {
    parse_keys([&](std::string_view) { skip_value(); });
  }
  void skip_value();

  void parse_generic_end();  // `) {...} : () -> () loc(...)`
  void parse_empty_type();   // `: () -> () loc(...)`

 private:
  // The annotations of an argument or result of a function, besides its type.
  struct ValueSyntax {
    LocId loc;
    ShardingId sharding;
    std::vector<PartSyntax> parts;  // one, if any
    std::string gspmd;              // mhlo.sharding, until the type is known
    size_t gspmd_start = 0;
  };
  struct FunctionSyntax {
    size_t start = 0;
    std::string name;
    Visibility visibility = Visibility::kUnspecified;
    std::vector<TypeId> inputs, outputs;
    std::vector<ValueSyntax> arguments, results;  // empty, or one for each
    RegionId body;
  };

  ValueSyntax parse_value_attributes();
  std::vector<ValueSyntax> parse_value_attribute_list();
  ShardingId sharding_of(const ValueSyntax& syntax, TypeId type, size_t position);
  void set_argument(ValueId id, const ValueSyntax& syntax, size_t position);
  void parse_arguments(FunctionSyntax& function);
  void parse_results(FunctionSyntax& function);
  Visibility parse_visibility();
  bool have_types(std::span<const ValueId> values, std::span<const TypeId> types) const {
    return std::ranges::equal(values, types, {}, [&](ValueId id) { return type_of(id); });
  }
  void set_generic_arguments(const FunctionSyntax& function);
  void add(const FunctionSyntax& syntax);

  std::unordered_set<std::string> function_names_;
};

}  // namespace shardwise
