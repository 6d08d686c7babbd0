// SPDX-License-Identifier: Apache-2.0
//
// Ops whose text names the arguments of their regions:
//
//   stablehlo.while(%arg2 = %0, %arg3 = %arg0) : tensor<i32>, tensor<8xf32> attributes {…}
//     cond { … }
//     do { … }
//   chlo.scan(%xs) inits (%h0) dimension=0  attributes {is_reverse = true} {
//   ^bb0(%arg2: tensor<8xf32>, %arg3: tensor<8xf32>): … } : …
//   sdy.manual_computation(%0) in_shardings=[<…>] out_shardings=[<…>] manual_axes={"x"}
//       (%arg2: tensor<4xf32>) { … } : …
//   sdy.named_computation<"f">(%0) in_shardings=[<…>] (%arg2: tensor<8xf32>) { … } : …
//
// in_shardings and out_shardings are the sharding columns of the region's arguments and of the results.
#include <algorithm>
#include <ranges>

#include "shardwise/base/text.h"
#include "shardwise/ir/attribute_printer.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/text/custom_directives.h"

namespace shardwise {
namespace {

void print_operands(OpPrinter& printer, std::span<const ValueId> operands) {
  printer.out += '(';
  printer.values(operands);
  printer.out += ')';
}

void parse_operands(OpParser& parser, OpSyntax& op) {
  parser.expect("(", "before the operands");
  parser.parse_operand_list(op.operands);
  parser.expect(")", "after the operands");
}

// ---- while ---------------------------------------------------------------------------------------------------------

bool fits_while(const OpView& op, std::string_view) {
  if (op.regions().size() != 2) return false;
  return std::ranges::all_of(
      op.regions(), [&](RegionId region) { return op.module().region(region).arguments.size() == op.operand_count(); });
}

void print_while_region(OpPrinter& printer, std::string_view keyword, RegionId region) {
  printer.new_line();
  printer.out.append(keyword).append(" ");
  printer.region_body(region);
}

void print_while(OpPrinter& printer, const OpView& op, std::string_view) {
  const Module& module = op.module();
  const Region& cond = module.region(op.regions()[0]);
  const Region& body = module.region(op.regions()[1]);
  print_list(printer.out, "(", std::views::iota(size_t{0}, op.operand_count()), ")", [&](size_t i) {
    // The text introduces each value once, for both regions: `while(%iterArg = %0) cond {…} do {…}`.
    printer.name_argument(cond.arguments[i]);
    printer.name_like(body.arguments[i], cond.arguments[i]);
    printer.value(cond.arguments[i]);
    printer.out += " = ";
    printer.value(op.operand(i));
  });
  printer.enclosed(" : ", "", [&] { printer.types(op.operands()); });
  printer.enclosed(" attributes", "", [&] { printer.attr_dict(op); });
  print_while_region(printer, "cond", op.regions()[0]);
  print_while_region(printer, "do", op.regions()[1]);
}

// Each region gets arguments of its own with the same names; the first scope is closed before the second begins.
void parse_while_region(OpParser& parser, OpSyntax& op, std::string_view keyword,
                        const std::vector<OpParser::NewName>& names) {
  parser.expect(keyword, "before a region of a while");
  op.regions.push_back(parser.parse_region_from([&](RegionId region) {
    for (size_t i = 0; i < names.size(); ++i) {
      parser.define(names[i], parser.module().add_argument(region, op.declared[i]));
    }
    parser.expect("{", "before a region of a while");
  }));
}

void parse_while(OpParser& parser, OpSyntax& op, std::string_view) {
  std::vector<OpParser::NewName> names;
  parser.parse_list({"(", "before the values of a while", ")", "after the values of a while"}, [&] {
    names.push_back(parser.take_new_name("a value of a while"));
    parser.expect("=", "after the name of a value of a while");
    op.operands.push_back(parser.parse_operand());
  });
  if (!names.empty()) {
    parser.expect(":", "before the types of a while");
    const size_t start = parser.token_start();
    parser.parse_type_list(op.declared);
    if (op.declared.size() != names.size()) {
      parser.fail_at(start, str("a while must have a type for each of its ", names.size(), " values"),
                     str(op.declared.size()));
    }
    // The types are those of the operands, arguments and results alike.
    for (size_t i = 0; i < names.size(); ++i) parser.expect_type(i, op.operands[i], op.declared[i], start);
  }
  if (parser.take_keyword("attributes")) parser.parse_optional_attr_dict(op);
  parse_while_region(parser, op, "cond", names);
  parse_while_region(parser, op, "do", names);
}

// ---- scan ----------------------------------------------------------------------------------------------------------

constexpr std::string_view kDimension = "dimension", kOperandSegments = "operandSegmentSizes",
                           kResultSegments = "resultSegmentSizes";
constexpr std::string_view kScanAttributes[] = {kDimension, kOperandSegments, kResultSegments};

// The op has been inferred, so that the sizes fit.
bool fits_scan(const OpView& op, std::string_view) {
  return op.attrs().get<IntAttr>(kDimension).bits == 64 && !op.attrs().get<IntAttr>(kDimension).is_unsigned;
}

void print_scan(OpPrinter& printer, const OpView& op, std::string_view) {
  // The two lists of operands, inputs and carries, are one list in the op; the segment sizes tell where they meet.
  const auto inputs = static_cast<size_t>(op.attrs().get<NarrowIntArray>(kOperandSegments).values[0]);
  print_operands(printer, op.operands().first(inputs));
  printer.out += " inits ";
  print_operands(printer, op.operands().subspan(inputs));
  printer.out.append(" dimension=").append(std::to_string(op.attrs().get<IntAttr>(kDimension).value)).append(" ");
  printer.enclosed(" attributes", "", [&] { printer.attr_dict(op); });
  printer.out += ' ';
  printer.region_body(op.regions()[0]);
  printer.out += " : ";
  printer.functional_type(op);
}

void add_segments(OpParser& parser, OpSyntax& op, std::string_view name, size_t stacked, size_t carries) {
  parser.add_attribute(op, name, NarrowIntArray{32, {static_cast<int64_t>(stacked), static_cast<int64_t>(carries)}});
}

void parse_scan(OpParser& parser, OpSyntax& op, std::string_view) {
  parse_operands(parser, op);
  const size_t inputs = op.operands.size();
  parser.expect("inits", "before the carries of a scan");
  parse_operands(parser, op);
  const size_t carries = op.operands.size() - inputs;
  parser.expect("dimension", "after the carries of a scan");
  parser.expect("=", "after 'dimension'");
  parser.add_attribute(op, kDimension, IntAttr{parser.take_integer("the dimension of a scan")});
  if (parser.take_keyword("attributes")) parser.parse_optional_attr_dict(op);
  op.regions.push_back(parser.parse_region());
  parser.expect(":", "before the type of a scan");
  const size_t start = parser.token_start();
  parser.parse_functional_type(op);
  if (op.declared.size() < carries) {
    parser.fail_at(start, str("a scan must have a result for each of its ", carries, " carries"),
                   str(op.declared.size()));
  }
  add_segments(parser, op, kOperandSegments, inputs, carries);
  // The text does not have the segment sizes: outputs are the results that are no carries.
  add_segments(parser, op, kResultSegments, op.declared.size() - carries, carries);
}

// ---- manual_computation, named_computation -------------------------------------------------------------------------

bool has_body(const OpView& op) {
  return op.regions().size() == 1 && op.module().region(op.regions()[0]).arguments.size() == op.operand_count();
}

void print_body(OpPrinter& printer, const OpView& op) {
  printer.arguments(op.regions()[0], " (", ") ");
  printer.region_body(op.regions()[0]);
  printer.attr_dict(op);
  printer.out += " : ";
  printer.functional_type(op);
}

void print_shardings(OpPrinter& printer, std::string_view name, std::span<const ValueId> values) {
  printer.out.append(" ").append(name).append("=");
  printer.sharding_list(values);
}

std::vector<ShardingId> parse_shardings(OpParser& parser, std::string_view name) {
  std::vector<ShardingId> shardings;
  parser.expect("=", str("after ", name));
  const std::string before = str("before the list of ", name), after = str("after the list of ", name);
  parser.parse_list({"[", before, "]", after}, [&] { shardings.push_back(parser.parse_sharding_id()); });
  return shardings;
}

void parse_body(OpParser& parser, OpSyntax& op) {
  op.regions.push_back(parser.parse_region_from([&](RegionId region) {
    parser.parse_list({"(", "before the arguments of the region", ")", "after the arguments of the region"},
                      [&] { parser.parse_argument(region); });
    parser.expect("{", "before the region");
  }));
  parser.parse_optional_attr_dict(op);
  parser.expect(":", "before the type of an op");
  parser.parse_functional_type(op);
}

constexpr std::string_view kIn = text_words::kInShardings, kOut = text_words::kOutShardings;

bool fits_manual(const OpView& op, std::string_view argument) {
  return has_body(op) && op.attrs().find<AxesAttr>(argument) != nullptr;
}

void print_manual(OpPrinter& printer, const OpView& op, std::string_view argument) {
  print_operands(printer, op.operands());
  print_shardings(printer, kIn, op.module().region(op.regions()[0]).arguments);
  print_shardings(printer, kOut, list_of_results(op.module(), op.id()));
  printer.out.append(" ").append(argument).append("=");
  print_axes(printer.out, op.attrs().get<AxesAttr>(argument));
  print_body(printer, op);
}

void parse_manual(OpParser& parser, OpSyntax& op, std::string_view argument) {
  parse_operands(parser, op);
  parser.expect(kIn, "in the text of a manual computation");
  op.argument_shardings = parse_shardings(parser, kIn);
  // Even an empty list counts as given: in_shardings=[] of a computation without operands.
  op.has_argument_shardings = true;
  parser.expect(kOut, "in the text of a manual computation");
  op.shardings = parse_shardings(parser, kOut);
  op.has_shardings = true;
  parser.expect(argument, "in the text of a manual computation");
  parser.expect("=", "after the name of the manual axes");
  parser.add_attribute(op, argument, AxesAttr{parse_axis_list(parser)});
  parse_body(parser, op);
}

// In the order of the mesh: manual axes are a set.
void sort_manual_axes(OpSyntax& op, const Context& context, std::string_view argument) {
  MeshPtr mesh;
  // A manual computation names no mesh. A sharding without dims may be on an empty mesh, so a later one decides.
  for (const auto* shardings : {&op.argument_shardings, &op.shardings}) {
    for (const ShardingId id : *shardings) {
      if (mesh == nullptr || mesh->is_empty()) mesh = context.sharding(id).mesh;
    }
  }
  if (mesh == nullptr) return;
  for (NamedAttribute& attribute : op.attributes) {
    const auto* axes = std::get_if<AxesAttr>(&attribute.second.base());
    if (attribute.first != argument || axes == nullptr) continue;
    AxesAttr sorted = *axes;
    std::ranges::stable_sort(sorted.axes, {}, [&](const RawAxisRef& axis) {
      return mesh->find_axis(axis.name).value_or(mesh->ndim());  // verification rejects unknown axes
    });
    attribute.second = std::move(sorted);
  }
}

void print_manual_axes(std::string& out, const Attribute& attribute) {
  out += "#sdy<manual_axes";
  print_axes(out, std::get<AxesAttr>(attribute.base()));
  out += '>';
}

bool fits_named(const OpView& op, std::string_view argument) {
  return has_body(op) && op.attrs().find<std::string>(argument) != nullptr;
}

void print_named(OpPrinter& printer, const OpView& op, std::string_view argument) {
  printer.out.append("<").append(quote(op.attrs().get<std::string>(argument))).append(">");
  print_operands(printer, op.operands());
  const std::vector<ValueId>& arguments = op.module().region(op.regions()[0]).arguments;
  if (printer.has_shardings(arguments)) print_shardings(printer, kIn, arguments);
  if (const std::vector<ValueId> results = list_of_results(op.module(), op.id()); printer.has_shardings(results)) {
    print_shardings(printer, kOut, results);
  }
  print_body(printer, op);
}

void parse_named(OpParser& parser, OpSyntax& op, std::string_view argument) {
  parser.expect("<", "before the name of a computation");
  parser.add_attribute(op, argument, parser.take_string());
  parser.expect(">", "after the name of a computation");
  parse_operands(parser, op);
  op.has_argument_shardings = parser.take_keyword(kIn);
  if (op.has_argument_shardings) op.argument_shardings = parse_shardings(parser, kIn);
  op.has_shardings = parser.take_keyword(kOut);
  if (op.has_shardings) op.shardings = parse_shardings(parser, kOut);
  parse_body(parser, op);
}

}  // namespace

const CustomDirective kWhileDirective{
    .name = "while", .attributes = {}, .fits = fits_while, .print = print_while, .parse = parse_while, .whole = true};

const CustomDirective kScanDirective{.name = "scan",
                                     .attributes = kScanAttributes,
                                     .fits = fits_scan,
                                     .print = print_scan,
                                     .parse = parse_scan,
                                     .whole = true};

const CustomDirective kManualDirective{.name = "manual_computation",
                                       .attributes = {},
                                       .fits = fits_manual,
                                       .print = print_manual,
                                       .parse = parse_manual,
                                       .print_attribute = print_manual_axes,
                                       .whole = true,
                                       .argument_shardings = kIn,
                                       .result_shardings = kOut,
                                       .normalize = sort_manual_axes};

const CustomDirective kNamedDirective{.name = "named_computation",
                                      .attributes = {},
                                      .fits = fits_named,
                                      .print = print_named,
                                      .parse = parse_named,
                                      .whole = true,
                                      .argument_shardings = kIn,
                                      .result_shardings = kOut};

}  // namespace shardwise
