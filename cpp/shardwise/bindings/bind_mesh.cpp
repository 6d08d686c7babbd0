// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/casters.h"
#include "shardwise/mesh/mesh_json.h"
#include "shardwise/mesh/other_mesh.h"
#include "shardwise/mesh/placement.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/mesh/tiling.h"

namespace py = pybind11;

namespace shardwise {
namespace {

using PyMesh = std::shared_ptr<Mesh>;

using AxisRow = std::tuple<std::string, int64_t, int64_t>;                                  // name, pre, size
using DimRow = std::tuple<std::vector<AxisRow>, bool, std::optional<int64_t>>;              // axes, open, priority
using PlacedDimRow = std::pair<std::vector<AxisRow>, int64_t>;                              // axes, block
using SliceTuple = py::typing::Tuple<py::typing::Tuple<py::int_, py::int_>, py::ellipsis>;  // (start, size) per dim

// Axes from Python: "x", or ("x", pre, size); a full axis may be given either way.
using AxisLike = std::variant<std::string, AxisRow>;
using AxesLike = std::vector<AxisLike>;
using DimLike = std::tuple<AxesLike, bool, std::optional<int64_t>>;

AxisRef axis_from_python(const Mesh& mesh, const AxisLike& axis) {
  if (const auto* name = std::get_if<std::string>(&axis)) return resolve(mesh, RawAxisRef{*name, {}});
  const auto& [name, pre, size] = std::get<AxisRow>(axis);
  const auto position = mesh.find_axis(name);
  // resolve() refuses "x":(1)4 on x=4, as Shardy's text does, but Python reads rows of all axes in this form.
  if (position && pre == 1 && size == mesh.axis_size(*position)) return full_axis(mesh, *position);
  return resolve(mesh, RawAxisRef{name, std::make_pair(pre, size)});
}

AxisList axes_from_python(const Mesh& mesh, const AxesLike& axes) {
  AxisList list;
  for (const AxisLike& axis : axes) list.push_back(axis_from_python(mesh, axis));
  return list;
}

AxisRow axis_to_python(const Mesh& mesh, const AxisRef& ref) { return {mesh.axis_name(ref.axis), ref.pre, ref.size}; }

std::vector<AxisRow> axes_to_python(const Mesh& mesh, AxisSpan axes) {
  std::vector<AxisRow> list;
  for (const AxisRef& ref : axes) list.push_back(axis_to_python(mesh, ref));
  return list;
}

TensorSharding make_sharding(const PyMesh& mesh, const std::vector<DimLike>& dims, const AxesLike& replicated,
                             const AxesLike& unreduced, const std::string& reducer) {
  TensorSharding sharding;
  sharding.mesh = mesh;
  for (const auto& [axes, open, priority] : dims) {
    sharding.dims.push_back({axes_from_python(*mesh, axes), open, priority});
  }
  // Lists without an order are kept in mesh order, which verify() expects.
  sharding.replicated = sort_and_merge(axes_from_python(*mesh, replicated));
  sharding.unreduced = sort_and_merge(axes_from_python(*mesh, unreduced));
  if (!reducer.empty()) {
    const auto known = reducer_from_name(reducer);
    if (!known) fail<ShardingError>("sharding", "the reducer must be sum, prod, max, min, and or or", reducer);
    sharding.reducer = *known;
  }
  // No tensor is known here: the sizes of the shape are not looked at, only their number.
  verify(sharding, Dims(sharding.dims.size(), 0));
  return sharding;
}

TensorSharding parse_any_sharding(const PyMesh& mesh, const std::string& text) {
  // '[{"x"}, {}]' is on this mesh; '<@mesh, [{"x"}, {}]>' names one, which must be this mesh.
  if (text.find('<') == std::string::npos) return parse_short_sharding(text, mesh);
  return parse_sharding(text, [&](std::string_view name) -> MeshPtr { return name == mesh->name() ? mesh : nullptr; });
}

SliceTuple slice_tuple(const LocalSlice& slice) {
  SliceTuple dims(slice.start.size());
  for (size_t d = 0; d < slice.start.size(); ++d) dims[d] = py::make_tuple(slice.start[d], slice.size[d]);
  return dims;
}

std::vector<DimRow> dims_to_python(const TensorSharding& sharding) {
  std::vector<DimRow> dims;
  for (const DimSharding& dim : sharding.dims) {
    dims.emplace_back(axes_to_python(*sharding.mesh, dim.axes), dim.open, dim.priority);
  }
  return dims;
}

std::vector<PlacedDimRow> placed_dims_to_python(const Placement& placement) {
  std::vector<PlacedDimRow> dims;
  for (const DimPlacement& dim : placement.dims)
    dims.emplace_back(axes_to_python(*placement.mesh, dim.axes), dim.block);
  return dims;
}

using AlgebraResult = std::variant<std::monostate, bool, AxisRow, std::vector<AxisRow>>;

AlgebraResult optional_axis(const Mesh& mesh, const std::optional<AxisRef>& ref) {
  if (!ref) return std::monostate();
  return axis_to_python(mesh, *ref);
}

// The sub-axis algebra by name, for tests that compare it with explicit coordinates.
AlgebraResult algebra(const Mesh& mesh, const std::string& op, const AxesLike& lhs, const AxesLike& rhs) {
  const AxisList a = axes_from_python(mesh, lhs), b = axes_from_python(mesh, rhs);
  if (op == "difference") return axes_to_python(mesh, difference(a, b));
  if (op == "truncate_at_overlap") return axes_to_python(mesh, truncate_at_overlap(a, b));
  if (op == "sort_and_merge") return axes_to_python(mesh, sort_and_merge(a));
  if (op == "is_prefix_of") return is_prefix_of(a, b);
  if (op == "greatest_common_prefix") return axes_to_python(mesh, greatest_common_prefix(AxisSpan(a), AxisSpan(b)));
  // The operations above are on lists, those below on single axes.
  if (a.size() != 1 || b.size() != 1) fail<ShardingError>(op, "takes one axis on each side");
  if (op == "contains") return contains(a[0], b[0]);
  if (op == "overlaps") return overlaps(a[0], b[0]);
  if (op == "prefix_of") return prefix_of(a[0], b[0]);
  if (op == "suffix_of") return suffix_of(a[0], b[0]);
  if (op == "can_coexist") return can_coexist(a[0], b[0]);
  if (op == "overlap") return optional_axis(mesh, overlap(a[0], b[0]));
  if (op == "prefix_without_overlap") return optional_axis(mesh, prefix_without_overlap(a[0], b[0]));
  if (op == "suffix_without_overlap") return optional_axis(mesh, suffix_without_overlap(a[0], b[0]));
  fail<ShardingError>("algebra", "must be an operation on axes", op);
}

void bind_mesh_class(py::module_& module) {
  py::class_<Mesh, PyMesh>(module, "Mesh")
      .def(py::init([](const std::string& name, const std::vector<std::pair<std::string, int64_t>>& axes, Dims ids) {
             std::vector<MeshAxis> list;
             for (const auto& [axis, size] : axes) list.push_back({axis, size});
             return std::make_shared<Mesh>(name, std::move(list), std::move(ids));
           }),
           py::arg("name"), py::arg("axes"), py::arg("device_ids") = Dims())
      .def_property_readonly("name", &Mesh::name)
      .def_property_readonly("axis_names",
                             [](const Mesh& mesh) {
                               using Names = py::typing::Tuple<py::str, py::ellipsis>;
                               return tuple_of<Names>(mesh.axes(), [](const MeshAxis& axis) { return axis.name; });
                             })
      .def_property_readonly("axis_sizes",
                             [](const Mesh& mesh) {
                               return tuple_of<ShapeTuple>(mesh.axes(), [](const MeshAxis& axis) { return axis.size; });
                             })
      .def_property_readonly("device_ids", [](const Mesh& mesh) { return shape_tuple(mesh.device_ids()); })
      .def_property_readonly("size", &Mesh::device_count)
      .def("expect_runnable", [](const Mesh& mesh, const std::string& operation) { mesh.expect_runnable(operation); })
      .def("device_at", &Mesh::device_at)
      .def("logical_index", &Mesh::logical_index)
      .def("text", &Mesh::text)
      .def("to_json", &mesh_to_json)
      .def_static("from_json", [](const std::string& json) { return std::make_shared<Mesh>(mesh_from_json(json)); })
      .def(py::self == py::self)
      .def("__hash__", &Mesh::hash)
      .def("__repr__", &Mesh::text);
}

void bind_sharding_class(py::module_& module) {
  py::class_<TensorSharding>(module, "Sharding")
      .def_static("make", &make_sharding, py::arg("mesh"), py::arg("dims"), py::arg("replicated") = AxesLike(),
                  py::arg("unreduced") = AxesLike(), py::arg("reducer") = "")
      .def_static("parse", &parse_any_sharding)
      .def_static("replicated",
                  [](const PyMesh& mesh, int64_t ndim) { return TensorSharding::fully_replicated(mesh, ndim); })
      .def_static("open", [](const PyMesh& mesh, int64_t ndim) { return TensorSharding::open(mesh, ndim); })
      .def_static("from_json", [](const std::string& json) { return sharding_from_json(json); })
      // The class is bound with a holder of non-const meshes; Python can only read one.
      .def_property_readonly("mesh", [](const TensorSharding& s) { return std::const_pointer_cast<Mesh>(s.mesh); })
      .def_property_readonly("ndim", &TensorSharding::ndim)
      .def_property_readonly("dims", &dims_to_python)
      .def_property_readonly("replicated_axes",
                             [](const TensorSharding& s) { return axes_to_python(*s.mesh, s.replicated); })
      .def_property_readonly("unreduced", [](const TensorSharding& s) { return axes_to_python(*s.mesh, s.unreduced); })
      .def_property_readonly("reducer", [](const TensorSharding& s) { return std::string(name(s.pending_reducer())); })
      .def("verify", [](const TensorSharding& s, const ShapeLike& shape) { verify(s, shape_from_python(shape)); })
      .def("verify_divisible",
           [](const TensorSharding& s, const ShapeLike& shape) { verify_divisible(s, shape_from_python(shape)); })
      .def("text", [](const TensorSharding& s) { return bare_text(s); })
      .def("dims_text", [](const TensorSharding& s) { return short_text(s); })
      .def("local_shape", [](const TensorSharding& s,
                             const ShapeLike& shape) { return shape_tuple(local_shape(s, shape_from_python(shape))); })
      .def(
          "slices",
          [](const TensorSharding& s, const ShapeLike& shape) {
            std::vector<SliceTuple> all;
            for (const LocalSlice& slice : slices(s, shape_from_python(shape))) all.push_back(slice_tuple(slice));
            return all;
          },
          py::arg("shape"))
      .def("slice_of", [](const TensorSharding& s, const ShapeLike& shape,
                          int64_t logical) { return slice_tuple(slice_of(s, shape_from_python(shape), logical)); })
      // The same on the axes of a mesh over the same devices; None if it is no digit order of that.
      .def("on_mesh", [](const TensorSharding& s, const PyMesh& mesh) { return on_mesh(s, mesh); })
      // On a mesh that differs by its name only.
      .def("renamed",
           [](const TensorSharding& s, const PyMesh& mesh) {
             TensorSharding renamed = s;
             renamed.mesh = mesh;
             return renamed;
           })
      .def("to_json", &sharding_to_json)
      .def(py::self == py::self)
      .def("__hash__", [](const TensorSharding& s) { return hash_value(s); })
      .def("__repr__", [](const TensorSharding& s) { return bare_text(s); });
}

void bind_placement_class(py::module_& module) {
  py::class_<Placement>(module, "Placement")
      .def_property_readonly("mesh", [](const Placement& p) { return std::const_pointer_cast<Mesh>(p.mesh); })
      .def_property_readonly("ndim", &Placement::ndim)
      .def_property_readonly("dims", &placed_dims_to_python)
      .def_property_readonly("unreduced", [](const Placement& p) { return axes_to_python(*p.mesh, p.unreduced); })
      .def_property_readonly("reducer", [](const Placement& p) { return std::string(name(p.reducer)); })
      .def_property_readonly("local_shape", [](const Placement& p) { return shape_tuple(p.local_shape()); })
      .def_property_readonly("sharding", [](const Placement& p) { return sharding_of(p); })
      .def(py::self == py::self)
      .def("__hash__", [](const Placement& p) { return hash_value(p); })
      .def("__repr__", [](const Placement& p) { return text(p); });
}

}  // namespace

void bind_mesh(py::module_& module) {
  bind_mesh_class(module);
  bind_sharding_class(module);
  bind_placement_class(module);
  module.def("algebra", &algebra, py::arg("mesh"), py::arg("op"), py::arg("lhs"), py::arg("rhs"));
  module.attr("MOST_DEVICES_TO_RUN") = Mesh::kMostDevicesToRun;
}

}  // namespace shardwise
