// SPDX-License-Identifier: Apache-2.0
#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/gil.h"
#include "shardwise/runtime/processes/process_communicator.h"

namespace py = pybind11;

namespace shardwise {
namespace {

using PyMesh = std::shared_ptr<Mesh>;

// Calls the methods of a Python object, which sends by MPI:
//
//   all_gather(op, group, count, order, own, all)         all_to_all(op, group, count, order, send, receive)
//   exchange(op, [(to, bytes), …], [(from, memory), …])
//
// Bytes are memoryviews. `op` is the number of the op that runs, or 0. An exception passes through the run.
class PyTransport final : public Transport {
 public:
  explicit PyTransport(py::object object)
      : all_gather_(object.attr("all_gather")),
        all_to_all_(object.attr("all_to_all")),
        exchange_(object.attr("exchange")) {}

  void begin(OpId op) override { op_ = op; }

  void all_gather(const ProcessGroup& group, std::span<const std::byte> own, std::span<std::byte> all) override {
    const WithGil held;
    all_gather_(op_.index, group.id, group.count, order_of(group), view(own), view(all));
  }

  void all_to_all(const ProcessGroup& group, std::span<const std::byte> send, std::span<std::byte> receive) override {
    const WithGil held;
    all_to_all_(op_.index, group.id, group.count, order_of(group), view(send), view(receive));
  }

  void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) override {
    const WithGil held;
    py::list sent;
    for (const Outgoing& message : outgoing) sent.append(py::make_tuple(message.to, view(message.bytes)));
    py::list received;
    for (const Incoming& message : incoming) received.append(py::make_tuple(message.from, view(message.bytes)));
    exchange_(op_.index, sent, received);
  }

 private:
  template <class Byte>  // const for bytes that Python only reads
  static py::memoryview view(std::span<Byte> bytes) {
    // A shard may be empty, and an empty span may have no address, which memoryview does not accept.
    static std::byte nothing{};
    Byte* const data = bytes.empty() ? &nothing : bytes.data();
    return py::memoryview::from_memory(data, static_cast<py::ssize_t>(bytes.size()));
  }
  // Each list becomes a Python object once, because every call passes it.
  const py::object& order_of(const ProcessGroup& group) {
    while (orders_.size() <= group.id) orders_.emplace_back(py::none());
    py::object& order = orders_[group.id];
    if (order.is_none()) order = py::cast(group.order);
    return order;
  }

  py::object all_gather_;
  py::object all_to_all_;
  py::object exchange_;
  std::vector<py::object> orders_;
  OpId op_;
};

std::vector<int64_t> owned_devices(const DeviceSet& devices, const Mesh& mesh) {
  std::vector<int64_t> owned;
  for (int64_t i = 0; i < mesh.device_count(); ++i) {
    if (devices.owns(mesh, i)) owned.push_back(i);
  }
  return owned;
}

}  // namespace

void bind_processes(py::module_& module) {
  py::class_<DeviceSet>(module, "DeviceSet")
      .def(py::init<>())
      .def_static(
          "at",
          [](const PyMesh& mesh, int64_t processes, int64_t position) {
            return DeviceSet{pinned_axes(*mesh, processes), position};
          },
          py::arg("mesh"), py::arg("processes"), py::arg("position"))
      .def_property_readonly("is_all", &DeviceSet::is_all)
      .def_readonly("position", &DeviceSet::position)
      .def("owned", &owned_devices, py::arg("mesh"))  // logical indices
      // UnsupportedError, on all processes, where a sub-axis cuts across them.
      .def(
          "expect_uncut",
          [](const DeviceSet& self, const TensorSharding& sharding) {
            expect_uncut("array", *sharding.mesh, self.pinned, axes_of_dims(sharding.dims));
          },
          py::arg("sharding"))
      // Which rows of a dim the process has: equal for processes with the same rows.
      .def(
          "rows_of",
          [](const DeviceSet& self, const TensorSharding& sharding, size_t dim) {
            const AxisList& axes = sharding.dims.at(dim).axes;
            return self.position_along(difference(axes, self.free(axes)), {}, 0);
          },
          py::arg("sharding"), py::arg("dim"))
      .def(py::self == py::self)
      .def("__hash__", [](const DeviceSet& self) {
        return hash_combine(hash_value(AxisSpan(self.pinned)), static_cast<size_t>(self.position));
      });
  // The position of each process, by its number. MeshError where the processes do not fit the mesh.
  module.def(
      "process_positions",
      [](const PyMesh& mesh, int64_t processes) { return process_positions(*mesh, pinned_axes(*mesh, processes)); },
      py::arg("mesh"), py::arg("processes"));
  py::class_<ProcessCommunicator, std::shared_ptr<ProcessCommunicator>>(module, "ProcessCommunicator")
      .def(py::init([](const DeviceSet& devices, const py::object& transport) {
             return std::make_shared<ProcessCommunicator>(devices, std::make_shared<PyTransport>(transport));
           }),
           py::arg("devices"), py::arg("transport"))
      .def_property_readonly("devices", &ProcessCommunicator::devices);
}

}  // namespace shardwise
