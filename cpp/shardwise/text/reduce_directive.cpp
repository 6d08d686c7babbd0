// SPDX-License-Identifier: Apache-2.0
//
// custom<reduce>. The text pairs each input with its initial value, while the operands are all inputs, then all initial
// values. The region's arguments are likewise the elements of one side, then those of the other.
#include "shardwise/base/text.h"
#include "shardwise/ir/attribute_printer.h"
#include "shardwise/text/attribute_parser.h"
#include "shardwise/text/custom_directives.h"

namespace shardwise {
namespace {

constexpr std::string_view kAttributes[] = {"dimensions"};

bool fits(const OpView& op, std::string_view) {
  if (op.attrs().find<IntArray>("dimensions") == nullptr) return false;
  const size_t operands = op.operand_count();
  return op.regions().size() == 1 && operands > 0 && operands % 2 == 0 &&
         op.module().region(op.regions()[0]).arguments.size() == operands;
}

// The only op of a region `return op(%0, %1)`, or none. It can be printed as `applies op`.
OpId applied_op(const OpPrinter& printer, const OpView& op) {
  const Module& module = op.module();
  const Region& region = module.region(op.regions()[0]);
  if (region.arguments.size() != 2 || region.ops.size() != 1 || region.results.size() != 1) return {};
  const OpView inner(module, region.ops[0]);
  // The conditions of StableHLO's printer: one op of its dialect, commutative, with the arguments in order. `applies`
  // would also lose the op's attributes and sharding, so it must have none.
  const bool is_applied = inner.name().starts_with("stablehlo.") && inner.def().traits.commutative &&
                          inner.attrs().empty() && inner.regions().empty() && inner.result_count() == 1 &&
                          inner.operand_count() == 2 && inner.operand(0) == region.arguments[0] &&
                          inner.operand(1) == region.arguments[1] && region.results[0] == inner.result() &&
                          !module.value(inner.result()).sharding;
  // Its location is not printed, so it must equal the op's location.
  const bool same_place = !printer.options().locations || inner.loc() == op.loc();
  return is_applied && same_place ? inner.id() : OpId{};
}

void print_reducer(OpPrinter& printer, const OpView& op) {
  const Region& region = op.module().region(op.regions()[0]);
  const size_t count = op.operand_count() / 2;
  printer.new_line();
  printer.out += " reducer";
  for (size_t i = 0; i < count; ++i) {
    // Pairs as in the text of the inputs: reducer(%arg2: …, %arg3: …) (%arg4: …, %arg5: …).
    printer.out += i == 0 ? "(" : " (";
    printer.argument(region.arguments[i]);
    printer.location(op.module().value(region.arguments[i]).loc);
    printer.out += ", ";
    printer.argument(region.arguments[i + count]);
    printer.location(op.module().value(region.arguments[i + count]).loc);
    printer.out += ')';
  }
  printer.out += ' ';
  printer.region_body(op.regions()[0]);
}

void print(OpPrinter& printer, const OpView& op, std::string_view) {
  const size_t count = op.operand_count() / 2;
  for (size_t i = 0; i < count; ++i) {
    printer.out += i == 0 ? "(" : ", (";
    printer.value(op.operand(i));
    printer.out += " init: ";
    printer.value(op.operand(count + i));
    printer.out += ')';
  }
  const OpId applied = applied_op(printer, op);
  if (applied) printer.out.append(" applies ").append(op.module().op(applied).def->name);
  printer.out += " across dimensions = ";
  print_integers(printer.out, op.attrs().get<IntArray>("dimensions"));
  printer.attr_dict(op);
  printer.out += " : ";
  printer.functional_type(op);
  if (!applied) print_reducer(printer, op);
}

void parse_applied(OpParser& parser, OpSyntax& op, std::string_view name, size_t position) {
  OpSyntax inner;
  inner.start = position;
  parser.set_def(inner, name);
  const RegionId region = parser.module().add_region();
  // `applies stablehlo.add` does not write the types of the arguments: both are scalars of the input's dtype.
  const TypeId element = parser.context().tensor(parser.module().type(op.operands[0]).dtype, {});
  for (int i = 0; i < 2; ++i) inner.operands.push_back(parser.module().add_argument(region, element));
  op.inner.push_back(parser.create(region, inner, {}));
  // The text may name any op.
  if (parser.module().op(op.inner[0]).result_count != 1) {
    parser.fail_at(position, "a reduce must apply an op with one result", name);
  }
  parser.module().region(region).results.push_back(parser.module().result(op.inner[0]));
  op.regions.push_back(region);
}

void parse_reducer(OpParser& parser, OpSyntax& op) {
  op.regions.push_back(parser.parse_region_from([&](RegionId region) {
    parser.expect("reducer", "before the region of a reduce");
    for (size_t i = 0; i < op.operands.size() / 2; ++i) {
      parser.expect("(", "before a pair of the reducer's arguments");
      parser.parse_argument(region);
      parser.expect(",", "between the arguments of a pair");
      parser.parse_argument(region);
      parser.expect(")", "after a pair of the reducer's arguments");
    }
    // Pairs in the text, sides in the region.
    std::vector<ValueId>& arguments = parser.module().region(region).arguments;
    const std::vector<ValueId> pairs = arguments;
    const size_t count = pairs.size() / 2;
    for (size_t i = 0; i < pairs.size(); ++i) {
      const size_t target = i / 2 + (i % 2 == 0 ? 0 : count);
      arguments[target] = pairs[i];
      // A value stores its own index among the arguments, which must follow the new order.
      parser.module().value(pairs[i]).index = static_cast<uint32_t>(target);
    }
    parser.expect("{", "before the region of a reduce");
  }));
}

void parse(OpParser& parser, OpSyntax& op, std::string_view) {
  std::vector<ValueId> initial;
  do {
    parser.expect("(", "before an input of a reduce");
    op.operands.push_back(parser.parse_operand());
    parser.expect("init", "after an input of a reduce");
    parser.expect(":", "after 'init'");
    initial.push_back(parser.parse_operand());
    parser.expect(")", "after an initial value");
  } while (parser.take(","));
  op.operands.insert(op.operands.end(), initial.begin(), initial.end());
  std::string_view applied;
  size_t position = 0;
  if (parser.take_keyword("applies")) {
    position = parser.token_start();
    applied = parser.expect_word("the op that the reduce applies");
    // A reducer of several inputs has several results, which one op of two operands cannot give.
    if (initial.size() != 1) parser.fail_at(position, "a reduce of several inputs must have a reducer");
  }
  parser.expect("across", "in the text of a reduce");
  parser.expect("dimensions", "after 'across'");
  parser.expect("=", "after 'dimensions'");
  parser.add_attribute(op, "dimensions", parse_integers(parser));
  parser.parse_optional_attr_dict(op);
  parser.expect(":", "before the type of a reduce");
  parser.parse_functional_type(op);
  // The reducer comes after the type, but `applies` before it; its region needs the dtype of the operands.
  if (applied.empty()) {
    parse_reducer(parser, op);
  } else {
    parse_applied(parser, op, applied, position);
  }
}

}  // namespace

const CustomDirective kReduceDirective{
    .name = "reduce", .attributes = kAttributes, .fits = fits, .print = print, .parse = parse, .whole = true};

}  // namespace shardwise
