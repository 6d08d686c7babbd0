// SPDX-License-Identifier: Apache-2.0
//
// OpPrinter: the state of printing one module, and the parts that directives of assembly formats use. A directive
// appends to `out`:
//
//   printer.out += " init: ";
//   printer.value(op.operand(1));     // %cst -> %3
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shardwise/text/assembly_format.h"
#include "shardwise/text/print_options.h"

namespace shardwise {

class OpPrinter {
 public:
  OpPrinter(const Module& module, PrintOptions options);

  const Module& module() const { return module_; }
  const PrintOptions& options() const { return options_; }

  void function(const Function& function);
  void op(OpId id);

  // ---- pieces; each appends to `out`
  void value(ValueId id);                     // %0, %0#1, %arg2
  void values(std::span<const ValueId> ids);  // %0, %1
  void type(TypeId id);
  void types(std::span<const ValueId> ids);  // T, U
  void functional_type(const OpView& op);    // (T, U) -> V
  void attr_dict(const OpView& op);          // ` {...}`, or nothing
  void argument(ValueId id);                 // %arg2: T
  void name_argument(ValueId id);            // the next free name; appends nothing
  void region_body(RegionId id);             // { ops and the terminator }
  void location(LocId id);                   // ` loc(...)`, if requested
  void new_line();
  void arguments(RegionId id, std::string_view open, std::string_view close);  // (%arg2: T, %arg3: U)
  void name_like(ValueId id, ValueId other);                                   // both print as the same name
  bool has_shardings(std::span<const ValueId> values) const;
  void sharding_list(std::span<const ValueId> values);  // [<@mesh, [{"x"}]>, <…>]
  // Appends `open`, what `print` appends, and `close`; nothing if it appends nothing.
  template <class Print>
  void enclosed(std::string_view open, std::string_view close, Print&& print) {
    const size_t start = out.size();
    out += open;
    const size_t inside = out.size();
    print();
    if (out.size() == inside) {
      out.resize(start);
    } else {
      out += close;
    }
  }

  std::string out;

 private:
  void formatted(const OpView& op, const AssemblyFormat& format);
  void element(const OpView& op, const FormatElement& element);
  void short_attribute(const Attribute& attribute);
  void generic(const OpView& op);
  void properties(const OpView& op, const AssemblyFormat& format);
  // Entries of dictionaries, each after a comma unless it is the first: `name = `, and columns of values.
  void begin_entry(std::string_view name);
  void sharding_entry(std::string_view name, std::span<const ValueId> values);
  void columns(const OpView& op, const AssemblyFormat& format);
  // The attribute `column` (text_words::kPartColumns) of one value; empty where it is not printed.
  std::string part_text(std::string_view column, ValueId id, bool at_border) const;
  // Prints the attributes of an argument or result of a function.
  void border_attributes(ValueId id, ShardingId sharding, bool with_blocks);
  void results(const Function& function);
  void block(RegionId id, std::string_view terminator);
  void result_names(const OpView& op);

  const Module& module_;
  PrintOptions options_;
  std::vector<std::string> names_;       // by value; of results the name of the op's first one, without '#'
  std::vector<std::string> type_texts_;  // by type
  uint32_t next_value_ = 0, next_argument_ = 0;
  int indent_ = 0;
};

// Whether the pretty form shows everything about `op`. Otherwise it is printed in generic form.
bool fits_format(const OpView& op, const AssemblyFormat& format);

}  // namespace shardwise
