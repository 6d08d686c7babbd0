// SPDX-License-Identifier: Apache-2.0
//
// Pretty forms: the parsing half of assembly_format.h's language.
#include "shardwise/text/attribute_parser.h"
#include "shardwise/text/custom_directive.h"
#include "shardwise/text/op_parser.h"

namespace shardwise {

void OpParser::parse_formatted(OpSyntax& op) {
  for (size_t i = 0; i < op.format->elements.size();) i = parse_element(op, i);
}

size_t OpParser::parse_element(OpSyntax& op, size_t index) {
  const FormatElement& element = op.format->elements[index];
  switch (element.kind) {
    case FormatKind::kLiteral:
      if (!take_literal(element.text)) expect(element.text, str("in the text of ", op.def->name));
      break;
    case FormatKind::kOperands: parse_operand_list(op.operands); break;
    case FormatKind::kOperand: op.operands.push_back(parse_operand()); break;
    case FormatKind::kAttribute: {
      Attribute value = parse_short_attribute(op, element.mnemonic);
      add_attribute(op, element.text, std::move(value));
      break;
    }
    case FormatKind::kGroup:
      // A group is an optional part, such as ( `,` $compare_type^ )?: its first literals decide whether it is there.
      if (!group_follows(*op.format, index + 1, element.count)) return index + 1 + element.count;
      break;
    case FormatKind::kAttrDict: parse_optional_attr_dict(op); break;
    case FormatKind::kSameType:
    case FormatKind::kSameOrFunctionalType: parse_same_type(op); break;
    case FormatKind::kFunctionalType: parse_functional_type(op); break;
    case FormatKind::kOperandType: parse_operand_types(op); break;
    case FormatKind::kResultType:
      op.declared.clear();  // set by a same-type before it
      parse_type_list(op.declared);
      break;
    case FormatKind::kSelectType: parse_select_type(op); break;
    case FormatKind::kComplexType: parse_complex_type(op); break;
    case FormatKind::kSharding:
      // Optional: `sharding=<@mesh, …>`. The other form has no word before the sharding.
      if (element.count != 0) {
        if (!take_keyword(element.text)) break;
        expect("=", "after the name of a sharding");
      }
      op.shardings.push_back(parse_sharding_id());
      break;
    case FormatKind::kCustom: {
      const CustomDirective& directive = *element.custom;
      directive.parse(*this, op, element.text);
      break;
    }
  }
  return index + 1;
}

// A word and its '=' are one literal if they are printed without a space.
bool OpParser::take_literal(std::string_view literal) {
  const bool is_key = literal.size() > 1 && literal.back() == '=';
  if (!is_key) return take(literal);
  // The keyword may be there without the '=': then none of the literal is taken.
  const size_t start = pos;
  if (take_keyword(literal.substr(0, literal.size() - 1)) && take("=")) return true;
  pos = start;
  return false;
}

bool OpParser::group_follows(const AssemblyFormat& format, size_t first, size_t count) {
  const size_t start = pos;
  bool follows = true;
  for (size_t i = first; follows && i < first + count && format.elements[i].kind == FormatKind::kLiteral; ++i) {
    follows = take_literal(format.elements[i].text);
  }
  pos = start;
  return follows;
}

Attribute OpParser::parse_short_attribute(const OpSyntax& op, std::string_view mnemonic) {
  if (peek("[")) return parse_integers(*this);
  // The printer uses the short form for i64 only, so a number needs no type.
  if (at_digit()) return IntAttr{take_integer("the value of an attribute"), 64};
  const std::string_view word = peek_word();
  for (std::string_view full : {"", "true", "false", "dense", "array", "tensor", "unit"}) {
    if (word == full) return parse_attribute(*this);
  }
  take_word();
  // `LT` of a compare is #stablehlo<comparison_direction LT>: its dialect is the op's, its mnemonic the format's.
  const std::string_view dialect = op.def->name.substr(0, op.def->name.find('.'));
  return EnumAttr{std::string(dialect), std::string(mnemonic), std::string(word)};
}

// MLIR's SameOperandsAndResultType prints one type, and falls back to
// (tensor<4xf32>) -> tensor<4xi1> where they differ.
void OpParser::parse_same_type(OpSyntax& op) {
  if (peek("(")) return parse_functional_type(op);
  skip_space();
  const size_t start = pos;
  const TypeId type = parse_type();
  for (size_t i = 0; i < op.operands.size(); ++i) expect_type(i, op.operands[i], type, start);
  op.declared.push_back(type);
}

void OpParser::parse_operand_types(const OpSyntax& op) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (i > 0) expect(",", "between the types of the operands");
    skip_space();
    const size_t start = pos;
    expect_type(i, op.operands[i], parse_type(), start);
  }
}

void OpParser::parse_select_type(OpSyntax& op) {
  if (peek("(")) return parse_functional_type(op);
  skip_space();
  const size_t start = pos;
  const TypeId predicate = parse_type();
  expect(",", "between the types of predicate and values");
  const TypeId type = parse_type();
  for (size_t i = 0; i < op.operands.size(); ++i) expect_type(i, op.operands[i], i == 0 ? predicate : type, start);
  op.declared.push_back(type);
}

void OpParser::parse_complex_type(OpSyntax& op) {
  if (peek("(")) return parse_functional_type(op);
  skip_space();
  const size_t start = pos;
  op.declared.push_back(parse_type());
  const TensorType& type = context().type(op.declared[0]);
  if (!is_complex(type.dtype)) fail_at(start, "the type must be one of complex numbers", type.text());
  const TypeId part = context().tensor(part_of_complex(type.dtype), type.shape);
  for (size_t i = 0; i < op.operands.size(); ++i) expect_type(i, op.operands[i], part, start);
}

}  // namespace shardwise
