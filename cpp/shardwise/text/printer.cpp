// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/printer.h"

#include "shardwise/base/text.h"
#include "shardwise/ir/attribute_printer.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/text/op_printer.h"

namespace shardwise {

OpPrinter::OpPrinter(const Module& module, PrintOptions options)
    : module_(module), options_(options), names_(module.value_count()) {}

void OpPrinter::new_line() {
  out += '\n';
  out.append(static_cast<size_t>(2 * indent_), ' ');
}

void OpPrinter::value(ValueId id) {
  const Value& value = module_.value(id);
  out.append("%").append(names_[id.index]);
  // Several results share one name: %0#1 is the second of %0:2.
  if (!value.op || module_.op(value.op).result_count == 1) return;
  out += '#';
  append_integer(out, static_cast<int64_t>(value.index));
}

void OpPrinter::values(std::span<const ValueId> ids) {
  print_list(out, ids, [&](ValueId id) { value(id); });
}

void OpPrinter::type(TypeId id) {
  if (id.index >= type_texts_.size()) type_texts_.resize(id.index + 1);
  std::string& text = type_texts_[id.index];
  // A program has few types and prints them very often.
  if (text.empty()) text = module_.context().type(id).text();
  out += text;
}

void OpPrinter::types(std::span<const ValueId> ids) {
  print_list(out, ids, [&](ValueId id) { type(module_.value(id).type); });
}

void OpPrinter::functional_type(const OpView& op) {
  out += '(';
  types(op.operands());
  out += ") -> ";
  // MLIR omits the parentheses of a single result type only: `(…) -> ()`, `(…) -> tensor<f32>`.
  if (op.result_count() == 1) return type(module_.value(op.result()).type);
  out += '(';
  types(list_of_results(module_, op.id()));
  out += ')';
}

void OpPrinter::location(LocId id) {
  if (options_.locations) out.append(" ").append(location_attribute_text(module_.context(), id));
}

// Numbered through the whole function, as MLIR does: the regions of an op continue after the function's arguments.
void OpPrinter::name_argument(ValueId id) { names_[id.index] = str("arg", next_argument_++); }

void OpPrinter::argument(ValueId id) {
  name_argument(id);
  value(id);
  out += ": ";
  type(module_.value(id).type);
}

void OpPrinter::arguments(RegionId id, std::string_view open, std::string_view close) {
  print_list(out, open, module_.region(id).arguments, close, [&](ValueId value) {
    argument(value);
    location(module_.value(value).loc);
  });
}

void OpPrinter::name_like(ValueId id, ValueId other) { names_[id.index] = names_[other.index]; }

// ---- ops and regions -----------------------------------------------------------------------------------------------

void OpPrinter::op(OpId id) {
  const OpView view(module_, id);
  result_names(view);
  const AssemblyFormat& format = assembly_format(view.def());
  if (options_.generic || !fits_format(view, format)) {
    generic(view);
  } else {
    formatted(view, format);
  }
  location(view.loc());
}

void OpPrinter::result_names(const OpView& op) {
  if (op.result_count() == 0) return;
  // One number per op, not per result.
  const std::string name = str(next_value_++);
  for (size_t i = 0; i < op.result_count(); ++i) names_[op.result(i).index] = name;
  out.append("%").append(name);
  if (op.result_count() > 1) out += str(":", op.result_count());
  out += " = ";
}

void OpPrinter::block(RegionId id, std::string_view terminator) {
  const Region& region = module_.region(id);
  ++indent_;
  for (OpId inner : region.ops) {
    new_line();
    op(inner);
  }
  new_line();
  out += terminator;
  if (!region.results.empty()) {
    out += ' ';
    values(region.results);
    out += " : ";
    types(region.results);
  }
  // Regions store no terminators, so theirs prints as loc(unknown).
  location({});
  --indent_;
  new_line();
  out += '}';
}

void OpPrinter::region_body(RegionId id) {
  const Region& region = module_.region(id);
  out += '{';
  // The arguments of a while, a reducer or a manual region already have names: their op's text has introduced them.
  const bool labelled = !region.arguments.empty() && names_[region.arguments[0].index].empty();
  if (labelled) {
    new_line();
    arguments(id, "^bb0(", "):");
  }
  const bool is_sdy = region.op && module_.op(region.op).def->name.starts_with("sdy.");
  block(id, is_sdy ? text_words::kShardyReturn : text_words::kRegionReturn);
}

// ---- functions -----------------------------------------------------------------------------------------------------

void OpPrinter::border_attributes(ValueId id, ShardingId sharding, bool with_blocks) {
  const auto add = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    begin_entry(name);
    out += value;
  };
  enclosed(" {", "}", [&] {
    if (sharding) add(text_words::kSharding, text(module_.context().sharding(sharding)));
    for (const std::string_view column : text_words::kPartColumns) {
      // The blocks and owners of a returned value are printed at its op or argument.
      const bool is_of_global = column == text_words::kLocalBlocks || column == text_words::kOwned;
      if (!is_of_global || with_blocks) add(column, part_text(column, id, true));
    }
  });
}

void OpPrinter::results(const Function& function) {
  const auto& values = module_.region(function.body).results;
  if (values.empty()) return;
  out += " -> ";
  const size_t start = out.size();
  size_t i = 0;
  print_list(out, values, [&](ValueId value) {
    type(module_.value(value).type);
    const bool has_sharding = i < function.result_shardings.size();
    border_attributes(value, has_sharding ? function.result_shardings[i] : ShardingId{}, false);
    ++i;
  });
  // MLIR needs the parentheses for several results, and for one with attributes.
  if (values.size() == 1 && !out.ends_with('}')) return;
  out.insert(start, 1, '(');
  out += ')';
}

void OpPrinter::function(const Function& function) {
  // Names are local to a function.
  next_value_ = next_argument_ = 0;
  indent_ = 1;
  new_line();
  out.append(text_words::kFunction).append(" ");
  const std::string_view visibility = text_words::kVisibilities[static_cast<size_t>(function.visibility)];
  if (!visibility.empty()) out.append(visibility).append(" ");
  out.append(symbol_text(function.name));
  print_list(out, "(", module_.region(function.body).arguments, ")", [&](ValueId id) {
    argument(id);
    border_attributes(id, module_.value(id).sharding, true);
    location(module_.value(id).loc);
  });
  results(function);
  out += " {";
  block(function.body, "return");
}

// ---- modules -------------------------------------------------------------------------------------------------------

std::string print(const Module& module, PrintOptions options) {
  OpPrinter printer(module, options);
  printer.out += "module ";
  if (!module.name.empty()) printer.out.append(symbol_text(module.name)).append(" ");
  if (is_printed(module.stage)) {
    printer.out.append("attributes {").append(text_words::kStage).append(" = ");
    printer.out.append(quote(stage_name(module.stage))).append("} ");
  }
  printer.out += '{';
  for (const MeshPtr& mesh : module.meshes) {
    printer.out.append("\n  ")
        .append(text_words::kMesh)
        .append(" ")
        .append(symbol_text(mesh->name()))
        .append(" = ")
        .append(mesh->text());
  }
  for (const Function& function : module.functions) printer.function(function);
  printer.out += "\n}\n";
  return std::move(printer.out);
}

namespace {

bool is_unknown(const Context& context, LocId id) {
  if (context.location(id).kind == Location::Kind::kName) return false;
  const std::string file = context.resolve(id).file;
  return file.empty() || file == text_words::kProgramText;
}

void print_location(std::string& out, const Context& context, LocId id) {
  if (is_unknown(context, id)) {
    out += "unknown";
    return;
  }
  const Location& location = context.location(id);
  if (location.kind == Location::Kind::kName) {
    out += quote(location.text);
    if (!location.child || is_unknown(context, location.child)) return;
    out += '(';
    print_location(out, context, location.child);
    out += ')';
    return;
  }
  const ResolvedSource source = context.resolve(id);
  out += str(quote(source.file), ":", source.line, ":", source.column);
}

}  // namespace

std::string location_attribute_text(const Context& context, LocId id) {
  std::string out = "loc(";
  print_location(out, context, id);
  return out + ")";
}

}  // namespace shardwise
