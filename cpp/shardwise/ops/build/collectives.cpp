// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/collectives.h"

namespace shardwise {
namespace {

Attribute axes_per_dim(const Mesh& mesh, std::span<const AxisList> dims) {
  AxesPerDimAttr attr;
  for (const AxisList& axes : dims) attr.dims.push_back(to_raw(mesh, axes));
  return attr;
}

}  // namespace

ValueId create_axis_index(Builder& builder, const Mesh& mesh, AxisSpan axes) {
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

ValueId create_reduce_scatter(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes,
                              std::span<const AxisList> scatter, Reducer reducer) {
  return builder.create("shardwise.reduce_scatter", {operand},
                        {{"axes", AxesAttr{to_raw(mesh, axes)}},
                         {"mesh", Symbol{mesh.name()}},
                         {"reducer", std::string(name(reducer))},
                         {"scatter", axes_per_dim(mesh, scatter)}});
}

ValueId create_all_to_all(Builder& builder, const Mesh& mesh, ValueId operand, std::span<const AllToAllMove> moves) {
  AttrArray entries;
  for (const AllToAllMove& move : moves) {
    entries.push_back(AttrDict{{{"axes", AxesAttr{to_raw(mesh, move.axes)}},
                                {"from_dim", IntAttr{move.from_dim}},
                                {"to_dim", IntAttr{move.to_dim}}}});
  }
  return builder.create("shardwise.all_to_all", {operand}, {{"mesh", Symbol{mesh.name()}}, {"moves", entries}});
}

ValueId create_collective_permute(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan from, AxisSpan to) {
  return builder.create(
      "shardwise.collective_permute", {operand},
      {{"from", AxesAttr{to_raw(mesh, from)}}, {"mesh", Symbol{mesh.name()}}, {"to", AxesAttr{to_raw(mesh, to)}}});
}

ValueId create_shift(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes, int64_t shift, bool wrap) {
  return builder.create("shardwise.collective_permute", {operand},
                        {{"axes", AxesAttr{to_raw(mesh, axes)}},
                         {"mesh", Symbol{mesh.name()}},
                         {"shift", IntAttr{shift}},
                         {"wrap", wrap}});
}

}  // namespace shardwise
