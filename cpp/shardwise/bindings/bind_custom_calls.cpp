// SPDX-License-Identifier: Apache-2.0
//
// Custom calls that Python defines: functions of arrays as kernels, and of traced values as gradients and batching
// rules. Each may be called from any thread, with or without the GIL.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/bindings/attributes.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/casters.h"
#include "shardwise/bindings/gil.h"
#include "shardwise/bindings/source_frame.h"
#include "shardwise/compiler/trace.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rule/rule_attribute.h"
#include "shardwise/ops/shared/custom_call_def.h"
#include "shardwise/text/rule_parser.h"
#include "shardwise/transforms/batch/batch.h"

namespace py = pybind11;

namespace shardwise {
namespace {

// As stubs show it: Callable[..., object].
using PyCallable = py::typing::Callable<py::object(py::ellipsis)>;
using Callback = std::shared_ptr<const py::function>;

// Kernels and definitions may go without the GIL.
Callback shared_callback(py::function function) {
  return {new py::function(std::move(function)), [](const py::function* held) {
            const WithGil gil;
            delete held;
          }};
}

AttributeDict options_of(const Attrs& attrs) {
  const auto* options = attrs.find<AttrDict>("mhlo.backend_config");
  return attributes_to_python(options == nullptr ? std::vector<NamedAttribute>() : options->fields);
}

py::tuple type_tuple(const TensorType& type) {
  return py::make_tuple(shape_tuple(type.shape), std::string(numpy_name(type.dtype)));
}

// ---- kernels and rules ---------------------------------------------------------------------------------------------

bool has_own_types(const OpView& op, const KernelTypes& types) {
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (types.operands[i] != op.operand_type(i)) return false;
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    if (types.results[i] != op.result_type(i)) return false;
  }
  return true;
}

// Shards are never merged: the function sees the block of one device.
std::optional<Kernel> prepare_callback(const Callback& run, const OpView& op, const KernelTypes& types) {
  // The runtime also offers the types of one call for several shards, and runs them
  // one by one without a kernel for that.
  if (!has_own_types(op, types)) return std::nullopt;
  std::vector<TensorType> results(types.results.begin(), types.results.end());
  return [run, attrs = op.attrs(), operands = op.operand_count(), results = std::move(results),
          place = op.module().context().location_text(op.loc())](KernelContext& context) {
    const WithGil held;
    py::list arrays, result_types;
    for (size_t i = 0; i < operands; ++i) arrays.append(to_numpy(context.operand(i)));
    for (const TensorType& type : results) result_types.append(type_tuple(type));
    const py::list made = (*run)(arrays, result_types, options_of(attrs), place);
    for (size_t i = 0; i < results.size(); ++i) {
      // Copied: the function may return a view of its operands, or an array that it keeps.
      context.allocate_result(i).copy_from(from_numpy(made[i].cast<py::array>()));
    }
  };
}

ShardingRule rule_of_callback(const Callback& rule, const OpView& op) {
  std::string text;
  {
    const WithGil held;
    py::list operands, results;
    for (size_t i = 0; i < op.operand_count(); ++i) operands.append(shape_tuple(op.operand_type(i).shape));
    for (size_t i = 0; i < op.result_count(); ++i) results.append(shape_tuple(op.result_type(i).shape));
    text = (*rule)(operands, results).cast<std::string>();
  }
  const RuleAttr attribute = parse_rule(text);
  verify(attribute, op);
  return to_rule(attribute);
}

// ---- functions of traced values ------------------------------------------------------------------------------------

// Records what a Python function does in a program of its own, and appends that to the builder's region.
class Recording {
 public:
  explicit Recording(Builder& builder) : builder_(builder) {
    // On the context of the builder's module: GraphCopy copies ids of types and attributes, which belong to a context.
    auto made = std::make_unique<Trace>("rule", &current_location, builder.module().shared_context());
    trace_ = made.get();
    core_ = py::cast(std::move(made));
  }

  const py::object& core() const { return core_; }

  // An argument for a value of the builder's module, as (number, shape, dtype name).
  py::tuple argument(ValueId value) {
    const TypeId type = builder_.module().value(value).type;
    const ValueId own = trace_->argument(type, "", nullptr);
    outer_.push_back(value);
    return py::make_tuple(own.index) + type_tuple(builder_.module().context().type(type));
  }

  // The values of the builder's module for results of the recorded program; none for None.
  std::vector<ValueId> append(const std::vector<std::optional<uint32_t>>& results) {
    std::vector<ValueId> recorded;
    for (const auto& result : results) {
      if (result) recorded.push_back(trace_->operand(*result));
    }
    const std::shared_ptr<Module> module = trace_->finish(recorded, {});
    const Region& body = module->region(module->main().body);
    // The function may have annotated a value, on a mesh that the program does not have yet.
    for (const MeshPtr& mesh : module->meshes) builder_.module().declare_mesh(mesh);
    GraphCopy copy(*module, builder_.module());
    for (size_t i = 0; i < outer_.size(); ++i) copy.map(body.arguments[i], outer_[i]);
    copy.ops(module->main().body, builder_.region());
    std::vector<ValueId> values;
    size_t next = 0;
    for (const auto& result : results) values.push_back(result ? copy(body.results[next++]) : ValueId{});
    return values;
  }

 private:
  Builder& builder_;
  Trace* trace_;
  py::object core_;  // owns the trace
  std::vector<ValueId> outer_;
};

void vjp_of_callback(const Callback& vjp, VjpContext& context) {
  const OpView op = context.op();
  const size_t operand_count = op.operand_count(), result_count = op.result_count();
  // A copy: recording adds ops, which moves those of the module.
  const Attrs attrs = op.attrs();
  const WithGil held;
  Recording recording(context.builder());
  py::list operands, results, cotangents;
  for (size_t i = 0; i < operand_count; ++i) operands.append(recording.argument(context.operand(i)));
  for (size_t i = 0; i < result_count; ++i) results.append(recording.argument(context.result(i)));
  for (size_t i = 0; i < result_count; ++i) cotangents.append(recording.argument(context.cotangent(i)));
  const py::object made = (*vjp)(recording.core(), operands, results, cotangents, options_of(attrs));
  const std::vector<ValueId> values = recording.append(made.cast<std::vector<std::optional<uint32_t>>>());
  for (size_t i = 0; i < operand_count; ++i) {
    // None is a zero cotangent, and one that nobody asks for would be dead ops.
    if (values.at(i) && context.needs(i)) context.set(i, values[i]);
  }
}

void batch_of_callback(const Callback& batch, BatchContext& context) {
  const OpView op = context.op();
  const size_t operand_count = op.operand_count();
  const Attrs attrs = op.attrs();
  const WithGil held;
  Recording recording(context.builder());
  py::list operands, batched, result_types;
  for (size_t i = 0; i < operand_count; ++i) {
    operands.append(recording.argument(context.operand(i)));
    batched.append(context.is_batched(i));
  }
  for (size_t i = 0; i < op.result_count(); ++i) result_types.append(type_tuple(op.result_type(i)));
  const py::object made =
      (*batch)(recording.core(), context.size(), batched, operands, result_types, options_of(attrs));
  std::vector<std::optional<uint32_t>> results;
  std::vector<bool> has_dim;
  for (const auto& [value, is_batched] : made.cast<std::vector<std::pair<uint32_t, bool>>>()) {
    results.emplace_back(value);
    has_dim.push_back(is_batched);
  }
  const std::vector<ValueId> values = recording.append(results);
  for (size_t i = 0; i < values.size(); ++i) {
    // A result without the dim is the same for all examples.
    context.set_result(i, has_dim[i] ? values[i] : append_leading_dim(context.builder(), values[i], context.size()));
  }
}

std::function<void(VjpContext&)> vjp_function(py::function vjp) {
  return [callback = shared_callback(std::move(vjp))](VjpContext& context) { vjp_of_callback(callback, context); };
}

void register_python_call(const std::string& name, PyCallable run, std::optional<PyCallable> rule,
                          std::optional<PyCallable> vjp, std::optional<PyCallable> batch) {
  CustomCallDef def{.name = name,
                    .no_vjp_reason = "pass vjp= to sw.register_custom_call",
                    .propagates = true,
                    .is_replaceable = true};
  def.prepare = [run = shared_callback(std::move(run))](const OpView& op, const KernelTypes& types) {
    return prepare_callback(run, op, types);
  };
  if (rule) {
    def.rule = [callback = shared_callback(std::move(*rule))](const OpView& op) {
      return rule_of_callback(callback, op);
    };
  }
  if (vjp) def.vjp = vjp_function(std::move(*vjp));
  if (batch) {
    def.batch = [callback = shared_callback(std::move(*batch))](BatchContext& context) {
      batch_of_callback(callback, context);
    };
  }
  register_custom_call(std::move(def));
}

}  // namespace

void bind_custom_calls(py::module_& module) {
  module.def("register_custom_call", &register_python_call, py::arg("name"), py::arg("run"),
             py::arg("rule") = py::none(), py::arg("vjp") = py::none(), py::arg("batch") = py::none());
  module.def("set_custom_call_vjp",
             [](const std::string& name, PyCallable vjp) { set_custom_call_vjp(name, vjp_function(std::move(vjp))); });
  module.def("is_custom_call", [](const std::string& name) { return find_custom_call(name) != nullptr; });
}

}  // namespace shardwise
