// SPDX-License-Identifier: Apache-2.0
//
// OpParser: parses ops, regions and SSA names into a module. Directives of assembly formats use its parts:
//
//   parser.expect("init", "before the initial value");
//   op.operands.push_back(parser.parse_operand());      // %cst
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/text/assembly_format.h"
#include "shardwise/text/gspmd_sharding.h"
#include "shardwise/text/parse_options.h"
#include "shardwise/text/text_reader.h"

namespace shardwise {

// The parsed attributes of a value's part, before its type is known.
struct PartSyntax {
  GlobalPart part;
  std::optional<Dims> blocks;
  bool is_owned = false;
};

// The parsed syntax of one op, before the op is created.
struct OpSyntax {
  const OpDef* def = nullptr;
  const AssemblyFormat* format = nullptr;
  size_t start = 0;          // position of its name
  size_t named_results = 0;  // names on the left of '='
  std::vector<ValueId> operands;
  std::vector<TypeId> declared;
  std::vector<NamedAttribute> attributes;
  std::vector<ShardingId> shardings;
  std::vector<ShardingId> argument_shardings;                  // of the first region
  bool has_shardings = false, has_argument_shardings = false;  // a list of them, also an empty one
  std::string gspmd;                                           // mhlo.sharding, until the types are known
  size_t gspmd_start = 0;
  std::vector<PartSyntax> parts;  // of the first results
  std::vector<RegionId> regions;
  std::vector<OpId> inner;  // ops of a shortened region, which get this op's location
};

class OpParser : public TextReader {
 public:
  OpParser(std::string_view source, Module& module, const ParseOptions& options)
      : TextReader(source, module), options_(options) {}

  // ---- values and scopes
  struct NewName {
    std::string_view name;
    size_t position;
  };
  NewName take_new_name(std::string_view what);  // "an argument", for messages
  ValueId parse_operand();
  void parse_operand_list(std::vector<ValueId>& operands);  // may be empty
  TypeId type_of(ValueId id) const { return module().value(id).type; }
  void define(const NewName& new_name, ValueId first, uint32_t count = 1);
  size_t open_scope() const { return defined_.size(); }
  void close_scope(size_t mark);

  // ---- regions: `{`, an optional label with arguments, ops, a terminator, `}`
  RegionId parse_region();
  // A region whose text begins with what `parse_start(region)` reads, up to and with the '{' (and label).
  template <class Start>
  RegionId parse_region_from(Start&& parse_start) {
    const Nesting nesting(*this);
    const RegionId region = module().add_region();
    const size_t scope = open_scope();
    parse_start(region);
    parse_block(region);
    close_scope(scope);
    return region;
  }
  ValueId parse_argument(RegionId region);  // %x: T, with its location
  void set_location(ValueId argument, LocId loc);
  void parse_block(RegionId region);  // after the '{' (and label), up to and with the '}'

  // ---- pieces of an op
  void set_def(OpSyntax& op, std::string_view name);
  void parse_optional_attr_dict(OpSyntax& op);
  void parse_functional_type(OpSyntax& op);  // checks the operands' types
  void expect_type(size_t operand, ValueId value, TypeId type, size_t position);
  void add_attribute(OpSyntax& op, std::string_view name, Attribute value);
  OpId create(RegionId region, OpSyntax& op, LocId loc);
  // The value of mhlo.sharding. Kept as text: the dims and results that it is for are known only after the types.
  void parse_gspmd(std::string& sharding, size_t& start);
  // Parses the value of an attribute of parts. False, without moving, for any other name.
  bool parse_parts(std::vector<PartSyntax>& parts, std::string_view name);
  void set_part(ValueId value, const PartSyntax& syntax, size_t position);  // after its sharding
  bool holds_local_collectives() const;
  // Reads GSPMD's sharding of a value; dims in `open` are open.
  ShardingId gspmd_sharding(std::string_view text, const TensorType& type, const Dims& open, size_t position,
                            bool in_manual_region = false);
  void form_manual_regions();  // from GSPMD's calls around them, after the whole module is parsed
  void verify_ops();           // by their own hooks, after the whole module is parsed

 protected:
  LocId place(size_t position);  // in the file of ParseOptions; none without a file

  std::string function_;  // the function whose body is being parsed: "@main"

 private:
  struct NamedValue {
    ValueId first;
    uint32_t count = 1;
  };
  struct ResultName {
    NewName name;
    uint32_t count;
  };

  bool parse_statement(RegionId region);  // false after the terminator
  bool parse_terminator(RegionId region, std::string_view name, bool generic);
  std::vector<ResultName> parse_result_names();
  static std::string text_of(const std::vector<ResultName>& names);  // as the text has them: "%a, %r:2"
  void parse_generic(OpSyntax& op);
  void parse_dictionary_of(OpSyntax& op);
  void expect_new(const OpSyntax& op, std::string_view name, size_t position) const;
  bool parse_special_attribute(OpSyntax& op, std::string_view name);
  void set_columns(const OpSyntax& op, OpId id);
  LocId named(std::string_view names, LocId loc);
  LocId placed(LocId loc, LocId here);
  void set_shardings(const OpSyntax& op, OpId id);
  void make_constraint(OpSyntax& op);
  void set_gspmd_shardings(const OpSyntax& op, OpId id);

  // part_parser.cpp
  void parse_part(PartSyntax& syntax, std::string_view name);
  TypeId type_without_padding(DType dtype, const Placement& placement, size_t position);

  // format_parser.cpp
  void parse_formatted(OpSyntax& op);
  size_t parse_element(OpSyntax& op, size_t index);  // the index of the next one
  bool take_literal(std::string_view literal);
  bool group_follows(const AssemblyFormat& format, size_t first, size_t count);
  Attribute parse_short_attribute(const OpSyntax& op, std::string_view mnemonic);
  void parse_short_type(OpSyntax& op, FormatKind kind);
  void parse_operand_types(const OpSyntax& op);

  const ParseOptions& options_;
  size_t line_begin_ = 0;  // of the line of the last place
  int32_t line_number_ = 1;
  std::unordered_map<std::string_view, NamedValue> names_;
  std::vector<std::string_view> defined_;
  std::unordered_map<std::string_view, std::pair<const OpDef*, const AssemblyFormat*>> definitions_;  // by name
  std::vector<std::pair<OpId, size_t>> unverified_;
  std::optional<size_t> region_start_;   // of the first call around a manual region
  std::optional<GspmdShardings> gspmd_;  // from the first mhlo.sharding on
};

}  // namespace shardwise
