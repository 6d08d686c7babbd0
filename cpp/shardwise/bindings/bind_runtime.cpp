// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <optional>
#include <unordered_set>

#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/base/settings.h"
#include "shardwise/base/text.h"
#include "shardwise/base/thread_pool.h"
#include "shardwise/bindings/bind_program.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/casters.h"
#include "shardwise/bindings/gil.h"
#include "shardwise/bindings/signal_check.h"
#include "shardwise/compiler/driver.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/build/decomposition.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/runtime/counting_communicator.h"
#include "shardwise/runtime/executor.h"
#include "shardwise/runtime/memory/buffer_pool.h"
#include "shardwise/runtime/processes/process_communicator.h"
#include "shardwise/runtime/sharded_array.h"
#include "shardwise/runtime/virtual_communicator.h"
#include "shardwise/transforms/decompose.h"

namespace py = pybind11;

namespace shardwise {
namespace {

using ArrayPtr = std::shared_ptr<ShardedArray>;

// An Executable with the records of its last run that kept any.
struct PyExecutable {
  PyExecutable(const CompileUnit& unit, const DeviceSet& devices)
      : executable(unit.module, unit.propagated->meshes.front(), {.devices = devices}), local(unit.module) {}
  Executable executable;
  std::shared_ptr<const Module> local;
  std::vector<StepTiming> trace;
  CountingCommunicator::Received received;  // in its last counted run
};

void collect_owners(const Shards& shards, std::unordered_set<const void*>& owners) {
  // One buffer holds all shards.
  if (shards.is_stacked()) {
    owners.insert(shards.stacked().owner().get());
    return;
  }
  for (int64_t i = 0; i < shards.count(); ++i) owners.insert(shards[i].owner().get());
}

// The same array with other shards.
ArrayPtr with_shards(const ShardedArray& array, Shards shards, const DeviceSet& devices) {
  return std::make_shared<ShardedArray>(array.dtype(), array.shape(), array.layout(), std::move(shards), devices);
}

// A copy of only the shards: those of a few devices would keep the whole array alive.
ArrayPtr with_own_memory(const ShardedArray& array) {
  const Shards& shards = array.shards();
  return with_shards(array, Shards(shards.axes(), owned_copy(shards.stack())), array.devices());
}

// A result must not change when the user writes an array that was an argument: a view of one becomes a copy.
ArrayPtr own_result(ShardedArray result, const std::unordered_set<const void*>& borrowed) {
  std::unordered_set<const void*> owners;
  if (!borrowed.empty()) collect_owners(result.shards(), owners);
  const bool shared = std::ranges::any_of(owners, [&](const void* owner) { return borrowed.contains(owner); });
  return shared ? with_own_memory(result) : std::make_shared<ShardedArray>(std::move(result));
}

// Only an argument of a call may be unreduced.
void verify_of_array(const TensorSharding& sharding, const Dims& shape, const DeviceSet& devices,
                     bool for_call = false) {
  verify(sharding, shape);
  if (!devices.is_all()) expect_uncut("array", *sharding.mesh, devices.pinned, axes_of_dims(sharding.dims));
  if (for_call || sharding.unreduced.empty()) return;
  fail<ShardingError>("array", "an array cannot be left unreduced", short_text(sharding),
                      "drop unreduced= or shard a dim over these axes");
}

ArrayPtr owned_by(const DeviceSet& devices, ShardedArray array) {
  if (devices.is_all()) return std::make_shared<ShardedArray>(std::move(array));
  return with_shards(array, array.owned_by(devices), devices);
}

// `borrow` lets the shards be views of the user's memory, which is right for the duration of a call only. Unreduced
// arguments, too, are for calls only.
ArrayPtr scatter_numpy(const py::array& array, const TensorSharding& sharding, bool poison, bool borrow,
                       const DeviceSet& devices) {
  const NdArray view = from_numpy(array);
  verify_of_array(sharding, view.shape(), devices, borrow);
  const WithoutGil released;
  const PaddingFill fill = poison ? PaddingFill::kPoison : PaddingFill::kZero;
  // The array is copied once: before it is cut, if all its shards stay here, and else only the shards of this process.
  const bool copies_whole = !borrow && devices.is_all();
  const ArrayPtr placed =
      owned_by(devices, scatter(copies_whole ? owned_copy(view) : view, sharding.closed(), {}, fill));
  return borrow || copies_whole ? placed : with_own_memory(*placed);
}

// Makes the array of one process of several; `array` stacks the shards of its devices, as `stack` returns them.
ArrayPtr from_stack(const py::array& array, const ShapeLike& shape, const TensorSharding& sharding,
                    const DeviceSet& devices) {
  const Dims whole = shape_from_python(shape);
  verify_of_array(sharding, whole, devices);
  const ArrayLayoutPtr layout = array_layout(sharding.closed(), whole);
  const AxisList axes = varying_axes(layout->placement);
  const NdArray stack = owned_copy(from_numpy(array));
  return std::make_shared<ShardedArray>(stack.dtype(), whole, layout, Shards(devices.free(axes), stack), devices);
}

// Makes the array of one process from memory that nothing else uses, which is not copied: `blocks` has a row-major block,
// padding included, for each distinct shard of its devices, in the order of the first device that holds it.
ArrayPtr from_blocks(const py::array& blocks, const ShapeLike& shape, const TensorSharding& sharding,
                     const DeviceSet& devices) {
  const Dims whole = shape_from_python(shape);
  verify_of_array(sharding, whole, devices);
  const ArrayLayoutPtr layout = array_layout(sharding.closed(), whole);
  AxisList axes = devices.free(varying_axes(layout->placement));
  const Dims block = layout->placement.local_shape();
  Dims expected{product(axes)};
  expected.insert(expected.end(), block.begin(), block.end());
  const NdArray rows = from_numpy(blocks);
  check_internal(rows.shape() == expected && rows.is_contiguous(), "from_blocks: row-major blocks of the shards");
  Dims stacked;
  for (const auto& axis : axes) stacked.push_back(axis.size);
  stacked.insert(stacked.end(), block.begin(), block.end());
  Dims strides = row_major_strides(stacked, item_size(rows.dtype()));
  const NdArray stack(rows.dtype(), std::move(stacked), std::move(strides), rows.data(), rows.owner());
  return std::make_shared<ShardedArray>(rows.dtype(), whole, layout, Shards(std::move(axes), stack), devices);
}

ArrayPtr own_part(const py::array& part, const ShapeLike& shape, const TensorSharding& sharding,
                  const DeviceSet& devices) {
  const Dims whole = shape_from_python(shape);
  verify_of_array(sharding, whole, devices);
  return std::make_shared<ShardedArray>(from_own_part(owned_copy(from_numpy(part)), whole, sharding.closed(), devices));
}

using Processes = std::optional<std::shared_ptr<ProcessCommunicator>>;  // None: this one alone

NdArray gather_from(const ShardedArray& array, const Processes& processes) {
  if (array.devices().is_all()) return gather(array);
  check_internal(processes.has_value(), "gather: the communicator of an array in several processes");
  return gather(array, **processes);
}

// Whether the shards of this process are all of the array.
bool is_whole_here(const ShardedArray& array) {
  return !overlaps(varying_axes(array.placement()), array.devices().pinned);
}

// `processes` reaches the shards of the other processes, if there are any. They all call this.
py::array gather_numpy(const ShardedArray& array, const Processes& processes) {
  return to_numpy(without_gil([&] { return gather_from(array, processes); }));
}

ArrayPtr reshard(const ShardedArray& array, const TensorSharding& sharding, bool for_call, const Processes& processes,
                 const DeviceSet& devices) {
  verify_of_array(sharding, array.shape(), devices, for_call);
  const WithoutGil released;
  return owned_by(devices, scatter(gather_from(array, processes), sharding.closed()));
}

// The list loses the donated arguments, so that it does not hold their memory during the run.
std::vector<ArrayPtr> run(PyExecutable& self, py::list arguments, bool faithful, bool poison, bool trace,
                          const std::vector<size_t>& borrowed, const std::vector<size_t>& donated,
                          const Processes& processes, bool count) {
  std::vector<ShardedArray> values;
  values.reserve(arguments.size());
  for (const py::handle argument : arguments) values.push_back(argument.cast<const ShardedArray&>());
  std::unordered_set<const void*> borrowed_owners;
  // Before the run, which takes the arguments.
  for (size_t i : borrowed) collect_owners(values.at(i).shards(), borrowed_owners);
  for (size_t i : donated) arguments[i] = py::none();
  std::vector<StepTiming> rows;  // replace those of the last run only when this one succeeds
  const RunOptions options{.faithful = faithful,
                           .poison = poison,
                           .donated = donated,
                           .trace = trace ? &rows : nullptr,
                           .between_ops = SignalCheck()};
  std::vector<ArrayPtr> results;
  {
    const WithoutGil released;
    VirtualCommunicator virtual_mesh;
    Communicator& devices = processes ? static_cast<Communicator&>(**processes) : virtual_mesh;
    CountingCommunicator counter(devices, self.local->meshes.front());
    Communicator& counted = count ? static_cast<Communicator&>(counter) : devices;
    for (ShardedArray& result : self.executable.run(counted, std::move(values), options)) {
      results.push_back(own_result(std::move(result), borrowed_owners));
    }
    if (count) self.received = counter.received();
  }
  if (trace) self.trace = std::move(rows);
  return results;
}

// Whether the first arguments are arrays as the program wants them.
bool accepts(const PyExecutable& self, const py::list& arguments) {
  size_t i = 0;
  for (const py::handle argument : arguments) {
    if (!py::isinstance<ShardedArray>(argument)) return false;
    if (!self.executable.accepts(i++, argument.cast<const ShardedArray&>())) return false;
  }
  return true;
}

// Runs a program with global shapes as if its annotations were not there: the reference for partitioned runs.
std::vector<py::array> run_unpartitioned(const std::shared_ptr<Module>& global,
                                         const std::vector<py::array>& arguments) {
  auto program = std::make_shared<Module>(*global);
  // Ops that others make up have no kernel, and `legalize` has not seen this program.
  decompose_ops(*program, is_composed);
  const std::unique_ptr<Executable> executable = Executable::unpartitioned(std::move(program));
  // Python checks the arguments of calls; here only a mistake of ours can differ.
  check_internal(arguments.size() == executable->argument_count(), "run_unpartitioned: an array for each argument");
  std::vector<ShardedArray> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    values.push_back(scatter(from_numpy(arguments[i]), executable->argument_placement(i)));
  }
  VirtualCommunicator devices;
  const std::vector<ShardedArray> results =
      without_gil([&] { return executable->run(devices, std::move(values), {.between_ops = SignalCheck()}); });
  std::vector<py::array> arrays;
  for (const ShardedArray& result : results) arrays.push_back(to_numpy(owned_copy(gather(result))));
  return arrays;
}

// The op at its line, and its operand: `"shardwise.all_gather" of tensor<4x8xf32> (at train.py:31)`.
std::string op_text(const PyExecutable& self, uint32_t number) {
  // Number 0 is "no op" in every module.
  if (number == 0 || number >= self.local->op_count()) throw py::index_error("a program has no such op");
  const OpView op(*self.local, OpId{number});
  const std::string operand = op.operand_count() == 0 ? "" : " of " + op.operand_type(0).text();
  const std::string location = self.local->context().location_text(op.loc());
  return str(op.name(), operand, location.empty() ? "" : " (at " + location + ")");
}

// (the bytes at the peak, of arguments, of results, what is alive at the peak, and at each moment: values of the local
// program, with bytes)
py::tuple memory(const PyExecutable& self, bool per_device, const std::vector<size_t>& donated) {
  const MemoryUse use =
      without_gil([&] { return self.executable.memory({.per_device = per_device, .donated = donated}); });
  py::list rows;
  for (const LiveBuffers& buffers : use.at_peak) {
    rows.append(py::make_tuple(value_view(self.local, buffers.value), buffers.bytes));
  }
  py::list moments;
  for (const LiveMoment& moment : use.timeline) {
    moments.append(py::make_tuple(value_view(self.local, moment.value), moment.bytes));
  }
  return py::make_tuple(use.peak_bytes, use.argument_bytes, use.result_bytes, rows, moments);
}

// How many steps of the plan the rehearsal of `memory` runs: a count of its work.
int64_t rehearsed_steps(const PyExecutable& self, bool per_device) {
  return without_gil([&] { return self.executable.memory({.per_device = per_device}); }).steps;
}

py::list trace_rows(const PyExecutable& self) {
  py::list rows;
  for (const StepTiming& row : self.trace) {
    const ResolvedSource source = self.local->context().resolve(row.loc);
    rows.append(py::dict(py::arg("op") = std::string(row.op), py::arg("fused_ops") = row.fused_ops,
                         py::arg("shards") = row.shards, py::arg("start_ns") = row.start_ns,
                         py::arg("duration_ns") = row.duration_ns, py::arg("bytes") = row.bytes,
                         py::arg("file") = source.file, py::arg("line") = source.line));
  }
  return rows;
}

// By op of the local program: the bytes that each device received in the last counted run, in logical order.
py::dict received_bytes(const PyExecutable& self) {
  py::dict rows;
  for (const auto& [op, bytes] : self.received) rows[py::int_(op.index)] = bytes;
  return rows;
}

// The features that a choice of AVX-512 kernels needs, in the CPU and enabled by the system.
bool cpu_has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

py::list settings_rows() {
  py::list rows;
  for (const SettingRow& row : settings_table()) {
    rows.append(py::make_tuple(std::string(row.name), std::string(row.default_value), std::string(row.help)));
  }
  return rows;
}

}  // namespace

void bind_runtime(py::module_& module) {
  py::class_<ShardedArray, ArrayPtr>(module, "ShardedArray")
      .def_static("scatter", &scatter_numpy, py::arg("array"), py::arg("sharding"), py::arg("poison") = false,
                  py::arg("borrow") = false, py::arg_v("devices", DeviceSet(), "..."))
      .def_static("from_stack", &from_stack, py::arg("array"), py::arg("shape"), py::arg("sharding"),
                  py::arg("devices"))
      .def_static("from_blocks", &from_blocks, py::arg("blocks"), py::arg("shape"), py::arg("sharding"),
                  py::arg("devices"))
      .def_static("from_own_part", &own_part, py::arg("part"), py::arg("shape"), py::arg("sharding"),
                  py::arg("devices"))
      .def("gather", &gather_numpy, py::arg("processes") = Processes())
      .def("reshard", &reshard, py::arg("sharding"), py::arg("for_call") = false, py::arg("processes") = Processes(),
           py::arg_v("devices", DeviceSet(), "..."))
      .def("stack", [](const ShardedArray& self) { return to_numpy(owned_copy(self.shards().stack())); })
      // Shares the buffers. A call to which one of the two is donated finds a second owner, and does not overwrite them.
      .def("__copy__", [](const ShardedArray& self) { return std::make_shared<ShardedArray>(self); })
      .def_property_readonly("devices", &ShardedArray::devices)
      .def_property_readonly("is_whole_here", &is_whole_here)
      .def_property_readonly("shape", [](const ShardedArray& self) { return shape_tuple(self.shape()); })
      .def_property_readonly("dtype", [](const ShardedArray& self) { return std::string(numpy_name(self.dtype())); })
      .def_property_readonly("sharding", &ShardedArray::sharding)
      .def_property_readonly("nbytes_local",
                             [](const ShardedArray& self) {
                               return element_count(self.placement().local_shape()) * item_size(self.dtype());
                             })
      .def("shard", [](const ShardedArray& self, int64_t logical) {
        return to_numpy(self.shard(self.mesh().device_at(logical)));
      });
  py::class_<PyExecutable>(module, "Executable")
      .def(py::init<const CompileUnit&, const DeviceSet&>(), py::arg("unit"), py::arg_v("devices", DeviceSet(), "..."))
      .def("run", &run, py::arg("arguments"), py::arg("faithful") = false, py::arg("poison") = false,
           py::arg("trace") = false, py::arg("borrowed") = std::vector<size_t>(),
           py::arg("donated") = std::vector<size_t>(), py::arg("processes") = Processes(), py::arg("count") = false)
      .def("accepts", &accepts, py::arg("arguments"))
      .def("received", &received_bytes)
      .def("op_text", &op_text, py::arg("number"))
      .def("memory", &memory, py::arg("per_device") = true, py::arg("donated") = std::vector<size_t>())
      .def("rehearsed_steps", &rehearsed_steps, py::arg("per_device") = true)
      .def("trace", &trace_rows);
  module.def("run_unpartitioned", &run_unpartitioned, py::arg("module"), py::arg("arguments"));
  module.def("restart_peak_buffer_bytes", &restart_peak_buffer_bytes);
  module.def("live_buffer_bytes", &live_buffer_bytes);
  module.def("blas_core_name", [] { return std::string(blas_core_name()); });
  module.def("enter_call", &enter_call);
  module.def("leave_call", &leave_call);
  module.def("wait_for_threads", &wait_for_threads);
  module.def("cpu_has_avx512", &cpu_has_avx512);
  module.def("settings_table", &settings_rows);
  module.def("full_traceback", [] { return settings().full_traceback; });
  module.def("mpi_timeout", [] { return settings().mpi_timeout; });
  module.def("set_threads", [](int threads) { set_thread_count(threads); });
}

}  // namespace shardwise
