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
    case FormatKind::kAttribute: add_attribute(op, element.text, parse_short_attribute(op, element.mnemonic)); break;
    case FormatKind::kGroup:
      // A group is an optional part, such as ( `,` $compare_type^ )?: its first literals decide whether it is there.
      if (!group_follows(*op.format, index + 1, element.count)) return index + 1 + element.count;
      break;
    case FormatKind::kAttrDict: parse_optional_attr_dict(op); break;
    case FormatKind::kSameType:
    case FormatKind::kSameOrFunctionalType:
    case FormatKind::kSelectType:
    case FormatKind::kComplexType: parse_short_type(op, element.kind); break;
    case FormatKind::kFunctionalType: parse_functional_type(op); break;
    case FormatKind::kOperandType: parse_operand_types(op); break;
    case FormatKind::kResultType:
      op.declared.clear();  // set by a same-type before it
      parse_type_list(op.declared);
      break;
    case FormatKind::kSharding:
      // Optional: `sharding=<@mesh, …>`. The other form has no word before the sharding.
      if (element.count != 0) {
        if (!take_keyword(element.text)) break;
        expect("=", "after the name of a sharding");
      }
      op.shardings.push_back(parse_sharding_id());
      break;
    case FormatKind::kCustom: element.custom->parse(*this, op, element.text); break;
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

// MLIR prints the types that follow from others only once, and falls back to (tensor<4xf32>) -> tensor<4xi1> where they
// do not.
void OpParser::parse_short_type(OpSyntax& op, FormatKind kind) {
  if (peek("(")) return parse_functional_type(op);
  const size_t start = token_start();
  const TypeId first = parse_type();
  TypeId result = first, operands = first;
  if (kind == FormatKind::kSelectType) {
    expect(",", "between the types of predicate and values");
    result = operands = parse_type();
  } else if (kind == FormatKind::kComplexType) {
    const TensorType& type = context().type(result);
    if (!is_complex(type.dtype)) fail_at(start, "the type must be one of complex numbers", type.text());
    operands = context().tensor(part_of_complex(type.dtype), type.shape);
  }
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const bool is_predicate = kind == FormatKind::kSelectType && i == 0;
    expect_type(i, op.operands[i], is_predicate ? first : operands, start);
  }
  op.declared.push_back(result);
}

void OpParser::parse_operand_types(const OpSyntax& op) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (i > 0) expect(",", "between the types of the operands");
    const size_t start = token_start();
    expect_type(i, op.operands[i], parse_type(), start);
  }
}

}  // namespace shardwise
