// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/attribute_printer.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "shardwise/base/text.h"
#include "shardwise/ir/dense_printer.h"
#include "shardwise/ir/rule/rule_attribute.h"
#include "shardwise/mesh/sharding_text.h"

namespace shardwise {
namespace {

// The nameless field of a StructAttr whose text is not a list of fields.
const std::string* opaque_body(const StructAttr& attribute) {
  if (attribute.fields.size() != 1 || !attribute.fields[0].first.empty()) return nullptr;
  return std::get_if<std::string>(&attribute.fields[0].second.base());
}

struct Printer {
  std::string& out;

  void operator()(Unit) const { out += "unit"; }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(const IntAttr& a) const {
    if (a.is_unsigned) {
      append_integer(out, static_cast<uint64_t>(a.value));
    } else {
      append_integer(out, a.value);
    }
    if (a.bits == 0) {
      out += " : index";
    } else {
      out.append(a.is_unsigned ? " : ui" : " : i").append(std::to_string(a.bits));
    }
  }
  void operator()(const FloatAttr& a) const {
    print_float(out, a.dtype, a.value);
    out.append(" : ").append(mlir_name(a.dtype));
  }
  void operator()(const std::string& text) const { out += quote(text); }
  void operator()(const IntArray& values) const { print_array(64, values); }
  void operator()(const NarrowIntArray& a) const { print_array(a.bits, a.values); }
  void print_array(int bits, const Dims& values) const {
    out.append("array<i").append(std::to_string(bits));
    // MLIR prints an empty array as array<i64>.
    print_list(out, values.empty() ? "" : ": ", values, ">", [&](int64_t value) {
      if (bits == 1) {
        out += value != 0 ? "true" : "false";
      } else {
        append_integer(out, value);
      }
    });
  }
  void operator()(const AttrArray& values) const {
    print_list(out, "[", values, "]", [&](const Attribute& value) { print_attribute(out, value); });
  }
  void operator()(const DenseAttr& a) const { print_dense(out, a); }
  void operator()(const EnumAttr& a) const {
    // A word in a field of a struct has no dialect of its own: `lhs_precision_type = bf16`.
    if (a.dialect.empty()) {
      out += a.value;
    } else {
      out.append("#").append(a.dialect).append("<").append(a.mnemonic).append(" ").append(a.value).append(">");
    }
  }
  void operator()(const StructAttr& a) const {
    out.append("#").append(a.name).append("<");
    if (const std::string* body = opaque_body(a)) {
      out += *body;
    } else {
      print_list(out, a.fields, [&](const NamedAttribute& field) {
        out += field.first;
        // The presence of a unit is its value.
        if (std::holds_alternative<Unit>(field.second.base())) return;
        out += " = ";
        print_field(field.second);
      });
    }
    out += '>';
  }
  // Numbers in a struct are bare: the dialect knows their types.
  void print_field(const Attribute& value) const {
    if (const auto* values = std::get_if<IntArray>(&value.base())) return print_integers(out, *values);
    if (const auto* number = std::get_if<IntAttr>(&value.base())) return append_integer(out, number->value);
    print_attribute(out, value);
  }
  void operator()(const AttrDict& a) const {
    out += '{';
    print_dictionary(out, a.fields);
    out += '}';
  }
  void operator()(const Symbol& a) const { out += symbol_text(a.name); }
  void operator()(const TypeAttr& a) const { out += a.type.text(); }
  void operator()(const AxesAttr& a) const {
    out += "#sdy<axis_ref_list";
    print_axes(out, a);
    out += '>';
  }
  void operator()(const AxesPerDimAttr& a) const {
    out += "#sdy<list_of_axis_ref_lists";
    print_axes_per_dim(out, a);
    out += '>';
  }
  void operator()(const TensorSharding& a) const { out += text(a); }
  void operator()(const ShardingPerValue& a) const { out += per_value_text(a); }
  void operator()(const RuleAttr& a) const { out.append("#sdy.op_sharding_rule<").append(text(a)).append(">"); }
};

}  // namespace

void print_attribute(std::string& out, const Attribute& attribute) { std::visit(Printer{out}, attribute.base()); }

std::string attribute_text(const Attribute& attribute) {
  std::string out;
  print_attribute(out, attribute);
  return out;
}

void print_dictionary(std::string& out, const std::vector<NamedAttribute>& fields) {
  print_list(out, fields, [&](const NamedAttribute& field) {
    out += is_word(field.first) ? field.first : quote(field.first);
    // As in MLIR, {jax.donor} is short for {jax.donor = unit}.
    if (std::holds_alternative<Unit>(field.second.base())) return;
    out += " = ";
    print_attribute(out, field.second);
  });
}

void print_integers(std::string& out, DimSpan values) { out += dims_text(values); }

void print_axes(std::string& out, const AxesAttr& axes) {
  print_list(out, "{", axes.axes, "}", [&](const RawAxisRef& axis) { out += axis_text(axis); });
}

void print_axes_per_dim(std::string& out, const AxesPerDimAttr& axes) {
  print_list(out, "[", axes.dims, "]", [&](const std::vector<RawAxisRef>& dim) { print_axes(out, AxesAttr{dim}); });
}

}  // namespace shardwise
