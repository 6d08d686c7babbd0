// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/axis_attributes.h"

namespace shardwise {

AxesPerDimAttr axes_per_dim(const Mesh& mesh, std::span<const AxisList> dims) {
  AxesPerDimAttr attr;
  for (const AxisList& axes : dims) attr.dims.push_back(to_raw(mesh, axes));
  return attr;
}

std::vector<AxisList> resolve(const Mesh& mesh, const AxesPerDimAttr& lists) {
  std::vector<AxisList> dims;
  for (const std::vector<RawAxisRef>& axes : lists.dims) dims.push_back(resolve(mesh, axes));
  return dims;
}

AttrArray moves_attr(const Mesh& mesh, std::span<const AllToAllMove> moves) {
  AttrArray entries;
  for (const AllToAllMove& move : moves) {
    entries.push_back(AttrDict{{{"axes", AxesAttr{to_raw(mesh, move.axes)}},
                                {"from_dim", IntAttr{move.from_dim}},
                                {"to_dim", IntAttr{move.to_dim}}}});
  }
  return entries;
}

std::optional<AllToAllMove> move_of(const Mesh& mesh, const Attribute& attribute) {
  const AttrDict* dict = std::get_if<AttrDict>(&attribute.base());
  if (dict == nullptr) return std::nullopt;
  const Attrs fields(dict->fields);
  const AxesAttr* axes = fields.find<AxesAttr>("axes");
  const IntAttr* from = fields.find<IntAttr>("from_dim");
  const IntAttr* to = fields.find<IntAttr>("to_dim");
  if (axes == nullptr || from == nullptr || to == nullptr) return std::nullopt;
  return AllToAllMove{resolve(mesh, axes->axes), from->value, to->value};
}

}  // namespace shardwise
