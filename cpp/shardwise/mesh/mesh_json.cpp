// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/mesh_json.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/mesh/sdy_cursor.h"

namespace shardwise {
namespace {

// Keys keep the order in which they are added: the default type would sort "axes" before "name".
using Json = nlohmann::ordered_json;

// A value of a document with its path, so that an error can name it: `axes[0].size`.
class Node {
 public:
  Node(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  bool is_string() const { return json_.is_string(); }

  Node at(const std::string& key) const {
    if (!json_.contains(key)) fail_form("must have \"" + key + "\"", {});
    return {json_[key], path_.empty() ? key : path_ + "." + key};
  }
  bool has(const std::string& key) const { return json_.contains(key); }

  // Rejects keys outside `keys`, so that a misspelled key is not ignored.
  void expect_object(std::initializer_list<std::string_view> keys) const {
    if (!json_.is_object()) fail_form("must be an object", json_.type_name());
    for (const auto& item : json_.items()) {
      if (std::find(keys.begin(), keys.end(), item.key()) != keys.end()) continue;
      fail_form(str("must have no other keys than ", join(keys, ", ")), quote(item.key()));
    }
  }
  std::vector<Node> items() const {
    if (!json_.is_array()) fail_form("must be an array", json_.type_name());
    std::vector<Node> nodes;
    for (size_t i = 0; i < json_.size(); ++i) nodes.emplace_back(json_[i], str(path_, "[", i, "]"));
    return nodes;
  }
  std::string string() const {
    if (!json_.is_string()) fail_form("must be a string", json_.type_name());
    return json_.get<std::string>();
  }
  bool boolean() const {
    if (!json_.is_boolean()) fail_form("must be true or false", json_.type_name());
    return json_.get<bool>();
  }
  int64_t integer() const {
    if (!json_.is_number_integer()) fail_form("must be an integer", json_.type_name());
    // The library would wrap such a number to a negative one.
    if (json_.is_number_unsigned() && json_.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
      fail_form("must fit in 64 bits", json_.dump());
    }
    return json_.get<int64_t>();
  }
  [[noreturn]] void fail_form(std::string_view must_hold, std::string_view got) const {
    // The parsed document has no positions, so the path is the most precise location.
    throw ParseError(error_message("JSON", str(path_.empty() ? "the document" : path_, " ", must_hold), got, {}), 1, 1);
  }

 private:
  const Json& json_;
  std::string path_;
};

// The reason in an error of the JSON library, "[id] parse error at line 1, column 2: reason; last read: 'bytes'".
// Shardwise prints the position itself, and the bytes may not be valid text.
std::string reason_of(std::string_view what) {
  std::string_view reason = what.substr(0, what.find("; last read"));
  const size_t start = reason.find(": ");
  return std::string(start == std::string_view::npos ? reason : reason.substr(start + 2));
}

// The position of a number that is past the range of a double: the message quotes the number, but has no position.
size_t place_of_large_number(std::string_view json, std::string_view what) {
  const size_t open = what.find('\'');
  const size_t close = what.rfind('\'');
  if (open == std::string_view::npos || close <= open) return 0;
  return std::min(json.find(what.substr(open + 1, close - open - 1)), json.size());
}

Json parse_document(std::string_view text) {
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception&) {
    translate_json_error(text, "JSON", "expected a JSON document");
  }
}

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

Mesh mesh_from(const Node& node) {
  node.expect_object({"name", "axes", "device_ids"});
  std::vector<MeshAxis> axes;
  for (const Node& axis : node.at("axes").items()) {
    axis.expect_object({"name", "size"});
    axes.push_back({axis.at("name").string(), axis.at("size").integer()});
  }
  Dims device_ids;
  if (node.has("device_ids")) {
    for (const Node& id : node.at("device_ids").items()) device_ids.push_back(id.integer());
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

AxisList axes_from(const Mesh& mesh, const Node& node) {
  AxisList axes;
  for (const Node& item : node.items()) {
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

DimSharding dim_from(const Mesh& mesh, const Node& node) {
  node.expect_object({"axes", "open", "priority"});
  DimSharding dim;
  dim.axes = axes_from(mesh, node.at("axes"));
  if (node.has("open")) dim.open = node.at("open").boolean();
  if (node.has("priority")) dim.priority = node.at("priority").integer();
  return dim;
}

TensorSharding sharding_from(const Node& node) {
  node.expect_object({"mesh", "dims", "replicated", "unreduced", "reducer"});
  TensorSharding sharding;
  sharding.mesh = std::make_shared<const Mesh>(mesh_from(node.at("mesh")));
  for (const Node& dim : node.at("dims").items()) sharding.dims.push_back(dim_from(*sharding.mesh, dim));
  if (node.has("replicated")) sharding.replicated = axes_from(*sharding.mesh, node.at("replicated"));
  if (node.has("unreduced")) sharding.unreduced = axes_from(*sharding.mesh, node.at("unreduced"));
  if (node.has("reducer")) {
    const Node reducer = node.at("reducer");
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

Mesh mesh_from_json(std::string_view json) {
  const Json document = parse_document(json);
  return mesh_from(Node(document, ""));
}

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

TensorSharding sharding_from_json(std::string_view json) {
  const Json document = parse_document(json);
  return sharding_from(Node(document, ""));
}

void translate_json_error(std::string_view text, std::string_view subject, std::string_view must_hold) {
  const SdyCursor cursor(text);
  try {
    throw;
  } catch (const Json::parse_error& error) {
    // The library counts bytes from 1, and reports an unexpected end after the text.
    const size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    throw ParseError(error_message(subject, must_hold, reason_of(error.what()), {}), cursor.line(at),
                     cursor.column(at));
  } catch (const Json::out_of_range& error) {
    const size_t at = place_of_large_number(text, error.what());
    throw ParseError(error_message(subject, "a number must fit 64 bits", {}, {}), cursor.line(at), cursor.column(at));
  }
}

}  // namespace shardwise
