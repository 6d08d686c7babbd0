// SPDX-License-Identifier: Apache-2.0
#include "shardwise/bindings/bind_program.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include "shardwise/bindings/attributes.h"
#include "shardwise/choice/program_placements.h"
#include "shardwise/compiler/assigned_names.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/place.h"
#include "shardwise/ir/refusals.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/digit_map.h"
#include "shardwise/ops/build/decomposition.h"
#include "shardwise/ops/collectives/exchange.h"
#include "shardwise/ops/collectives/local_collectives.h"

namespace py = pybind11;

namespace shardwise {
namespace {

using ModulePtr = std::shared_ptr<Module>;

// Each view holds its module: Python may keep an op after it has dropped the program.
template <class Id>
struct View {
  ModulePtr module;
  Id id;
  friend bool operator==(const View& a, const View& b) { return a.module == b.module && a.id == b.id; }
};
using ValueOf = View<ValueId>;
using OpOf = View<OpId>;
using RegionOf = View<RegionId>;

// Functions are elements of a vector, so a view is an index.
struct FunctionOf {
  ModulePtr module;
  size_t index = 0;
  const Function& get() const { return module->functions[index]; }
};

template <class Id>
std::vector<View<Id>> views(const ModulePtr& module, std::span<const Id> ids) {
  std::vector<View<Id>> list;
  list.reserve(ids.size());
  for (const Id id : ids) list.push_back({module, id});
  return list;
}

// ---- values --------------------------------------------------------------------------------------------------------

std::optional<OpOf> defining_op(const ValueOf& value) {
  const OpId op = value.module->value(value.id).op;
  return op ? std::optional(OpOf{value.module, op}) : std::nullopt;
}

// ---- ops -----------------------------------------------------------------------------------------------------------

std::vector<ValueOf> results_of(const OpOf& op) {
  return views<ValueId>(op.module, list_of_results(*op.module, op.id));
}

AttributeDict attributes_of(const OpOf& op) { return attributes_to_python(op.module->attrs(op.id).entries()); }

// The logical index of the sender of each device, by step. None if the op is no exchange, or if its tiles do not nest.
std::optional<std::vector<std::vector<int64_t>>> sender_steps_of(const OpOf& op) {
  const OpView view(*op.module, op.id);
  if (view.def().traits.collective != CollectiveKind::kExchange) return std::nullopt;
  const auto map = digit_map_of(exchange_map(view));
  return map ? std::optional(sender_steps(*map, *collective_mesh(view))) : std::nullopt;
}

// ---- classes -------------------------------------------------------------------------------------------------------

template <class Class>
void def_identity(Class& views) {
  using T = typename Class::type;
  views.def_property_readonly("number", [](const T& self) { return self.id.index; })
      .def(py::self == py::self)
      // Equal numbers of two modules collide, which equality tells apart; sets hold views of one module.
      .def("__hash__", [](const T& self) { return std::hash<uint32_t>()(self.id.index); });
}

void bind_locations(py::class_<ResolvedSource>& locations) {
  locations.def_readonly("file", &ResolvedSource::file)
      .def_readonly("line", &ResolvedSource::line)
      .def_readonly("column", &ResolvedSource::column)
      .def_property_readonly("variable", [](const ResolvedSource& self) { return assigned_whole(self.variable); })
      .def("__repr__", [](const ResolvedSource& self) { return place_text(self.file, self.line); });
}

void bind_values(py::class_<ValueOf>& values) {
  def_identity(values);
  values
      .def_property_readonly(
          "name", [](const ValueOf& self) { return self.module->context().name_of(loc_of(*self.module, self.id)); })
      .def_property_readonly("type", [](const ValueOf& self) { return self.module->type(self.id); })
      .def_property_readonly(
          "sharding",
          [](const ValueOf& self) { return optional_sharding(*self.module, self.module->value(self.id).sharding); })
      .def_property_readonly("placement", [](const ValueOf& self) { return placement_of_value(*self.module, self.id); })
      .def_property_readonly("defining_op", &defining_op)  // None for an argument
      .def_property_readonly(
          "location", [](const ValueOf& self) { return self.module->context().resolve(loc_of(*self.module, self.id)); })
      .def("__repr__", [](const ValueOf& self) { return "<value of " + self.module->type(self.id).text() + ">"; });
}

void bind_ops(py::class_<OpOf>& ops) {
  def_identity(ops);
  ops.def_property_readonly(
         "definition", [](const OpOf& self) { return self.module->op(self.id).def; },
         py::return_value_policy::reference)
      .def_property_readonly("name", [](const OpOf& self) { return std::string(self.module->op(self.id).def->name); })
      .def_property_readonly("operands",
                             [](const OpOf& self) { return views(self.module, self.module->operands(self.id)); })
      .def_property_readonly("results", &results_of)
      .def_property_readonly("regions",
                             [](const OpOf& self) { return views(self.module, self.module->regions(self.id)); })
      .def_property_readonly("attributes", &attributes_of)
      // Floating-point operations, and bytes read and written, of one execution.
      .def_property_readonly("cost",
                             [](const OpOf& self) {
                               const OpView op(*self.module, self.id);
                               const OpCost cost = own_cost(op);
                               return std::pair(static_cast<double>(cost.flops()), static_cast<double>(cost.bytes()));
                             })
      .def_property_readonly("sender_steps", &sender_steps_of)
      .def_property_readonly(
          "location", [](const OpOf& self) { return self.module->context().resolve(self.module->op(self.id).loc); })
      // Equal for the ops of one recorded call; in a text, for those of one line and column. 0 where it is unknown.
      .def_property_readonly(
          "call",
          [](const OpOf& self) { return self.module->context().without_names(self.module->op(self.id).loc).index; })
      .def("__repr__", [](const OpOf& self) { return "<op " + std::string(self.module->op(self.id).def->name) + ">"; });
}

void bind_regions(py::class_<RegionOf>& regions) {
  def_identity(regions);
  regions
      .def_property_readonly(
          "arguments",
          [](const RegionOf& self) { return views<ValueId>(self.module, self.module->region(self.id).arguments); })
      .def_property_readonly(
          "ops", [](const RegionOf& self) { return views<OpId>(self.module, self.module->region(self.id).ops); })
      .def_property_readonly("results", [](const RegionOf& self) {
        return views<ValueId>(self.module, self.module->region(self.id).results);
      });
}

void bind_functions(py::class_<FunctionOf>& functions) {
  functions.def_property_readonly("name", [](const FunctionOf& self) { return self.get().name; })
      .def_property_readonly("is_public", [](const FunctionOf& self) { return self.get().is_public(); })
      .def_property_readonly("body", [](const FunctionOf& self) { return RegionOf{self.module, self.get().body}; })
      .def_property_readonly(
          "result_shardings",
          [](const FunctionOf& self) { return optional_shardings(*self.module, self.get().result_shardings); })
      .def("__repr__", [](const FunctionOf& self) { return "<function @" + self.get().name + ">"; });
}

void bind_definitions(py::class_<OpDef, std::unique_ptr<OpDef, py::nodelete>>& definitions) {
  definitions.def_property_readonly("name", [](const OpDef& self) { return std::string(self.name); })
      .def_property_readonly("doc", [](const OpDef& self) { return std::string(self.doc); })
      .def_property_readonly("runnable", &OpDef::runnable)
      .def_property_readonly("complete", &OpDef::complete)
      .def_property_readonly("refusal",
                             [](const OpDef& self) -> std::optional<std::pair<std::string, std::string>> {
                               const Refusal* refusal = refusal_of(self.name);
                               if (refusal == nullptr) return std::nullopt;
                               return std::pair{std::string(refusal->reason), std::string(refusal->way_out)};
                             })
      .def_property_readonly("differentiable", &OpDef::differentiable)
      .def_property_readonly("control_flow", &OpDef::is_control_flow)
      .def_property_readonly("call", &OpDef::is_call)
      .def_property_readonly("inline", [](const OpDef& self) { return self.regions == Regions::kInline; })
      .def_property_readonly(
          "has_kernel", [](const OpDef& self) { return self.runs == Runs::kKernel || self.runs == Runs::kCollective; })
      .def_property_readonly("has_rule", [](const OpDef& self) { return self.rule != no_rule; })
      .def_property_readonly("composed", [](const OpDef& self) { return is_composed(self); })
      .def_property_readonly("no_vjp_reason", [](const OpDef& self) { return std::string(self.no_vjp_reason); })
      .def_property_readonly("commutative", [](const OpDef& self) { return self.traits.commutative; })
      .def_property_readonly("elementwise", [](const OpDef& self) { return self.traits.elementwise; })
      .def_property_readonly("collective",
                             [](const OpDef& self) { return self.traits.collective != CollectiveKind::kNone; })
      .def_property_readonly("annotation", [](const OpDef& self) { return self.traits.annotates(); })
      .def_property_readonly("movement", [](const OpDef& self) { return self.traits.movement; })
      .def_property_readonly("methods",
                             [](const OpDef& self) {
                               std::vector<std::string> names;
                               for (const Method& method : self.methods) names.emplace_back(method.name);
                               return names;
                             })
      .def("__repr__", [](const OpDef& self) { return "<definition of " + std::string(self.name) + ">"; });
}

}  // namespace

py::object value_view(const std::shared_ptr<const Module>& module, ValueId value) {
  return py::cast(ValueOf{std::const_pointer_cast<Module>(module), value});  // views only read
}

std::vector<OpId> ops_in_text_order(const Module& module) {
  return find_ops(module, [](OpId) { return true; });
}

std::optional<TensorSharding> optional_sharding(const Module& module, ShardingId id) {
  return id ? std::optional(module.context().sharding(id)) : std::nullopt;
}

std::vector<std::optional<TensorSharding>> optional_shardings(const Module& module, std::span<const ShardingId> ids) {
  std::vector<std::optional<TensorSharding>> list;
  for (const ShardingId id : ids) list.push_back(optional_sharding(module, id));
  return list;
}

void bind_program(py::module_& module, py::class_<Module, ModulePtr>& modules) {
  // All classes before any property, whose signature names them.
  py::class_<ResolvedSource> locations(module, "Location");
  // Definitions are constants of the extension, which Python must not free.
  py::class_<OpDef, std::unique_ptr<OpDef, py::nodelete>> definitions(module, "OpDefinition");
  py::class_<ValueOf> values(module, "Value");
  py::class_<OpOf> ops(module, "Op");
  py::class_<RegionOf> regions(module, "Region");
  py::class_<FunctionOf> functions(module, "Function");
  bind_locations(locations);
  bind_definitions(definitions);
  bind_values(values);
  bind_ops(ops);
  bind_regions(regions);
  bind_functions(functions);
  modules
      // Every op, those of regions after their owner, in the order of the text.
      .def_property_readonly("ops", [](const ModulePtr& self) { return views<OpId>(self, ops_in_text_order(*self)); })
      .def_property_readonly("functions",
                             [](const ModulePtr& self) {
                               std::vector<FunctionOf> list;
                               for (size_t i = 0; i < self->functions.size(); ++i) list.push_back({self, i});
                               return list;
                             })
      .def_property_readonly("main",
                             [](const ModulePtr& self) {
                               return FunctionOf{self, static_cast<size_t>(&self->main() - self->functions.data())};
                             })
      .def_property_readonly("stage", [](const Module& self) { return std::string(stage_name(self.stage)); });
}

}  // namespace shardwise
