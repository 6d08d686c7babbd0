// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/collectives.h"

#include <algorithm>

namespace shardwise {
namespace {

// A dim of an exchange: fields that have their default are left out.
class DimFields {
 public:
  DimFields(const Mesh& mesh, const AxisList& axes) {
    if (!axes.empty()) dict_.fields.emplace_back("axes", AxesAttr{to_raw(mesh, axes)});
  }
  void set(std::string_view name, int64_t value) { dict_.fields.emplace_back(name, IntAttr{value}); }
  void set(std::string_view name, int64_t value, int64_t missing) {
    if (value != missing) set(name, value);
  }
  AttrDict take() {
    // In the order in which MLIR prints dictionaries, whatever the order of set() is.
    std::ranges::sort(dict_.fields, {}, &NamedAttribute::first);
    return std::move(dict_);
  }

 private:
  AttrDict dict_;
};

}  // namespace

ValueId create_axis_index(Builder& builder, const Mesh& mesh, AxisSpan axes) {
  // The mesh is named, not held: the op must have a text.
  return builder.create("shardwise.axis_index", {},
                        {{"axes", AxesAttr{to_raw(mesh, axes)}}, {"mesh", Symbol{mesh.name()}}});
}

ValueId create_all_reduce(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes, Reducer reducer) {
  return builder.create(
      "shardwise.all_reduce", {operand},
      {{"axes", AxesAttr{to_raw(mesh, axes)}}, {"mesh", Symbol{mesh.name()}}, {"reducer", std::string(name(reducer))}});
}

ValueId create_all_gather(Builder& builder, const Mesh& mesh, ValueId operand, std::span<const AxisList> gather) {
  return builder.create("shardwise.all_gather", {operand},
                        {{"gather", axes_per_dim(mesh, gather)}, {"mesh", Symbol{mesh.name()}}});
}

ValueId create_all_gather(Builder& builder, const Mesh& mesh, ValueId operand, size_t dim, const AxisList& axes) {
  std::vector<AxisList> gather(builder.module().type(operand).shape.size());
  gather[dim] = axes;
  return create_all_gather(builder, mesh, operand, gather);
}

ValueId create_reduce_scatter(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes,
                              std::span<const AxisList> scatter, Reducer reducer) {
  return builder.create("shardwise.reduce_scatter", {operand},
                        {{"axes", AxesAttr{to_raw(mesh, axes)}},
                         {"mesh", Symbol{mesh.name()}},
                         {"reducer", std::string(name(reducer))},
                         {"scatter", axes_per_dim(mesh, scatter)}});
}

ValueId create_all_to_all(Builder& builder, const Mesh& mesh, ValueId operand, std::span<const AllToAllMove> moves) {
  return builder.create("shardwise.all_to_all", {operand},
                        {{"mesh", Symbol{mesh.name()}}, {"moves", moves_attr(mesh, moves)}});
}

ValueId create_collective_permute(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan from, AxisSpan to) {
  return builder.create(
      "shardwise.collective_permute", {operand},
      {{"from", AxesAttr{to_raw(mesh, from)}}, {"mesh", Symbol{mesh.name()}}, {"to", AxesAttr{to_raw(mesh, to)}}});
}

ValueId create_ring_shift(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes, int64_t shift) {
  return builder.create("shardwise.collective_permute", {operand},
                        {{"axes", AxesAttr{to_raw(mesh, axes)}},
                         {"mesh", Symbol{mesh.name()}},
                         {"shift", IntAttr{shift}},
                         {"wrap", true}});
}

ValueId create_chain(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes, int64_t shift,
                     Reducer reducer) {
  return builder.create("shardwise.collective_permute", {operand},
                        {{"axes", AxesAttr{to_raw(mesh, axes)}},
                         {"mesh", Symbol{mesh.name()}},
                         {"reducer", std::string(name(reducer))},
                         {"shift", IntAttr{shift}},
                         {"wrap", false}});
}

Attrs exchange_attrs(const Mesh& mesh, const ExchangeMap& map) {
  AttrArray to, from;
  // Axes of the source are names on its own mesh.
  const Mesh& from_mesh = map.is_across_meshes() ? *map.from_mesh : mesh;
  for (const ExchangeTarget& dim : map.to) {
    DimFields fields(mesh, dim.axes);
    fields.set("rows", dim.rows);
    // Tiles without overlap have step = rows, and a size that the tiles fill. Leaving these out keeps the text short.
    fields.set("step", dim.step, dim.rows);
    fields.set("size", dim.size, dim.rows * product(dim.axes));
    to.push_back(fields.take());
  }
  for (const std::vector<ExchangeSource>& dims : map.from) {
    AttrArray operand;
    for (size_t d = 0; d < dims.size(); ++d) {
      DimFields fields(from_mesh, dims[d].axes);
      fields.set("size", dims[d].size, dims[d].block * product(dims[d].axes));
      fields.set("scale", dims[d].scale, 1);
      fields.set("offset", dims[d].offset, 0);
      fields.set("holes", dims[d].holes, 1);
      fields.set("begin", dims[d].begin, 0);
      // A source without a limit has the largest int64 as its end.
      fields.set("end", std::min(dims[d].end, map.to[d].size), map.to[d].size);
      operand.push_back(fields.take());
    }
    from.push_back(std::move(operand));
  }
  if (!map.is_across_meshes()) return {{"from", from}, {"mesh", Symbol{mesh.name()}}, {"to", to}};
  return {{"from", from}, {"from_mesh", Symbol{from_mesh.name()}}, {"mesh", Symbol{mesh.name()}}, {"to", to}};
}

ValueId create_exchange(Builder& builder, const Mesh& mesh, std::span<const ValueId> operands, ValueId fill,
                        const ExchangeMap& map) {
  std::vector<ValueId> values(operands.begin(), operands.end());
  if (fill) values.push_back(fill);
  return builder.create("shardwise.exchange", values, exchange_attrs(mesh, map));
}

}  // namespace shardwise
