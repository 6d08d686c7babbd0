// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/op_printer.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "shardwise/base/text.h"
#include "shardwise/ir/attribute_printer.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/text/custom_directive.h"

namespace shardwise {
namespace {

std::string_view dialect_of(std::string_view op_name) { return op_name.substr(0, op_name.find('.')); }

// The short form must read back as an equal attribute (parse_short_attribute): a number is an i64, a '[' begins an
// IntArray, and a word is an enum of the op's dialect.
bool is_short(const Attribute& attribute, std::string_view op_name, std::string_view mnemonic) {
  if (const auto* number = std::get_if<IntAttr>(&attribute.base())) return number->bits == 64 && !number->is_unsigned;
  if (std::holds_alternative<FloatAttr>(attribute.base())) return false;
  if (const auto* value = std::get_if<EnumAttr>(&attribute.base())) {
    return value->dialect == dialect_of(op_name) && value->mnemonic == mnemonic;
  }
  return !std::holds_alternative<AttrArray>(attribute.base()) && !std::holds_alternative<Unit>(attribute.base()) &&
         !std::holds_alternative<AttrDict>(attribute.base());
}

// Whether the operands from `first` on have the type of the one result.
bool have_result_type(const OpView& op, size_t first) {
  if (op.result_count() != 1 || op.operand_count() < first) return false;
  const auto type_of = [&](ValueId value) { return op.module().value(value).type; };
  return std::ranges::all_of(op.operands().subspan(first),
                             [&](ValueId operand) { return type_of(operand) == type_of(op.result()); });
}

bool all_types_equal(const OpView& op) { return have_result_type(op, 0); }

bool fits_complex_type(const OpView& op) {
  if (op.result_count() != 1 || !is_complex(op.result_type().dtype)) return false;
  const TensorType part{part_of_complex(op.result_type().dtype), op.result_type().shape};
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (op.operand_type(i) != part) return false;
  }
  return true;
}

bool fits_element(const OpView& op, const FormatElement& element) {
  switch (element.kind) {
    case FormatKind::kAttribute: {
      const Attribute* attribute = op.attrs().find(element.text);
      return attribute != nullptr && is_short(*attribute, op.name(), element.mnemonic);
    }
    case FormatKind::kOperand: return element.count < op.operand_count();
    case FormatKind::kSameType: return all_types_equal(op);
    case FormatKind::kResultType: return op.result_count() > 0;
    // The predicate's type is printed on its own, so only the two values must agree with the result.
    case FormatKind::kSelectType: return op.operand_count() == 3 && have_result_type(op, 1);
    case FormatKind::kComplexType: return fits_complex_type(op);
    case FormatKind::kSharding:
      return op.result_count() == 1 && (element.count != 0 || op.module().value(op.result()).sharding);
    case FormatKind::kCustom: return element.custom->fits(op, element.text);
    default: return true;
  }
}

// Such a directive prints operands, regions and types itself: custom<reduce>.
bool is_whole(const FormatElement& element) { return element.custom != nullptr && element.custom->whole; }

// The format must show every operand.
bool shows_operands(const OpView& op, const AssemblyFormat& format) {
  size_t single = 0;
  for (const FormatElement& element : format.elements) {
    if (element.kind == FormatKind::kOperands || is_whole(element)) return true;
    if (element.kind == FormatKind::kOperand) ++single;
  }
  return single == op.operand_count();
}

// The spaces of assembly_format.h.
bool stands_alone(const FormatElement& element, const FormatElement* before) {
  // A reduce prints `stablehlo.reduce(%0 init: %1)`: no space before its '('.
  if (is_whole(element)) return false;
  if (element.kind == FormatKind::kLiteral &&
      std::string_view(",)]>(").find(element.text[0]) != std::string_view::npos) {
    return false;
  }
  if (before == nullptr || before->kind != FormatKind::kLiteral) return true;
  // `dims = [1]` has a space after its '=', a literal of its own; `out_sharding=<…>` has
  // none, because the word is part of it.
  const char last = before->text.back();
  return std::string_view("([<").find(last) == std::string_view::npos && (last != '=' || before->text.size() == 1);
}

// Whether an optional element has anything to print.
bool is_shown(const OpView& op, const FormatElement& element) {
  if (element.kind == FormatKind::kOperands) return op.operand_count() > 0;
  if (element.kind != FormatKind::kSharding || element.count == 0) return true;
  return static_cast<bool>(op.module().value(op.result()).sharding);
}

// Whether an attribute is a property of the op: its format shows it or, without a format, it has no dialect prefix.
bool is_property(const AssemblyFormat& format, std::string_view name) {
  return format.elements.empty() ? name.find('.') == std::string_view::npos : format.shows(name);
}

template <class Predicate>
std::vector<NamedAttribute> entries_if(const OpView& op, Predicate&& is_wanted) {
  std::vector<NamedAttribute> wanted;
  std::ranges::copy_if(op.attrs().entries(), std::back_inserter(wanted),
                       [&](const NamedAttribute& entry) { return is_wanted(entry.first); });
  return wanted;
}

}  // namespace

bool fits_format(const OpView& op, const AssemblyFormat& format) {
  if (format.elements.empty() || !shows_operands(op, format)) return false;
  // No other element prints regions.
  if (!op.regions().empty() && !is_whole(format.elements[0])) return false;
  for (size_t i = 0; i < format.elements.size(); ++i) {
    const FormatElement& element = format.elements[i];
    if (element.kind == FormatKind::kGroup && op.attrs().find(element.text) == nullptr) {
      i += element.count;
    } else if (!fits_element(op, element)) {
      return false;
    }
  }
  return true;
}

// ---- pretty form ---------------------------------------------------------------------------------------------------

void OpPrinter::formatted(const OpView& op, const AssemblyFormat& format) {
  out += op.name();
  const FormatElement* before = nullptr;
  for (size_t i = 0; i < format.elements.size(); ++i) {
    const FormatElement& item = format.elements[i];
    if (item.kind == FormatKind::kGroup) {
      // The group's elements follow it in the list.
      if (op.attrs().find(item.text) == nullptr) i += item.count;
    } else if (item.kind == FormatKind::kAttrDict) {
      attr_dict(op);
    } else if (is_shown(op, item)) {
      if (stands_alone(item, before)) out += ' ';
      element(op, item);
      before = &item;
    }
  }
}

void OpPrinter::element(const OpView& op, const FormatElement& element) {
  switch (element.kind) {
    case FormatKind::kLiteral: out += element.text; break;
    case FormatKind::kOperands: values(op.operands()); break;
    case FormatKind::kOperand: value(op.operand(element.count)); break;
    case FormatKind::kAttribute: short_attribute(*op.attrs().find(element.text)); break;
    case FormatKind::kSameType:
    case FormatKind::kComplexType: type(module_.value(op.result()).type); break;
    case FormatKind::kSameOrFunctionalType:
      if (all_types_equal(op)) return type(module_.value(op.result()).type);
      functional_type(op);
      break;
    case FormatKind::kFunctionalType: functional_type(op); break;
    case FormatKind::kOperandType: types(op.operands()); break;
    case FormatKind::kResultType: types(list_of_results(module_, op.id())); break;
    case FormatKind::kSelectType: types(std::array{op.operand(0), op.result()}); break;
    case FormatKind::kSharding:  // shown only if there is one
      if (element.count != 0) out.append(element.text).append("=");
      out += bare_text(module_.context().sharding(module_.value(op.result()).sharding));
      break;
    case FormatKind::kCustom: element.custom->print(*this, op, element.text); break;
    case FormatKind::kGroup:
    case FormatKind::kAttrDict: break;
  }
}

void OpPrinter::short_attribute(const Attribute& attribute) {
  if (const auto* number = std::get_if<IntAttr>(&attribute.base())) return append_integer(out, number->value);
  if (const auto* values = std::get_if<IntArray>(&attribute.base())) return print_integers(out, *values);
  if (const auto* value = std::get_if<EnumAttr>(&attribute.base())) {
    out += value->value;
    return;
  }
  print_attribute(out, attribute);
}

// ---- attributes ----------------------------------------------------------------------------------------------------

void OpPrinter::attr_dict(const OpView& op) {
  const AssemblyFormat& format = assembly_format(op.def());
  enclosed(" {", "}", [&] {
    print_dictionary(out, entries_if(op, [&](std::string_view name) { return !format.shows(name); }));
    columns(op, format);
  });
}

void OpPrinter::begin_entry(std::string_view name) {
  if (out.back() != '{') out += ", ";
  out.append(name).append(" = ");
}

void OpPrinter::sharding_entry(std::string_view name, std::span<const ValueId> values) {
  if (name.empty() || !has_shardings(values)) return;
  begin_entry(name);
  out += "#sdy.sharding_per_value<";
  sharding_list(values);
  out += '>';
}

void OpPrinter::columns(const OpView& op, const AssemblyFormat& format) {
  const std::vector<ValueId> results = list_of_results(module_, op.id());
  // A format that shows the sharding itself, such as that of sdy.reshard, must not print it twice.
  if (format.sharding.empty() && format.result_shardings.empty()) sharding_entry(text_words::kSharding, results);
  if (std::ranges::none_of(results, [&](ValueId id) { return static_cast<bool>(module_.part(id).placement); })) return;
  for (const std::string_view column : text_words::kPartColumns) {
    std::vector<std::string> texts;
    for (const ValueId id : results) texts.push_back(part_text(column, id, false));
    if (std::ranges::all_of(texts, &std::string::empty)) continue;
    begin_entry(column);
    // The value of one result, or a list with `unit` for results without one.
    const std::string list = join(texts, ", ", [](std::string_view text) { return text.empty() ? "unit" : text; });
    out += texts.size() == 1 ? list : str("[", list, "]");
  }
}

bool OpPrinter::has_shardings(std::span<const ValueId> values) const {
  return std::ranges::any_of(values, [&](ValueId id) { return static_cast<bool>(module_.value(id).sharding); });
}

// A value without a sharding prints as open if others in the list have one.
void OpPrinter::sharding_list(std::span<const ValueId> values) {
  MeshPtr mesh;
  for (const ValueId id : values) {
    const ShardingId sharding = module_.value(id).sharding;
    // An open sharding also names a mesh: that of the first value that has one.
    if (sharding && mesh == nullptr) mesh = module_.context().sharding(sharding).mesh;
  }
  print_list(out, "[", values, "]", [&](ValueId value) {
    const ShardingId id = module_.value(value).sharding;
    out += bare_text(id ? module_.context().sharding(id) : TensorSharding::open(mesh, module_.type(value).ndim()));
  });
}

std::string OpPrinter::part_text(std::string_view column, ValueId id, bool at_border) const {
  const GlobalPart& part = module_.part(id);
  if (!part.placement) return {};
  const Context& context = module_.context();
  const Placement& placement = context.placement(part.placement);
  // A part without a type belongs to a global value: its blocks and its owners are all that the sharding does not tell.
  if (!part.type) {
    if (column == text_words::kOwned) return placement.is_owned ? "true" : "";
    const bool has_blocks = !placement.has_default_blocks(module_.type(id).shape);
    return column == text_words::kLocalBlocks && has_blocks ? attribute_text(placement.local_shape()) : "";
  }
  // At the border of a function a placement tells the caller which part to pass; inside, it is printed on request only.
  if (!options_.placements && (!at_border || module_.holds_whole(id))) return {};
  if (column == text_words::kPlacement) {
    const TensorType& type = context.type(part.type);
    return LayoutView(context, part.placed()).is_uneven() ? str(text(placement), " : ", type.text()) : text(placement);
  }
  // Garbage needs no text: the parser assumes it for uneven dims without a fill.
  if (column != text_words::kPadding || part.padding.kind != Padding::Kind::kFill) return {};
  return attribute_text(DenseAttr{NdArray::full(part.padding.fill.dtype, {}, part.padding.fill)});
}

// ---- generic form --------------------------------------------------------------------------------------------------

void OpPrinter::generic(const OpView& op) {
  const AssemblyFormat& format = assembly_format(op.def());
  out.append("\"").append(op.name()).append("\"(");
  values(op.operands());
  out += ')';
  enclosed(" <{", "}>", [&] { properties(op, format); });
  enclosed(" (", ")", [&] { print_list(out, op.regions(), [&](RegionId region) { region_body(region); }); });
  enclosed(" {", "}", [&] {
    print_dictionary(out, entries_if(op, [&](std::string_view name) { return !is_property(format, name); }));
    columns(op, format);
  });
  out += " : ";
  functional_type(op);
}

void OpPrinter::properties(const OpView& op, const AssemblyFormat& format) {
  for (const auto& [name, attribute] : op.attrs().entries()) {
    if (!is_property(format, name)) continue;
    // Some attributes have a text of their own in generic form, which Shardy's parser expects: #sdy<manual_axes{"x"}>.
    const auto custom = std::find_if(format.elements.begin(), format.elements.end(), [&](const FormatElement& element) {
      return element.custom != nullptr && element.text == name && element.custom->print_attribute != nullptr;
    });
    if (custom != format.elements.end()) {
      begin_entry(name);
      custom->custom->print_attribute(out, attribute);
      continue;
    }
    if (out.back() != '{') out += ", ";
    print_dictionary(out, {{name, attribute}});
  }
  const std::vector<ValueId> results = list_of_results(module_, op.id());
  if (!format.sharding.empty() && results.size() == 1 && module_.value(results[0]).sharding) {
    begin_entry(format.sharding);
    out += text(module_.context().sharding(module_.value(results[0]).sharding));
  }
  if (!op.regions().empty()) {
    sharding_entry(format.argument_shardings, module_.region(op.regions()[0]).arguments);
  }
  sharding_entry(format.result_shardings, results);
}

}  // namespace shardwise
