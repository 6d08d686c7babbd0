// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/mesh_json.h"

#include <memory>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/mesh/read_json.h"

namespace shardwise {
namespace {

// Keys keep the order in which they are added: the default type would sort "axes" before "name".
using Json = nlohmann::ordered_json;

std::string dump_document(const Json& json) {
  try {
    return json.dump();
  } catch (const Json::type_error&) {
    fail<MeshError>("JSON", "names of meshes and axes must be UTF-8 text", {}, "rename the mesh or the axis");
  }
}

Json to_json(const Mesh& mesh) {
  Json axes = Json::array();
  for (const MeshAxis& axis : mesh.axes()) axes.push_back({{"name", axis.name}, {"size", axis.size}});
  Json json;
  // An inline mesh has no name, and gets none when it is read back.
  if (!mesh.name().empty()) json["name"] = mesh.name();
  json["axes"] = std::move(axes);
  if (!mesh.device_ids().empty()) json["device_ids"] = mesh.device_ids();
  return json;
}

Mesh mesh_from(const JsonNode& node) {
  node.expect_object({"name", "axes", "device_ids"});
  std::vector<MeshAxis> axes;
  for (const JsonNode& axis : node.at("axes").items()) {
    axis.expect_object({"name", "size"});
    axes.push_back({axis.at("name").string(), axis.at("size").integer()});
  }
  Dims device_ids;
  if (node.has("device_ids")) {
    for (const JsonNode& id : node.at("device_ids").items()) device_ids.push_back(id.integer());
  }
  return Mesh(node.has("name") ? node.at("name").string() : "", std::move(axes), std::move(device_ids));
}

Json to_json(const Mesh& mesh, const AxisList& axes) {
  Json json = Json::array();
  for (const RawAxisRef& raw : to_raw(mesh, axes)) {
    if (raw.sub) {
      json.push_back({{"axis", raw.name}, {"pre", raw.sub->first}, {"size", raw.sub->second}});
    } else {
      json.push_back(raw.name);
    }
  }
  return json;
}

AxisList axes_from(const Mesh& mesh, const JsonNode& node) {
  AxisList axes;
  for (const JsonNode& item : node.items()) {
    RawAxisRef raw;
    // As in Shardy's text, a full axis is only its name.
    if (item.is_string()) {
      raw.name = item.string();
    } else {
      item.expect_object({"axis", "pre", "size"});
      raw.name = item.at("axis").string();
      raw.sub = {item.at("pre").integer(), item.at("size").integer()};
    }
    axes.push_back(resolve(mesh, raw));
  }
  return axes;
}

DimSharding dim_from(const Mesh& mesh, const JsonNode& node) {
  node.expect_object({"axes", "open", "priority"});
  DimSharding dim;
  dim.axes = axes_from(mesh, node.at("axes"));
  if (node.has("open")) dim.open = node.at("open").boolean();
  if (node.has("priority")) dim.priority = node.at("priority").integer();
  return dim;
}

TensorSharding sharding_from(const JsonNode& node) {
  node.expect_object({"mesh", "dims", "replicated", "unreduced", "reducer"});
  TensorSharding sharding;
  sharding.mesh = std::make_shared<const Mesh>(mesh_from(node.at("mesh")));
  for (const JsonNode& dim : node.at("dims").items()) sharding.dims.push_back(dim_from(*sharding.mesh, dim));
  if (node.has("replicated")) sharding.replicated = axes_from(*sharding.mesh, node.at("replicated"));
  if (node.has("unreduced")) sharding.unreduced = axes_from(*sharding.mesh, node.at("unreduced"));
  if (node.has("reducer")) {
    const JsonNode reducer = node.at("reducer");
    const auto found = reducer_from_name(reducer.string());
    if (!found) reducer.fail_form("must be sum, prod, max, min, and or or", quote(reducer.string()));
    sharding.reducer = *found;
  }
  // As in the text form: a missing reducer means sum, and one without axes means nothing.
  sharding.reducer = sharding.pending_reducer();
  return sharding;
}

}  // namespace

std::string mesh_to_json(const Mesh& mesh) { return dump_document(to_json(mesh)); }

Mesh mesh_from_json(std::string_view json) { return mesh_from(JsonNode::parse(json, "JSON")); }

std::string sharding_to_json(const TensorSharding& sharding) {
  const Mesh& mesh = *sharding.mesh;
  Json dims = Json::array();
  for (const DimSharding& dim : sharding.dims) {
    Json entry;
    entry["axes"] = to_json(mesh, dim.axes);
    // Defaults are left out, and read back as such.
    if (dim.open) entry["open"] = true;
    if (dim.priority) entry["priority"] = *dim.priority;
    dims.push_back(std::move(entry));
  }
  Json json;
  json["mesh"] = to_json(mesh);
  json["dims"] = std::move(dims);
  if (!sharding.replicated.empty()) json["replicated"] = to_json(mesh, sharding.replicated);
  if (!sharding.unreduced.empty()) {
    json["unreduced"] = to_json(mesh, sharding.unreduced);
    json["reducer"] = std::string(name(sharding.pending_reducer()));
  }
  return dump_document(json);
}

TensorSharding sharding_from_json(std::string_view json) { return sharding_from(JsonNode::parse(json, "JSON")); }

}  // namespace shardwise
