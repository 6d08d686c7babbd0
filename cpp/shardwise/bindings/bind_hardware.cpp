// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/casters.h"
#include "shardwise/cost/collective_time.h"
#include "shardwise/cost/hardware_json.h"

namespace py = pybind11;

namespace shardwise {
namespace {

using PyHardware = std::shared_ptr<Hardware>;
using AxisName = std::pair<std::string, std::optional<std::pair<int64_t, int64_t>>>;  // name, (pre, size)
using TierRow = std::tuple<std::string, int64_t, int64_t>;                            // name, bytes, picoseconds

// Python shares what C++ holds as const: no method changes it.
PyHardware shared(const HardwarePtr& hardware) { return std::const_pointer_cast<Hardware>(hardware); }

constexpr std::array<std::pair<std::string_view, TransferKind>, 8> kTransferNames{{
    {"all_gather", TransferKind::kAllGather},
    {"reduce_scatter", TransferKind::kReduceScatter},
    {"all_reduce", TransferKind::kAllReduce},
    {"all_to_all", TransferKind::kAllToAll},
    {"shift", TransferKind::kShift},
    {"collective_permute", TransferKind::kPermute},
    {"exchange", TransferKind::kExchange},
    {"chain", TransferKind::kChain},
}};

TransferKind transfer_named(const std::string& name) {
  for (const auto& [known, kind] : kTransferNames) {
    if (name == known) return kind;
  }
  fail<ShardingError>(
      "collective_time",
      str("kind must be ", join(kTransferNames, ", ", [](const auto& row) -> const auto& { return row.first; })),
      quote(name));
}

ComputeUnit unit_named(const std::string& text) {
  for (int unit = 0; unit < kComputeUnitCount; ++unit) {
    if (text == name(static_cast<ComputeUnit>(unit))) return static_cast<ComputeUnit>(unit);
  }
  fail<ShardingError>("Hardware.peak", "unit must be matrix, vector or transcendental", quote(text));
}

// (latency, what happens in each tier), in picoseconds.
std::pair<int64_t, std::vector<TierRow>> collective_time_rows(const Hardware& hardware, const std::string& kind,
                                                              int64_t bytes, const std::shared_ptr<Mesh>& mesh,
                                                              const std::vector<AxisName>& axes) {
  std::vector<RawAxisRef> raw;
  for (const auto& [name, sub] : axes) raw.push_back({name, sub});
  const AxisList list = resolve(*mesh, raw);
  for (size_t i = 0; i < list.size(); ++i) {
    if (overlaps(AxisSpan(list).first(i), list[i])) {
      fail<ShardingError>("collective_time", "axes must not overlap", axis_list_text(*mesh, list));
    }
  }
  const CollectiveTime time =
      collective_time(transfer_named(kind), bytes, device_tiers(*mesh, hardware)->cut(list), hardware);
  std::vector<TierRow> rows;
  for (const TierTime& tier : time.tiers) rows.emplace_back(hardware.tiers[tier.tier].name, tier.bytes, tier.ps);
  return {time.latency_ps, rows};
}

}  // namespace

void bind_hardware(py::module_& module) {
  py::class_<Hardware, PyHardware>(module, "Hardware")
      .def_readonly("name", &Hardware::name)
      .def_readonly("description", &Hardware::description)
      .def_readonly("json", &Hardware::json)
      .def_readonly("memory_bandwidth", &Hardware::memory_bandwidth)
      .def_readonly("memory_bytes", &Hardware::memory_bytes)
      .def_readonly("reserved_bytes", &Hardware::reserved_bytes)
      .def_readonly("launch_ps", &Hardware::launch_ps)
      .def_readonly("fused_attention", &Hardware::fused_attention)
      .def_readonly("default_dot", &Hardware::default_dot)
      // Flops per second, and the row of the file that they follow from.
      .def("peak",
           [](const Hardware& hardware, const std::string& unit, const std::string& dtype) {
             const Peak peak = hardware.peak(unit_named(unit), dtype_from_python(dtype));
             return std::make_pair(peak.flops, std::string(peak.row));
           })
      // The same of a row of the file, or of a dtype by its name there; None for other names.
      .def("peak_named",
           [](const Hardware& hardware, const std::string& unit, const std::string& name) {
             const std::optional<Peak> peak = hardware.peak_named(unit_named(unit), name);
             return peak ? std::optional(std::make_pair(peak->flops, std::string(peak->row))) : std::nullopt;
           })
      .def("collective_time", &collective_time_rows, py::arg("kind"), py::arg("bytes"), py::arg("mesh"),
           py::arg("axes"))
      .def(py::self == py::self)
      .def("__hash__", [](const Hardware& hardware) { return hardware.hash; });
  module.def(
      "from_json",
      [](const py::bytes& json, const std::string& file, bool has_places) {
        return shared(hardware_from_json(static_cast<std::string_view>(json), file, has_places));
      },
      py::arg("json"), py::arg("file"), py::arg("has_places") = true);
  module.def(
      "builtin",
      [](const std::string& name) {
        const HardwarePtr found = builtin_hardware(name);
        return found ? std::optional(shared(found)) : std::nullopt;
      },
      py::arg("name"));
  module.def("builtin_names", &builtin_hardware_names);
}

}  // namespace shardwise
