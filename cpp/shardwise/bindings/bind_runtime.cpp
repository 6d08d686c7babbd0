// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <unordered_set>

#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/base/settings.h"
#include "shardwise/base/thread_pool.h"
#include "shardwise/bindings/bind_program.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/casters.h"
#include "shardwise/bindings/gil.h"
#include "shardwise/compiler/driver.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/build/decomposition.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/runtime/buffer_pool.h"
#include "shardwise/runtime/executor.h"
#include "shardwise/runtime/sharded_array.h"
#include "shardwise/runtime/virtual_communicator.h"
#include "shardwise/transforms/decompose.h"

namespace py = pybind11;

namespace shardwise {
namespace {

using ArrayPtr = std::shared_ptr<ShardedArray>;

// An Executable with the trace of its last traced run.
struct PyExecutable {
  explicit PyExecutable(const CompileUnit& unit)
      : executable(unit.module, unit.propagated->meshes.front()), local(unit.module) {}
  Executable executable;
  std::shared_ptr<const Module> local;
  std::vector<TraceRow> trace;
};

NdArray owned_copy(const NdArray& array) {
  NdArray copy = NdArray::empty(array.dtype(), array.shape());
  copy.copy_from(array);
  return copy;
}

void collect_owners(const Shards& shards, std::unordered_set<const void*>& owners) {
  if (shards.is_stacked()) {
    owners.insert(shards.stacked().owner().get());
    return;
  }
  for (int64_t i = 0; i < shards.count(); ++i) owners.insert(shards[i].owner().get());
}

// A result must not change when the user writes an array that was an argument: a view of one becomes a copy.
ArrayPtr own_result(ShardedArray result, const std::unordered_set<const void*>& borrowed) {
  std::unordered_set<const void*> owners;
  collect_owners(result.shards(), owners);
  const bool shared =
      std::any_of(owners.begin(), owners.end(), [&](const void* owner) { return borrowed.contains(owner); });
  if (!shared) return std::make_shared<ShardedArray>(std::move(result));
  const Shards& shards = result.shards();
  return std::make_shared<ShardedArray>(result.dtype(), result.shape(), result.sharding(), result.blocks(),
                                        Shards(shards.axes(), owned_copy(shards.stack())));
}

void refuse_unreduced(const TensorSharding& sharding) {
  if (sharding.unreduced.empty()) return;
  fail<ShardingError>("array", "an array cannot be left unreduced", short_text(sharding),
                      "drop unreduced= or shard a dim over these axes");
}

// With `borrow` the shards may be views of the user's memory, which is right for the time of a call only. Only a call
// takes unreduced arguments, too.
ArrayPtr scatter_numpy(const py::array& array, const TensorSharding& sharding, bool poison, bool borrow) {
  const NdArray view = from_numpy(array);
  verify(sharding, view.shape());
  if (!borrow) refuse_unreduced(sharding);
  const WithoutGil released;
  return std::make_shared<ShardedArray>(scatter(borrow ? view : owned_copy(view), sharding.closed(), {},
                                                poison ? PaddingFill::kPoison : PaddingFill::kZero));
}

py::array gather_numpy(const ShardedArray& array) {
  NdArray whole;
  {
    const WithoutGil released;
    whole = gather(array);
  }
  return to_numpy(whole);
}

ArrayPtr reshard(const ShardedArray& array, const TensorSharding& sharding, bool for_call) {
  verify(sharding, array.shape());
  if (!for_call) refuse_unreduced(sharding);
  const WithoutGil released;
  return std::make_shared<ShardedArray>(scatter(gather(array), sharding.closed()));
}

// Lets Ctrl-C stop a run, between two ops or inside a long one. The GIL is asked for every 10 ms at most: runs of small
// programs in several threads would else wait for each other at every op.
class SignalCheck {
 public:
  void operator()() {
    throw_if_shutting_down();
    if (std::chrono::steady_clock::now() < next_) return;
    const WithGil held;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    next_ = std::chrono::steady_clock::now() + kPause;
  }

 private:
  static constexpr std::chrono::milliseconds kPause{10};
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kPause;
};

// The list loses the donated arguments, so that it does not hold their memory during the run.
std::vector<ArrayPtr> run(PyExecutable& self, py::list arguments, bool faithful, bool poison, bool trace,
                          const std::vector<size_t>& borrowed, const std::vector<size_t>& donated) {
  std::vector<ShardedArray> values;
  for (const py::handle argument : arguments) values.push_back(argument.cast<const ShardedArray&>());
  std::unordered_set<const void*> borrowed_owners;
  for (size_t i : borrowed) collect_owners(values.at(i).shards(), borrowed_owners);
  for (size_t i : donated) arguments[i] = py::none();
  RunOptions options{
      .faithful = faithful, .poison = poison, .donated = donated, .trace = nullptr, .between_ops = SignalCheck()};
  std::vector<TraceRow> rows;
  if (trace) options.trace = &rows;
  std::vector<ArrayPtr> results;
  {
    const WithoutGil released;
    VirtualCommunicator devices;
    for (ShardedArray& result : self.executable.run(devices, std::move(values), options)) {
      results.push_back(own_result(std::move(result), borrowed_owners));
    }
  }
  if (trace) self.trace = std::move(rows);
  return results;
}

// Runs a program with global shapes as if its annotations were not there: the reference for partitioned runs.
std::vector<py::array> run_unpartitioned(const std::shared_ptr<Module>& global,
                                         const std::vector<py::array>& arguments) {
  auto program = std::make_shared<Module>(*global);
  decompose_ops(*program, has_no_kernel);
  const std::unique_ptr<Executable> executable = Executable::unpartitioned(std::move(program));
  check_internal(arguments.size() == executable->argument_count(), "run_unpartitioned: an array for each argument");
  std::vector<ShardedArray> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    values.push_back(scatter(from_numpy(arguments[i]), executable->argument_placement(i)));
  }
  std::vector<ShardedArray> results;
  {
    const WithoutGil released;
    VirtualCommunicator devices;
    results = executable->run(devices, std::move(values), {.between_ops = SignalCheck()});
  }
  std::vector<py::array> arrays;
  for (const ShardedArray& result : results) arrays.push_back(to_numpy(owned_copy(gather(result))));
  return arrays;
}

// (the bytes at the peak, of arguments, of results, and what is alive at the peak: values of the local program)
py::tuple memory(const PyExecutable& self, bool per_device, const std::vector<size_t>& donated) {
  MemoryUse use;
  {
    const WithoutGil released;
    use = self.executable.memory({.per_device = per_device, .donated = donated});
  }
  py::list rows;
  for (const LiveBuffers& buffers : use.at_peak) {
    rows.append(py::make_tuple(value_view(self.local, buffers.value), buffers.bytes));
  }
  return py::make_tuple(use.peak_bytes, use.argument_bytes, use.result_bytes, rows);
}

py::list trace_rows(const PyExecutable& self) {
  py::list rows;
  for (const TraceRow& row : self.trace) {
    const ResolvedSource source = self.local->context().resolve(row.loc);
    rows.append(py::dict(py::arg("op") = std::string(row.op), py::arg("fused_ops") = row.fused_ops,
                         py::arg("shards") = row.shards, py::arg("start_ns") = row.start_ns,
                         py::arg("duration_ns") = row.duration_ns, py::arg("bytes") = row.bytes,
                         py::arg("file") = source.file, py::arg("line") = source.line));
  }
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
                  py::arg("borrow") = false)
      .def("gather", &gather_numpy)
      .def("reshard", &reshard, py::arg("sharding"), py::arg("for_call") = false)
      .def_property_readonly("shape", [](const ShardedArray& self) { return shape_tuple(self.shape()); })
      .def_property_readonly("dtype", [](const ShardedArray& self) { return std::string(numpy_name(self.dtype())); })
      .def_property_readonly("sharding", &ShardedArray::sharding)
      .def_property_readonly(
          "nbytes_local",
          [](const ShardedArray& self) { return element_count(self.blocks()) * item_size(self.dtype()); })
      .def("shard", [](const ShardedArray& self, int64_t logical) {
        return to_numpy(self.shard(self.mesh().device_at(logical)));
      });
  py::class_<PyExecutable>(module, "Executable")
      .def(py::init<const CompileUnit&>())
      .def("run", &run, py::arg("arguments"), py::arg("faithful") = false, py::arg("poison") = false,
           py::arg("trace") = false, py::arg("borrowed") = std::vector<size_t>(),
           py::arg("donated") = std::vector<size_t>())
      .def("memory", &memory, py::arg("per_device") = true, py::arg("donated") = std::vector<size_t>())
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
  module.def("set_threads", [](int threads) { set_thread_count(threads); });
}

}  // namespace shardwise
