// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/bindings/attributes.h"
#include "shardwise/bindings/bind_program.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/casters.h"
#include "shardwise/bindings/source_frame.h"
#include "shardwise/compiler/float_precision.h"
#include "shardwise/ir/attribute_printer.h"
#include "shardwise/ir/place.h"
#include "shardwise/ir/refusals.h"
#include "shardwise/ir/rewrite/structural_equality.h"
#include "shardwise/ir/rule/rule_attribute.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/ir/verifier.h"
#include "shardwise/ops/elementwise/special_decompositions.h"
#include "shardwise/ops/registry.h"
#include "shardwise/propagation/program_mesh.h"
#include "shardwise/propagation/rules_by_op.h"
#include "shardwise/text/module_json.h"
#include "shardwise/text/parser.h"
#include "shardwise/text/printer.h"
#include "shardwise/text/rule_parser.h"
#include "shardwise/transforms/entry_function.h"

namespace py = pybind11;

namespace shardwise {
namespace {

using ModulePtr = std::shared_ptr<Module>;

std::vector<TensorType> types_of(const Module& module, std::span<const ValueId> values) {
  std::vector<TensorType> types;
  for (const ValueId value : values) types.push_back(module.type(value));
  return types;
}

std::vector<std::optional<TensorSharding>> argument_shardings_of(const Module& module) {
  std::vector<std::optional<TensorSharding>> list;
  for (const ValueId value : module.region(module.main().body).arguments) {
    list.push_back(optional_sharding(module, module.value(value).sharding));
  }
  return list;
}

// NumPy's name of the coarsest float dtype behind each result of main; None where there is no float.
std::vector<std::optional<std::string>> coarsest_float_names(const Module& module) {
  std::vector<std::optional<std::string>> names;
  for (const std::optional<DType>& dtype : coarsest_floats(module)) {
    names.push_back(dtype ? std::optional(std::string(numpy_name(*dtype))) : std::nullopt);
  }
  return names;
}

// (op name, rule text) of every op of main; "" where an op has no rule.
std::vector<std::pair<std::string, std::string>> sharding_rules(const Module& module, bool conservative) {
  RulesByOp rules_by_op(module, {.conservative = conservative});
  std::vector<std::pair<std::string, std::string>> rules;
  for (const OpId op : module.region(module.main().body).ops) {
    const OpView view(module, op);
    const ShardingRule& rule = rules_by_op[op];
    // An op with regions propagates through its data-flow edges, as in Shardy, so its rule is not shown.
    const bool has_rule = view.def().flow == nullptr && !rule.empty();
    rules.emplace_back(view.name(), has_rule ? text(rule) : std::string());
  }
  return rules;
}

// By operand and dim, how each op of main reads it. Dims that are read at the result's index are not there.
py::list ranges_of_ops(const Module& module) {
  static constexpr const char* kOutside[] = {"never", "scalar", "neutral", "absent"};
  py::list ops;
  for (const OpId id : module.region(module.main().body).ops) {
    const OpView op(module, id);
    const ShardingRule& rule = sharding_rule(op);
    py::dict ranges;
    for (size_t i = 0; i < rule.operand_count(); ++i) {
      for (size_t d = 0; d < rule.ndim(i); ++d) {
        const Range* range = rule.range(i, d);
        if (range == nullptr) continue;
        py::dict fields;
        fields["scale"] = range->scale;
        fields["offset"] = range->offset;
        fields["window"] = range->window;
        fields["dilation"] = range->dilation;
        fields["holes"] = range->holes;
        fields["start"] = range->start;
        fields["outside"] = kOutside[static_cast<size_t>(range->outside)];
        ranges[py::make_tuple(i, d)] = fields;
      }
    }
    ops.append(py::make_tuple(op.name(), ranges));
  }
  return ops;
}

// A copy in which ops, by their place in Module.ops, have these rules.
ModulePtr with_sharding_rules(const Module& module, const std::map<size_t, std::string>& rules) {
  // Modules are immutable for Python, and other objects may hold this one.
  auto copy = std::make_shared<Module>(module);
  const std::vector<OpId> ops = ops_in_text_order(*copy);
  for (const auto& [index, text] : rules) {
    if (index >= ops.size()) throw py::index_error("with_sharding_rules: no such op");
    RuleAttr rule = parse_rule(text);
    verify(rule, OpView(*copy, ops[index]));
    copy->set_attribute(ops[index], text_words::kShardingRule, std::move(rule));
  }
  return copy;
}

std::optional<std::shared_ptr<Mesh>> optional_mesh(const MeshPtr& mesh) {
  return mesh == nullptr ? std::nullopt : std::optional(std::const_pointer_cast<Mesh>(mesh));
}

// `array`: what each call passes as this argument of main.
void know(Module& module, uint32_t argument, const py::array& array) {
  module.known_arguments[argument] = constant_from_python(array);
}

void bind_module_class(py::class_<Module, ModulePtr>& modules) {
  modules
      .def(
          "text",
          [](const Module& self, bool locations, bool generic, bool placements) {
            return print(self, PrintOptions{.locations = locations, .generic = generic, .placements = placements});
          },
          py::arg("locations") = false, py::arg("generic") = false, py::arg("placements") = false)
      .def_property_readonly("op_count",
                             [](const Module& self) {
                               // The repr of a module without functions needs it, too.
                               return self.functions.empty() ? size_t{0} : self.region(self.main().body).ops.size();
                             })
      .def("verify", [](const Module& self) { verify(self); })
      .def("know", &know, py::arg("argument"), py::arg("array"))
      .def(
          "structurally_equal", [](const Module& self, const Module& other) { return structurally_equal(self, other); },
          py::arg("other"))
      .def("to_json", [](const Module& self) { return module_to_json(self); })
      .def_property_readonly("argument_types",
                             [](const Module& self) { return types_of(self, self.region(self.main().body).arguments); })
      .def_property_readonly("result_types",
                             [](const Module& self) { return types_of(self, self.region(self.main().body).results); })
      .def_property_readonly("coarsest_floats", &coarsest_float_names)
      .def_property_readonly("argument_shardings", &argument_shardings_of)
      .def_property_readonly("result_shardings",
                             [](const Module& self) { return optional_shardings(self, self.main().result_shardings); })
      .def_property_readonly(
          "mesh", [](const Module& self) { return optional_mesh(self.meshes.empty() ? nullptr : self.meshes.front()); })
      .def_property_readonly("meshes",
                             [](const Module& self) {
                               py::typing::Dict<py::str, Mesh> meshes;  // in order
                               for (const MeshPtr& mesh : self.meshes) {
                                 meshes[py::str(mesh->name())] = std::const_pointer_cast<Mesh>(mesh);
                               }
                               return meshes;
                             })
      // The mesh of the shardings, or the first declared mesh of several devices.
      .def_property_readonly("program_mesh", [](const Module& self) { return optional_mesh(program_mesh(self)); })
      .def(
          "with_entry",
          [](const Module& self, const std::string& name) {
            return std::make_shared<Module>(entry_function(self, name));
          },
          py::arg("name"))
      .def("sharding_rules", &sharding_rules, py::arg("conservative") = false)
      .def_property_readonly("ranges", &ranges_of_ops)
      .def("with_sharding_rules", &with_sharding_rules, py::arg("rules"))
      .def("__repr__", [](const Module& self) { return print(self); });
}

template <class Class>
void def_equality(Class& attributes) {
  using T = typename Class::type;
  attributes.def(py::self == py::self)
      .def("__hash__", [](const T& self) { return hash_value(Attribute(self)); })
      .def("__repr__", [](const T& self) { return attribute_text(Attribute(self)); });
}

void bind_type_class(py::module_& module) {
  py::class_<TensorType> types(module, "TensorType");
  types.def_property_readonly("shape", [](const TensorType& self) { return shape_tuple(self.shape); })
      .def_property_readonly("dtype", [](const TensorType& self) { return std::string(numpy_name(self.dtype)); })
      .def(py::self == py::self)
      .def("__hash__", [](const TensorType& self) { return hash_value(Attribute(TypeAttr{self})); })
      .def("__repr__", &TensorType::text);
}

// The attributes that Python has no type for. Their text is MLIR's.
void bind_attributes(py::module_& module) {
  // All classes before any signature that names them.
  py::class_<EnumAttr> enums(module, "EnumValue");
  py::class_<AxesAttr> axes(module, "Axes");
  py::class_<StructAttr> structs(module, "Struct");
  py::class_<Symbol> symbols(module, "Symbol");
  py::class_<RuleAttr> rules(module, "Rule");
  enums
      .def(py::init([](const std::string& dialect, const std::string& mnemonic, const std::string& value) {
             return EnumAttr{dialect, mnemonic, value};
           }),
           py::arg("dialect"), py::arg("mnemonic"), py::arg("value"))
      .def_readonly("dialect", &EnumAttr::dialect)
      .def_readonly("mnemonic", &EnumAttr::mnemonic)
      .def_readonly("value", &EnumAttr::value);
  def_equality(enums);
  axes.def(py::init([](const std::vector<std::string>& names) {
             AxesAttr value;
             for (const std::string& name : names) value.axes.push_back({name, {}});
             return value;
           }),
           py::arg("names"))
      // (name, (pre, size) of a sub-axis or None), major to minor
      .def_property_readonly("axes", [](const AxesAttr& self) {
        std::vector<std::pair<std::string, std::optional<std::pair<int64_t, int64_t>>>> list;
        for (const RawAxisRef& axis : self.axes) list.emplace_back(axis.name, axis.sub);
        return list;
      });
  def_equality(axes);
  structs
      .def(py::init([](const std::string& name, const py::typing::Dict<py::str, py::object>& fields) {
             StructAttr value{name, attrs_from_python(fields).entries()};
             // As the parser does: an empty list of dims and a missing one must give equal attributes.
             std::erase_if(value.fields, [](const NamedAttribute& field) {
               const auto* list = std::get_if<IntArray>(&field.second);
               return list != nullptr && list->empty();
             });
             return value;
           }),
           py::arg("name"), py::arg("fields"))
      .def_readonly("name", &StructAttr::name)
      .def_property_readonly("fields", [](const StructAttr& self) { return attributes_to_python(self.fields); });
  def_equality(structs);
  symbols.def(py::init([](const std::string& name) { return Symbol{name}; }), py::arg("name"))
      .def_readonly("name", &Symbol::name);
  def_equality(symbols);
  def_equality(rules);
}

// What is refused: its name, the reason, what to do instead, and whether the error is raised when a text is read.
std::vector<std::tuple<std::string, std::string, std::string, bool>> refusal_rows() {
  std::vector<std::tuple<std::string, std::string, std::string, bool>> rows;
  for (const Refusal& refusal : all_refusals()) {
    const std::string_view space = refusal.condition.empty() ? "" : " ";
    rows.emplace_back(str(refusal.name, space, refusal.condition), refusal.reason, refusal.way_out,
                      refusal.when == Refusal::When::kRead);
  }
  return rows;
}

// By branch: its upper limit, the offset of its argument, and the coefficients of its polynomial.
std::vector<std::tuple<double, double, std::vector<double>>> erf_inv_rows(const std::string& dtype) {
  std::vector<std::tuple<double, double, std::vector<double>>> rows;
  for (const auto& [below, offset, coefficients] : erf_inv_branches(dtype_from_python(dtype))) {
    rows.emplace_back(below, offset, std::vector<double>(coefficients.begin(), coefficients.end()));
  }
  return rows;
}

// Name and kind ("b", "i", "u", "f" or "c") of each dtype of arrays.
std::vector<std::pair<std::string, std::string>> dtype_rows() {
  std::vector<std::pair<std::string, std::string>> rows;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const char* kind = is_complex(dtype)            ? "c"
                       : is_float(dtype)            ? "f"
                       : is_signed_integer(dtype)   ? "i"
                       : is_unsigned_integer(dtype) ? "u"
                                                    : "b";
    rows.emplace_back(numpy_name(dtype), kind);
  }
  return rows;
}

}  // namespace

void bind_ir(py::module_& module) {
  py::class_<Module, ModulePtr> modules(module, "Module");
  bind_type_class(module);
  bind_attributes(module);
  bind_program(module, modules);
  bind_module_class(modules);
  bind_trace(module);
  bind_custom_calls(module);
  module.def("hide_frames_of", &hide_frames_of, py::arg("paths"));
  module.def("place_text", &place_text, py::arg("file"), py::arg("line"));
  module.def("current_location", [] {
    const ResolvedSource source = current_source();
    return py::make_tuple(source.file, source.line);
  });
  module.attr("PROGRAM_TEXT") = text_words::kProgramText;
  module.def(
      "parse",
      [](const std::string& text, const std::string& file, bool name_values) {
        const ParseOptions options{.file = file, .name_values = name_values};
        return std::make_shared<Module>(parse(text, std::make_shared<Context>(), options));
      },
      py::arg("text"), py::arg("file") = "", py::arg("name_values") = false);
  module.def(
      "module_from_json",
      [](const std::string& json) {
        return std::make_shared<Module>(module_from_json(json, std::make_shared<Context>()));
      },
      py::arg("text"));
  module.def(
      "all_ops", [] { return std::vector<const OpDef*>(all_ops().begin(), all_ops().end()); },
      py::return_value_policy::reference);
  module.def("refusals", &refusal_rows);
  module.def("dtypes", &dtype_rows);
  module.def("erf_inv_branches", &erf_inv_rows, py::arg("dtype"));
}

}  // namespace shardwise
