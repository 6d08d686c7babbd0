// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/bindings/attributes_from_python.h"
#include "shardwise/bindings/bind_trace.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/casters.h"
#include "shardwise/bindings/source_frame.h"
#include "shardwise/ir/float_precision.h"
#include "shardwise/ir/place.h"
#include "shardwise/ir/rewrite/structural_equality.h"
#include "shardwise/ir/rule_attribute.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/ir/verifier.h"
#include "shardwise/ops/registry.h"
#include "shardwise/text/module_json.h"
#include "shardwise/text/parser.h"
#include "shardwise/text/printer.h"
#include "shardwise/text/rule_parser.h"
#include "shardwise/transforms/decompose.h"

namespace py = pybind11;

namespace shardwise {
namespace {

using ModulePtr = std::shared_ptr<Module>;

constexpr std::string_view kCallTarget = "call_target_name";

py::object sharding_or_none(const Module& module, ShardingId id) {
  return id ? py::cast(module.context().sharding(id)) : py::none();
}

py::list types_of(const Module& module, std::span<const ValueId> values) {
  py::list types;
  for (ValueId value : values) types.append(type_tuple(module.type(value)));
  return types;
}

py::list argument_shardings(const Module& module) {
  py::list list;
  for (ValueId value : module.region(module.main().body).arguments) {
    list.append(sharding_or_none(module, module.value(value).sharding));
  }
  return list;
}

py::list result_shardings(const Module& module) {
  py::list list;
  for (ShardingId id : module.main().result_shardings) list.append(sharding_or_none(module, id));
  return list;
}

// NumPy's name of the coarsest float dtype behind each result of main; None where there is no float.
py::list coarsest_float_names(const Module& module) {
  py::list names;
  for (const std::optional<DType>& dtype : coarsest_floats(module)) {
    names.append(dtype ? py::object(py::str(std::string(numpy_name(*dtype)))) : py::object(py::none()));
  }
  return names;
}

// (op name, rule text) of every op of main; "" where an op has no rule.
py::list sharding_rules(const Module& module, bool conservative) {
  Context& context = module.context();
  py::list rules;
  for (OpId op : module.region(module.main().body).ops) {
    const OpView view(module, op);
    const ShardingRule& rule = context.propagation_rule(view, conservative);
    const bool has_rule = view.def().flow == nullptr && !rule.empty();
    rules.append(py::make_tuple(std::string(view.name()), has_rule ? rule.text() : std::string()));
  }
  return rules;
}

void append_ops(const Module& module, RegionId region, std::vector<OpId>& ops) {
  for (OpId op : module.region(region).ops) {
    ops.push_back(op);
    for (RegionId inner : module.regions(op)) append_ops(module, inner, ops);
  }
}

std::vector<OpId> ops_of(const Module& module) {
  std::vector<OpId> ops;
  for (const Function& function : module.functions) append_ops(module, function.body, ops);
  return ops;
}

// (name, target of a custom call, shapes of the operands, shapes of the results), in the order of the text.
py::list op_list(const Module& module) {
  py::list rows;
  for (OpId id : ops_of(module)) {
    const OpView op(module, id);
    py::list operands, results;
    for (size_t i = 0; i < op.operand_count(); ++i) operands.append(shape_tuple(op.operand_type(i).shape));
    for (size_t i = 0; i < op.result_count(); ++i) results.append(shape_tuple(op.result_type(i).shape));
    const auto* symbol = op.attrs().find<Symbol>(kCallTarget);
    const auto* text = op.attrs().find<std::string>(kCallTarget);
    const std::string target = symbol != nullptr ? symbol->name : text != nullptr ? *text : std::string();
    rows.append(py::make_tuple(std::string(op.name()), target, operands, results));
  }
  return rows;
}

// (number, name, shape, dtype) of each value
py::list value_rows(const Module& module, std::span<const ValueId> values) {
  py::list rows;
  for (ValueId value : values) {
    const TensorType& type = module.type(value);
    rows.append(py::make_tuple(value.index, module.context().name_of(loc_of(module, value)), shape_tuple(type.shape),
                               std::string(numpy_name(type.dtype))));
  }
  return rows;
}

LocId without_names(const Context& context, LocId id) {
  while (id && context.location(id).kind == Location::Kind::kName) id = context.location(id).child;
  return id;
}

// (name, operands, results, (call, file, line)) of every op, in the order of the text. Ops of one recorded call have
// one number `call`; in a text, those of one line and column.
py::list op_values(const Module& module) {
  const Context& context = module.context();
  py::list rows;
  for (OpId id : ops_of(module)) {
    std::vector<ValueId> results;
    for (uint32_t i = 0; i < module.op(id).result_count; ++i) results.push_back(module.result(id, i));
    const LocId call = without_names(context, module.op(id).loc);
    const ResolvedSource source = context.resolve(call);
    rows.append(py::make_tuple(std::string(module.op(id).def->name), value_rows(module, module.operands(id)),
                               value_rows(module, results), py::make_tuple(call.index, source.file, source.line)));
  }
  return rows;
}

// A copy in which ops, by their place in op_list, have these rules.
ModulePtr with_sharding_rules(const Module& module, const std::map<size_t, std::string>& rules) {
  auto copy = std::make_shared<Module>(module);
  const std::vector<OpId> ops = ops_of(*copy);
  for (const auto& [index, text] : rules) {
    if (index >= ops.size()) throw py::index_error("with_sharding_rules: no such op");
    SdyCursor cursor(text);
    cursor.subject = "sharding rule";
    cursor.expect("#sdy.op_sharding_rule", "before a sharding rule");
    RuleAttr rule = parse_rule(cursor);
    cursor.expect_end();
    verify(rule, OpView(*copy, ops[index]));
    Attrs attrs = copy->attrs(ops[index]);
    attrs.set(text_words::kShardingRule, std::move(rule));
    copy->op(ops[index]).attrs = copy->context().intern(attrs);
  }
  return copy;
}

py::dict describe(const OpDef& def) {
  py::dict row;
  row["name"] = std::string(def.name);
  row["doc"] = std::string(def.doc);
  row["runnable"] = def.runnable();
  row["differentiable"] = def.runnable() && def.vjp != not_differentiable;
  row["no_vjp_reason"] = std::string(def.no_vjp_reason);
  row["composed"] = has_no_kernel(def);
  row["elementwise"] = def.traits.elementwise;
  row["collective"] = def.traits.collective != CollectiveKind::kNone;
  row["annotation"] = def.traits.constraint || def.traits.reshard;
  row["movement"] = def.traits.movement;
  return row;
}

void bind_module_class(py::module_& module) {
  py::class_<Module, ModulePtr>(module, "Module")
      .def(
          "text",
          [](const Module& self, bool locations, bool generic) {
            return print(self, PrintOptions{.locations = locations, .generic = generic});
          },
          py::arg("locations") = false, py::arg("generic") = false)
      .def_property_readonly("op_count", [](const Module& self) { return self.region(self.main().body).ops.size(); })
      .def("verify", [](const Module& self) { verify(self); })
      .def("structurally_equal",
           [](const Module& self, const Module& other) { return structurally_equal(self, other); })
      .def("to_json", [](const Module& self) { return module_to_json(self); })
      .def_property_readonly("argument_types",
                             [](const Module& self) { return types_of(self, self.region(self.main().body).arguments); })
      .def_property_readonly("result_types",
                             [](const Module& self) { return types_of(self, self.region(self.main().body).results); })
      .def_property_readonly("coarsest_floats", &coarsest_float_names)
      .def_property_readonly("argument_shardings", &argument_shardings)
      .def_property_readonly("result_shardings", &result_shardings)
      .def_property_readonly("mesh",
                             [](const Module& self) -> std::shared_ptr<Mesh> {
                               return self.meshes.empty() ? nullptr
                                                          : std::const_pointer_cast<Mesh>(self.meshes.front());
                             })
      .def("sharding_rules", &sharding_rules, py::arg("conservative") = false)
      .def("op_list", &op_list)
      .def("op_values", &op_values)
      .def("with_sharding_rules", &with_sharding_rules)
      .def("__repr__", [](const Module& self) { return print(self); });
}

std::string value_text(const std::string& mnemonic, const std::string& value) { return mnemonic + " " + value; }

void bind_attributes(py::module_& module) {
  py::class_<EnumAttr>(module, "EnumValue")
      .def(py::init([](const std::string& dialect, const std::string& mnemonic, const std::string& value) {
        return EnumAttr{dialect, mnemonic, value};
      }))
      .def("__repr__", [](const EnumAttr& self) { return value_text(self.mnemonic, self.value); });
  py::class_<AxesAttr>(module, "Axes").def(py::init([](const std::vector<std::string>& names) {
    AxesAttr axes;
    for (const std::string& name : names) axes.axes.push_back({name, {}});
    return axes;
  }));
  py::class_<StructAttr>(module, "Struct").def(py::init([](const std::string& name, const py::dict& fields) {
    StructAttr value{name, attrs_from_python(fields).entries()};
    std::erase_if(value.fields, [](const NamedAttribute& field) {
      const auto* list = std::get_if<IntArray>(&field.second);
      return list != nullptr && list->empty();
    });
    return value;
  }));
}

}  // namespace

void bind_ir(py::module_& module) {
  bind_attributes(module);
  bind_module_class(module);
  bind_trace(module);
  module.def("hide_frames_of", &hide_frames_of);
  module.def("place_text", &place_text, py::arg("file"), py::arg("line"));
  module.def("current_location", [] {
    const ResolvedSource source = current_source();
    return py::make_tuple(source.file, source.line);
  });
  module.def(
      "parse",
      [](const std::string& text, const std::string& file, bool name_values) {
        const ParseOptions options{.file = file, .name_values = name_values};
        return std::make_shared<Module>(parse(text, std::make_shared<Context>(), options));
      },
      py::arg("text"), py::arg("file") = "", py::arg("name_values") = false);
  module.def("module_from_json", [](const std::string& json) {
    return std::make_shared<Module>(module_from_json(json, std::make_shared<Context>()));
  });
  module.def("all_ops", [] {
    py::list rows;
    for (const OpDef* def : all_ops()) rows.append(describe(*def));
    return rows;
  });
}

}  // namespace shardwise
