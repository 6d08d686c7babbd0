// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/bindings/attributes.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/casters.h"
#include "shardwise/bindings/source_frame.h"
#include "shardwise/compiler/region_program.h"
#include "shardwise/compiler/trace.h"
#include "shardwise/compiler/type_change.h"
#include "shardwise/text/parser.h"
#include "shardwise/transforms/gradient/name_gradients.h"
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
  const std::vector<ValueId> values = trace.operands(operands);
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
  const OpId op = trace.emit_op(name, trace.operands(operands), attributes(attrs), declared, ids);
  std::vector<ValueTuple> results;
  for (uint32_t i = 0; i < trace.module().op(op).result_count; ++i) {
    results.push_back(value_tuple(trace, trace.module().result(op, i)));
  }
  return results;
}

using ProgramTuple = std::tuple<std::string, int64_t, std::string>;  // name, number of its derivative, text
using DerivativeTuple = std::tuple<ProgramTuple, ProgramTuple, std::vector<bool>, std::vector<bool>>;
// Name, regions of this program (a forward and a backward one, or one of tangents), has_gradient, has_cotangent,
// is_closed_over.
using RecordedTuple = std::tuple<std::string, Numbers, std::vector<bool>, std::vector<bool>, std::vector<bool>>;
using DerivativeFromPython = std::function<std::variant<DerivativeTuple, RecordedTuple>(int64_t)>;
using DerivativeLike = std::optional<DerivativeFromPython>;

GivenDerivative imported(Module& module, const DerivativeTuple& given) {
  const auto& [forward, backward, has_gradient, has_cotangent] = given;
  const auto program = [&](const ProgramTuple& part) {
    const auto& [name, own, text] = part;
    // A derivative was traced on its own, and comes as text in this program's context.
    const LocId here = current_location(module.context());
    const RegionId body = import_program(parse(text, module.shared_context()), module, here);
    return GivenProgram{.name = name, .derivative = own, .body = body};
  };
  return GivenDerivative{.forward = program(forward),
                         .backward = program(backward),
                         .has_gradient = has_gradient,
                         .has_cotangent = has_cotangent};
}

GivenDerivative recorded(const RecordedTuple& given) {
  const auto& [name, regions, has_gradient, has_cotangent, is_closed_over] = given;
  const auto program = [&](uint32_t region) { return GivenProgram{.name = name, .body = RegionId{region}}; };
  GivenDerivative derivative{.has_gradient = has_gradient,
                             .has_cotangent = has_cotangent,
                             .is_closed_over = is_closed_over,
                             .is_reverse_only = regions.size() == 2};
  if (regions.size() == 2) {
    derivative.forward = program(regions.front());
    derivative.backward = program(regions.back());
  } else {
    derivative.tangents = program(regions.at(0));
  }
  return derivative;
}

// Derivatives by their number: texts, or functions that Python records when they are needed.
DerivativeSource derivative_source(const DerivativeLike& derivative) {
  if (!derivative) return {};
  return [derivative](Module& module, int64_t number) {
    const auto given = (*derivative)(number);
    if (const auto* functions = std::get_if<RecordedTuple>(&given)) return recorded(*functions);
    return imported(module, std::get<DerivativeTuple>(given));
  };
}

// (value, whether it has the new dim) of each result
std::vector<std::pair<uint32_t, bool>> batch(Trace& trace, uint32_t region, const Numbers& arguments,
                                             const std::vector<bool>& batched, int64_t size,
                                             const DerivativeLike& derivative,
                                             const std::optional<std::shared_ptr<Mesh>>& named,
                                             const std::vector<std::string>& mesh_axes) {
  const Examples examples{.size = size, .named = named.value_or(nullptr), .mesh_axes = mesh_axes};
  const BatchedResults results =
      trace.append_batch(RegionId{region}, trace.operands(arguments), batched, examples, derivative_source(derivative));
  std::vector<std::pair<uint32_t, bool>> list;
  for (size_t i = 0; i < results.values.size(); ++i) list.emplace_back(results.values[i].index, results.batched[i]);
  return list;
}

std::pair<std::string, int32_t> location_of(const Trace& trace, uint32_t index) {
  const ResolvedSource source = trace.source_of(trace.checked(index));
  return {source.file, source.line};
}

// (value, argument of the region)
std::vector<std::pair<uint32_t, uint32_t>> capture(Trace& trace, uint32_t region) {
  std::vector<std::pair<uint32_t, uint32_t>> captured;
  for (const auto& [value, argument] : trace.capture(RegionId{region})) {
    captured.emplace_back(value.index, argument.index);
  }
  return captured;
}

Numbers vjp(Trace& trace, const Numbers& outputs, const Numbers& cotangents, const Numbers& wrt,
            const DerivativeLike& derivative) {
  return numbers_of(trace.append_gradients(trace.operands(outputs), trace.operands(cotangents), trace.operands(wrt),
                                           derivative_source(derivative)));
}

Numbers jvp(Trace& trace, const Numbers& outputs, const Numbers& wrt, const Numbers& tangents,
            const DerivativeLike& derivative) {
  return numbers_of(trace.append_tangents(trace.operands(outputs), trace.operands(wrt), trace.operands(tangents),
                                          derivative_source(derivative)));
}

// A region of captured values, which it names, and of cotangents of the outputs.
std::pair<uint32_t, Numbers> pullback(Trace& trace, const Numbers& outputs, const Numbers& wrt,
                                      const DerivativeLike& derivative) {
  const LinearPart part =
      trace.append_pullback(trace.operands(outputs), trace.operands(wrt), derivative_source(derivative));
  return {part.region.index, numbers_of(part.captured)};
}

uint32_t transpose(Trace& trace, uint32_t region, size_t captured, const DerivativeLike& derivative) {
  return trace.transpose(RegionId{region}, captured, derivative_source(derivative)).index;
}

// Of the ops after the first `op_count`.
void name_gradients_of(Trace& trace, const Numbers& gradients, const std::vector<std::string>& names,
                       uint32_t op_count) {
  name_gradients(trace.module(), trace.operands(gradients), names, op_count + 1);
}

std::pair<std::string, int32_t> location_of_change(const Trace& trace, uint32_t carry, uint32_t result) {
  const ValueId made =
      first_change_of_type(trace.module(), trace.current(), trace.checked(carry), trace.checked(result));
  return location_of(trace, made.index);
}

void bind_derivatives(py::class_<Trace>& traces) {
  traces.def("vjp", &vjp, py::arg("outputs"), py::arg("cotangents"), py::arg("wrt"), py::arg("derivative") = py::none())
      .def("jvp", &jvp, py::arg("outputs"), py::arg("wrt"), py::arg("tangents"), py::arg("derivative") = py::none())
      .def("pullback", &pullback, py::arg("outputs"), py::arg("wrt"), py::arg("derivative") = py::none())
      .def("transpose", &transpose, py::arg("region"), py::arg("captured"), py::arg("derivative") = py::none())
      .def(
          "push_forward",
          [](Trace& trace, uint32_t region, size_t variables, const DerivativeLike& derivative) {
            return trace.append_push_forward(RegionId{region}, variables, derivative_source(derivative)).index;
          },
          py::arg("region"), py::arg("variables"), py::arg("derivative") = py::none())
      .def("append_region",
           [](Trace& trace, uint32_t region, const Numbers& arguments) {
             return numbers_of(trace.append_region(RegionId{region}, trace.operands(arguments)));
           })
      .def("program_of",
           [](const Trace& trace, uint32_t region) { return program_of_region(trace.module(), RegionId{region}); });
}

}  // namespace

void bind_trace(py::module_& module) {
  py::class_<Trace> traces(module, "Trace");
  bind_derivatives(traces);
  traces.def(py::init([](const std::string& name) { return std::make_unique<Trace>(name, &current_location); }))
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
      .def("capture", &capture, py::arg("region"))
      .def("set_sharding", [](Trace& trace, uint32_t value,
                              const TensorSharding& sharding) { trace.set_sharding(trace.checked(value), sharding); })
      .def("constant",
           [](Trace& trace, const py::array& array) {
             const Attrs attrs{{"value", DenseAttr{constant_from_python(array)}}};
             return value_tuple(trace, trace.emit("stablehlo.constant", {}, attrs, {}, nullptr));
           })
      .def(
          "constrain",
          [](Trace& trace, uint32_t value, const TensorSharding& sharding, const std::string& cause) {
            return trace.constrain(trace.checked(value), sharding, cause).index;
          },
          py::arg("value"), py::arg("sharding"), py::arg("cause") = "")
      .def("set_name",
           [](Trace& trace, uint32_t value, const std::string& name) { trace.set_name(trace.checked(value), name); })
      .def("name_gradients", &name_gradients_of, py::arg("gradients"), py::arg("names"), py::arg("op_count"))
      .def(
          "import_text",
          [](Trace& trace, const std::string& text, const std::vector<std::string>& arguments) {
            return trace.import_text(text, arguments).index;
          },
          py::arg("text"), py::arg("arguments") = std::vector<std::string>())
      .def("begin_region", [](Trace& trace) { return trace.begin_region().index; })
      .def("region_argument",
           [](Trace& trace, const ShapeLike& shape, const std::string& dtype) {
             return trace.region_argument(trace.context().tensor(dtype_from_python(dtype), shape_from_python(shape)))
                 .index;
           })
      .def("end_region", [](Trace& trace, const Numbers& results) { trace.end_region(results); })
      .def("batch", &batch, py::arg("region"), py::arg("arguments"), py::arg("batched"), py::arg("size"),
           py::arg("derivative") = py::none(), py::arg("named") = py::none(),
           py::arg("mesh_axes") = std::vector<std::string>())
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
      .def("location_of_change", &location_of_change, py::arg("carry"), py::arg("result"))
      .def("set_matches_varying", &Trace::set_matches_varying, py::arg("matches"))
      .def_property_readonly("matches_varying", &Trace::matches_varying)
      .def("undeclared_axes",
           [](const Trace& trace, uint32_t result, const std::vector<std::string>& around) {
             return trace.undeclared_axes(trace.checked(result), around);
           })
      .def("count_reads", [](const Trace& trace, const Numbers& constraints,
                             const Numbers& live) { return trace.count_reads(constraints, trace.operands(live)); })
      .def(
          "finish",
          [](Trace& trace, const Numbers& outputs, const std::vector<ShardingPtr>& shardings) {
            return trace.finish(trace.operands(outputs), shardings);
          },
          py::arg("outputs"), py::arg("shardings") = std::vector<ShardingPtr>())
      .def_property_readonly("op_count", [](const Trace& trace) { return trace.module().op_count() - 1; });
}

}  // namespace shardwise
