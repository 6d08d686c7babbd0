// SPDX-License-Identifier: Apache-2.0
#include "shardwise/bindings/bind_trace.h"

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/bindings/attributes_from_python.h"
#include "shardwise/bindings/casters.h"
#include "shardwise/bindings/trace.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/text/parser.h"
#include "shardwise/transforms/batch/batch.h"
#include "shardwise/transforms/import_program.h"

namespace py = pybind11;

namespace shardwise {
namespace {

using ShardingPtr = std::optional<TensorSharding>;

// Values cross to Python as numbers: an object for each would take longer to make than the op that it stands for.
using Numbers = std::vector<uint32_t>;                                // of values
using ValueTuple = py::typing::Tuple<uint32_t, ShapeTuple, py::str>;  // number, shape, dtype name
using TypeLike = std::pair<ShapeLike, std::string>;
using AttributesLike = std::optional<py::typing::Dict<py::str, py::object>>;

Attrs attributes(const AttributesLike& given) { return given ? attrs_from_python(*given) : Attrs(); }

std::vector<ValueId> values_from_python(const Trace& trace, const Numbers& numbers) {
  std::vector<ValueId> values;
  values.reserve(numbers.size());
  for (const uint32_t number : numbers) values.push_back(trace.operand(number));
  return values;
}

Numbers numbers_of(std::span<const ValueId> values) {
  Numbers numbers;
  for (const ValueId value : values) numbers.push_back(value.index);
  return numbers;
}

ValueTuple value_tuple(const Trace& trace, ValueId value) {
  const TensorType& type = trace.module().type(value);
  return py::make_tuple(value.index, shape_tuple(type.shape), py::str(std::string(numpy_name(type.dtype))));
}

ValueTuple emit(Trace& trace, const std::string& name, const Numbers& operands, const AttributesLike& attrs,
                const std::optional<ShapeLike>& shape, const std::optional<std::string>& dtype,
                const std::optional<std::string>& region_op) {
  const std::vector<ValueId> values = values_from_python(trace, operands);
  std::vector<TypeId> declared;
  if (shape || dtype) {
    // Either may be missing: the first operand then gives it.
    if (values.empty() && !(shape && dtype)) fail<ShapeError>(name, "an op without operands needs a shape and a dtype");
    const Dims dims = shape ? shape_from_python(*shape) : trace.module().type(values[0]).shape;
    const DType element = dtype ? dtype_from_python(*dtype) : trace.module().type(values[0]).dtype;
    declared.push_back(trace.context().tensor(element, dims));
  }
  return value_tuple(trace, trace.emit(name, values, attributes(attrs), declared, region_op ? &*region_op : nullptr));
}

// `types`: (shape, dtype name) of each result where the op does not imply them.
std::vector<ValueTuple> emit_op(Trace& trace, const std::string& name, const Numbers& operands,
                                const AttributesLike& attrs, const std::vector<TypeLike>& types,
                                const std::vector<uint32_t>& regions) {
  std::vector<TypeId> declared;
  for (const auto& [shape, dtype] : types) {
    declared.push_back(trace.context().tensor(dtype_from_python(dtype), shape_from_python(shape)));
  }
  std::vector<RegionId> ids;
  for (const uint32_t region : regions) ids.push_back(RegionId{region});
  const OpId op = trace.emit_op(name, values_from_python(trace, operands), attributes(attrs), declared, ids);
  std::vector<ValueTuple> results;
  for (uint32_t i = 0; i < trace.module().op(op).result_count; ++i) {
    results.push_back(value_tuple(trace, trace.module().result(op, i)));
  }
  return results;
}

// Constraint results that no op uses and that are not among `live`: (value, file, line).
std::vector<std::tuple<uint32_t, std::string, int32_t>> unused_constraints(const Trace& trace, const Numbers& live) {
  const Module& module = trace.module();
  std::vector<bool> used(module.value_count(), false);
  for (ValueId value : values_from_python(trace, live)) used[value.index] = true;
  for (uint32_t op = 1; op < module.op_count(); ++op) {
    for (ValueId operand : module.operands(OpId{op})) used[operand.index] = true;
  }
  for (uint32_t region = 1; region < module.region_count(); ++region) {
    for (ValueId result : module.region(RegionId{region}).results) used[result.index] = true;
  }
  std::vector<std::tuple<uint32_t, std::string, int32_t>> unused;
  // Only what main reaches: regions that vmap has consumed still hold their constraints.
  std::vector<RegionId> reached{trace.body()};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (OpId op : module.region(reached[i]).ops) {
      reached.insert(reached.end(), module.regions(op).begin(), module.regions(op).end());
      if (!module.op(op).def->traits.constraint || used[module.result(op).index]) continue;
      const ResolvedSource source = module.context().resolve(module.op(op).loc);
      unused.emplace_back(module.result(op).index, source.file, source.line);
    }
  }
  return unused;
}

// The ops of a region with a new leading dim, appended here: (value, whether it has that dim) per result.
std::vector<std::pair<uint32_t, bool>> batch(Trace& trace, uint32_t region, const Numbers& arguments,
                                             const std::vector<bool>& batched, int64_t size) {
  Builder builder = trace.builder_here();
  if (region == 0 || region >= trace.module().region_count()) {
    fail<ShapeError>("trace", "a region must be one of this program", std::to_string(region));
  }
  const BatchedResults results =
      append_batched(builder, RegionId{region}, values_from_python(trace, arguments), batched, size);
  std::vector<std::pair<uint32_t, bool>> list;
  for (size_t i = 0; i < results.values.size(); ++i) list.emplace_back(results.values[i].index, results.batched[i]);
  return list;
}

using ProgramTuple = std::tuple<std::string, int64_t, std::string>;  // name, number of its derivative, text
using DerivativeTuple = std::tuple<ProgramTuple, ProgramTuple, std::vector<bool>, std::vector<bool>>;
using DerivativeFromPython = std::function<DerivativeTuple(int64_t)>;

// The texts of a derivative, by its number, as regions: forward, backward, has_gradient, has_cotangent.
DerivativeSource derivative_source(const DerivativeFromPython& derivative) {
  return [derivative](Module& module, int64_t number) {
    const auto [forward, backward, has_gradient, has_cotangent] = derivative(number);
    const auto program = [&](const ProgramTuple& given) {
      const auto& [name, own, text] = given;
      // A derivative was traced on its own, and comes as text in this program's context.
      const RegionId body = import_program(parse(text, module.shared_context()), module);
      return GivenProgram{.name = name, .derivative = own, .body = body};
    };
    return GivenDerivative{.forward = program(forward),
                           .backward = program(backward),
                           .has_gradient = has_gradient,
                           .has_cotangent = has_cotangent};
  };
}

// The region ends even where a result is refused: the caller may go on recording around it.
void end_region(Trace& trace, const Numbers& results) {
  std::vector<ValueId> values;
  try {
    values = values_from_python(trace, results);
  } catch (...) {
    trace.end_region({});
    throw;
  }
  trace.end_region(values);
}

std::shared_ptr<Module> finish(Trace& trace, const Numbers& outputs, const std::vector<ShardingPtr>& shardings) {
  const std::vector<ValueId> values = values_from_python(trace, outputs);
  std::vector<ShardingId> ids(values.size());
  for (size_t i = 0; i < shardings.size() && i < values.size(); ++i) {
    if (!shardings[i]) continue;
    // A sharding of main's result is its own, beside that of the value: one value may be returned twice.
    verify(*shardings[i], trace.module().type(values[i]).shape);
    trace.module().declare_mesh(shardings[i]->mesh);
    ids[i] = trace.context().intern(*shardings[i]);
  }
  return trace.finish(values, std::move(ids));
}

std::pair<std::string, int32_t> location_of(const Trace& trace, uint32_t index) {
  const Value& value = trace.module().value(trace.checked(index));
  const ResolvedSource source = trace.context().resolve(value.op ? trace.module().op(value.op).loc : value.loc);
  return {source.file, source.line};
}

}  // namespace

void bind_trace(py::module_& module) {
  py::class_<Trace>(module, "Trace")
      .def(py::init<const std::string&>())
      .def(
          "argument",
          [](Trace& trace, const ShapeLike& shape, const std::string& dtype, const std::string& name,
             const ShardingPtr& sharding) {
            const TypeId type = trace.context().tensor(dtype_from_python(dtype), shape_from_python(shape));
            return trace.argument(type, name, sharding ? &*sharding : nullptr).index;
          },
          py::arg("shape"), py::arg("dtype"), py::arg("name") = "", py::arg("sharding") = py::none())
      .def("emit", &emit, py::arg("name"), py::arg("operands"), py::arg("attrs") = py::none(),
           py::arg("shape") = py::none(), py::arg("dtype") = py::none(), py::arg("region_op") = py::none())
      .def("emit_op", &emit_op, py::arg("name"), py::arg("operands"), py::arg("attrs") = py::none(),
           py::arg("types") = std::vector<TypeLike>(), py::arg("regions") = std::vector<uint32_t>())
      .def(
          "capture",
          [](Trace& trace, uint32_t region) {
            std::vector<std::pair<uint32_t, uint32_t>> captured;  // (value, argument of the region)
            for (const auto& [value, argument] : trace.capture(RegionId{region})) {
              captured.emplace_back(value.index, argument.index);
            }
            return captured;
          },
          py::arg("region"))
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
      .def(
          "vjp",
          [](Trace& trace, const Numbers& outputs, const Numbers& cotangents, const Numbers& wrt,
             const std::optional<DerivativeFromPython>& derivative) {
            return numbers_of(trace.append_gradients(
                values_from_python(trace, outputs), values_from_python(trace, cotangents),
                values_from_python(trace, wrt), derivative_source(derivative.value_or(DerivativeFromPython()))));
          },
          py::arg("outputs"), py::arg("cotangents"), py::arg("wrt"), py::arg("derivative") = py::none())
      .def("import_text", [](Trace& trace, const std::string& text) { return trace.import_text(text).index; })
      .def("begin_region", [](Trace& trace) { return trace.begin_region().index; })
      .def("region_argument",
           [](Trace& trace, const ShapeLike& shape, const std::string& dtype) {
             return trace.region_argument(trace.context().tensor(dtype_from_python(dtype), shape_from_python(shape)))
                 .index;
           })
      .def("end_region", &end_region)
      .def("batch", &batch)
      .def("variable", [](Trace& trace, uint32_t value) { return trace.variable(trace.checked(value)).index; })
      .def("substitute",
           [](Trace& trace, const std::vector<uint32_t>& variables, const std::vector<uint32_t>& values) {
             std::vector<ValueId> stand_ins, known;
             for (const uint32_t variable : variables) stand_ins.push_back(ValueId{variable});
             for (const uint32_t value : values) known.push_back(trace.checked(value));
             trace.substitute(stand_ins, known);
           })
      .def("type_of", [](const Trace& trace, uint32_t value) { return trace.module().type(trace.checked(value)); })
      .def("location", &location_of)
      .def("unused_constraints", &unused_constraints)
      .def("finish", &finish, py::arg("outputs"), py::arg("shardings") = std::vector<ShardingPtr>())
      .def_property_readonly("op_count", [](const Trace& trace) { return trace.module().op_count() - 1; });
}

}  // namespace shardwise
