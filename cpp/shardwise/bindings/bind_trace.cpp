// SPDX-License-Identifier: Apache-2.0
#include "shardwise/bindings/bind_trace.h"

#include <optional>

#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/bindings/attributes_from_python.h"
#include "shardwise/bindings/casters.h"
#include "shardwise/bindings/trace.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/transforms/batch.h"
#include "shardwise/transforms/differentiate.h"

namespace py = pybind11;

namespace shardwise {
namespace {

using ShardingPtr = std::optional<TensorSharding>;

std::vector<ValueId> values_from_python(const Trace& trace, py::handle list) {
  std::vector<ValueId> values;
  for (py::handle item : list) values.push_back(trace.operand(item.cast<uint32_t>()));
  return values;
}

py::list indices(std::span<const ValueId> values) {
  py::list list;
  for (ValueId value : values) list.append(value.index);
  return list;
}

// (value, shape, dtype name)
py::tuple value_tuple(const Trace& trace, ValueId value) {
  const TensorType& type = trace.module().type(value);
  return py::make_tuple(value.index, shape_tuple(type.shape), py::str(std::string(numpy_name(type.dtype))));
}

py::tuple emit(Trace& trace, const std::string& name, py::handle operands, py::handle attrs, py::handle shape,
               py::handle dtype, const std::optional<std::string>& region_op) {
  const std::vector<ValueId> values = values_from_python(trace, operands);
  std::vector<TypeId> declared;
  if (!shape.is_none() || !dtype.is_none()) {
    if (values.empty() && (shape.is_none() || dtype.is_none())) {
      fail<ShapeError>(name, "an op without operands needs a shape and a dtype");
    }
    const Dims dims = shape.is_none() ? trace.module().type(values[0]).shape : shape_from_python(shape);
    const DType element =
        dtype.is_none() ? trace.module().type(values[0]).dtype : dtype_from_python(dtype.cast<std::string>());
    declared.push_back(trace.context().tensor(element, dims));
  }
  return value_tuple(trace,
                     trace.emit(name, values, attrs_from_python(attrs), declared, region_op ? &*region_op : nullptr));
}

// `types`: (shape, dtype name) of each result where the op does not imply them. A value tuple per result.
py::list emit_op(Trace& trace, const std::string& name, py::handle operands, py::handle attrs, py::handle types,
                 const std::vector<uint32_t>& regions) {
  std::vector<TypeId> declared;
  for (py::handle type : types) {
    const auto [shape, dtype] = type.cast<std::pair<py::object, std::string>>();
    declared.push_back(trace.context().tensor(dtype_from_python(dtype), shape_from_python(shape)));
  }
  std::vector<RegionId> ids;
  for (const uint32_t region : regions) ids.push_back(RegionId{region});
  const OpId op = trace.emit_op(name, values_from_python(trace, operands), attrs_from_python(attrs), declared, ids);
  py::list results;
  for (uint32_t i = 0; i < trace.module().op(op).result_count; ++i) {
    results.append(value_tuple(trace, trace.module().result(op, i)));
  }
  return results;
}

// Constraint results that no op and no region uses and that are not among `live`: (value, file, line).
py::list unused_constraints(const Trace& trace, py::handle live) {
  const Module& module = trace.module();
  std::vector<bool> used(module.value_count(), false);
  for (ValueId value : values_from_python(trace, live)) used[value.index] = true;
  for (uint32_t op = 1; op < module.op_count(); ++op) {
    for (ValueId operand : module.operands(OpId{op})) used[operand.index] = true;
  }
  for (uint32_t region = 1; region < module.region_count(); ++region) {
    for (ValueId result : module.region(RegionId{region}).results) used[result.index] = true;
  }
  py::list unused;
  std::vector<RegionId> reached{trace.body()};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (OpId op : module.region(reached[i]).ops) {
      reached.insert(reached.end(), module.regions(op).begin(), module.regions(op).end());
      if (!module.op(op).def->traits.constraint || used[module.result(op).index]) continue;
      const ResolvedSource source = module.context().resolve(module.op(op).loc);
      unused.append(py::make_tuple(module.result(op).index, source.file, source.line));
    }
  }
  return unused;
}

// The ops of a region with a new leading dim, appended here: (value, whether it has that dim) per result.
py::list batch(Trace& trace, uint32_t region, py::handle arguments, const std::vector<bool>& batched, int64_t size) {
  Builder builder = trace.builder_here();
  if (region == 0 || region >= trace.module().region_count()) {
    fail<ShapeError>("trace", "a region must be one of this program", std::to_string(region));
  }
  const BatchedResults results =
      append_batched(builder, RegionId{region}, values_from_python(trace, arguments), batched, size);
  py::list list;
  for (size_t i = 0; i < results.values.size(); ++i) {
    list.append(py::make_tuple(results.values[i].index, static_cast<bool>(results.batched[i])));
  }
  return list;
}

// The region ends even where a result is refused: the caller may go on recording around it.
void end_region(Trace& trace, py::handle results) {
  std::vector<ValueId> values;
  try {
    values = values_from_python(trace, results);
  } catch (...) {
    trace.end_region({});
    throw;
  }
  trace.end_region(values);
}

std::shared_ptr<Module> finish(Trace& trace, py::handle outputs, const std::vector<ShardingPtr>& shardings) {
  const std::vector<ValueId> values = values_from_python(trace, outputs);
  std::vector<ShardingId> ids(values.size());
  for (size_t i = 0; i < shardings.size() && i < values.size(); ++i) {
    if (!shardings[i]) continue;
    verify(*shardings[i], trace.module().type(values[i]).shape);
    trace.module().declare_mesh(shardings[i]->mesh);
    ids[i] = trace.context().intern(*shardings[i]);
  }
  return trace.finish(values, std::move(ids));
}

py::tuple location_of(const Trace& trace, uint32_t index) {
  const Value& value = trace.module().value(trace.checked(index));
  const ResolvedSource source = trace.context().resolve(value.op ? trace.module().op(value.op).loc : value.loc);
  return py::make_tuple(source.file, source.line);
}

}  // namespace

void bind_trace(py::module_& module) {
  py::class_<Trace>(module, "Trace")
      .def(py::init<const std::string&>())
      .def(
          "argument",
          [](Trace& trace, py::handle shape, const std::string& dtype, const std::string& name,
             const ShardingPtr& sharding) {
            const TypeId type = trace.context().tensor(dtype_from_python(dtype), shape_from_python(shape));
            return trace.argument(type, name, sharding ? &*sharding : nullptr).index;
          },
          py::arg("shape"), py::arg("dtype"), py::arg("name") = "", py::arg("sharding") = py::none())
      .def("emit", &emit, py::arg("name"), py::arg("operands"), py::arg("attrs") = py::none(),
           py::arg("shape") = py::none(), py::arg("dtype") = py::none(), py::arg("region_op") = py::none())
      .def("emit_op", &emit_op, py::arg("name"), py::arg("operands"), py::arg("attrs") = py::none(),
           py::arg("types") = py::list(), py::arg("regions") = std::vector<uint32_t>())
      .def("capture",
           [](Trace& trace, uint32_t region) {
             py::list captured;
             for (const auto& [value, argument] : trace.capture(RegionId{region})) {
               captured.append(py::make_tuple(value.index, argument.index));
             }
             return captured;
           })
      .def("set_sharding", [](Trace& trace, uint32_t value,
                              const TensorSharding& sharding) { trace.set_sharding(trace.checked(value), sharding); })
      .def("constant",
           [](Trace& trace, const py::array& array) {
             const Attrs attrs{{"value", DenseAttr{constant_from_python(array)}}};
             return value_tuple(trace, trace.emit("stablehlo.constant", {}, attrs, {}, nullptr));
           })
      .def("constrain",
           [](Trace& trace, uint32_t value, const TensorSharding& sharding) {
             return trace.constrain(trace.checked(value), sharding).index;
           })
      .def("set_name",
           [](Trace& trace, uint32_t value, const std::string& name) { trace.set_name(trace.checked(value), name); })
      .def("vjp",
           [](Trace& trace, py::handle outputs, py::handle cotangents, py::handle wrt) {
             Builder builder = trace.builder_here();
             return indices(append_vjp(builder, values_from_python(trace, outputs),
                                       values_from_python(trace, cotangents), values_from_python(trace, wrt)));
           })
      .def("begin_region", [](Trace& trace) { return trace.begin_region().index; })
      .def("region_argument",
           [](Trace& trace, py::handle shape, const std::string& dtype) {
             return trace.region_argument(trace.context().tensor(dtype_from_python(dtype), shape_from_python(shape)))
                 .index;
           })
      .def("end_region", &end_region)
      .def("batch", &batch)
      .def("variable", [](Trace& trace, uint32_t value) { return trace.variable(trace.checked(value)).index; })
      .def("substitute", [](Trace& trace, uint32_t variable,
                            uint32_t value) { trace.substitute(ValueId{variable}, trace.checked(value)); })
      .def("type_of",
           [](const Trace& trace, uint32_t value) { return type_tuple(trace.module().type(trace.checked(value))); })
      .def("location", &location_of)
      .def("unused_constraints", &unused_constraints)
      .def("finish", &finish, py::arg("outputs"), py::arg("shardings") = std::vector<ShardingPtr>())
      .def_property_readonly("op_count", [](const Trace& trace) { return trace.module().op_count() - 1; });
}

}  // namespace shardwise
