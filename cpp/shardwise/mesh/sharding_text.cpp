// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/sharding_text.h"

#include <memory>
#include <type_traits>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

constexpr std::string_view kShardingPrefix = "#sdy.sharding";
constexpr std::string_view kPlacementPrefix = "#shardwise.placement";
constexpr std::string_view kOwned = "owned";  // in place of a reducer: a sum of one element and neutral ones

int64_t parse_priority(SdyCursor& cursor, size_t start, std::string_view word) {
  const std::string_view number = word.substr(1);
  const bool digits = !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
  if (word[0] != 'p' || !digits) {
    cursor.fail_at(start, "a priority must be 'p' and a number, such as p1", quote(word));
  }
  // p01 and p1 would be two texts of one sharding; Shardy refuses p01, too.
  if (number.size() > 1 && number[0] == '0') {
    cursor.fail_at(start, "a priority must have no leading zero", quote(word));
  }
  // Parsed by the cursor, which reports numbers that are too large with their position.
  SdyCursor digits_only(cursor.text.substr(0, cursor.pos), start + 1);
  digits_only.subject = cursor.subject;
  return digits_only.take_integer("a priority");
}

DimSharding parse_dim(SdyCursor& cursor, const Mesh& mesh) {
  DimSharding dim;
  cursor.expect("{", "before the axes of a dim");
  cursor.take_items("}", "after an axis of a dim", [&] {
    if (dim.open) cursor.fail_here("'?' must be the last in a dim");
    if (cursor.take("?")) {
      dim.open = true;
      if (!cursor.peek("}")) cursor.fail_here("'?' must be the last in a dim, before '}'");
    } else {
      dim.axes.push_back(resolve(mesh, parse_axis(cursor)));
    }
  });
  const size_t start = cursor.token_start();
  if (const std::string_view word = cursor.take_word(); !word.empty()) {
    dim.priority = parse_priority(cursor, start, word);
  }
  return dim;
}

// Parses a list that is left out when it is empty.
std::vector<RawAxisRef> parse_some_axes(SdyCursor& cursor) {
  const size_t start = cursor.token_start();
  std::vector<RawAxisRef> axes = parse_axis_list(cursor);
  if (axes.empty()) cursor.fail_at(start, "a list of axes must have one", "{}", "leave the list out");
  return axes;
}

// Parses `max{"y"}` into a sharding or a placement.
template <class Sharding>
void parse_unreduced(SdyCursor& cursor, Sharding& sharding) {
  const size_t start = cursor.token_start();
  if constexpr (std::is_same_v<Sharding, Placement>) sharding.is_owned = cursor.take_keyword(kOwned);
  const std::string_view word = cursor.take_word();
  if (!word.empty()) {
    const auto reducer = reducer_from_name(word);
    if (!reducer) cursor.fail_at(start, "a reducer must be sum, prod, max, min, and or or", quote(word));
    sharding.reducer = *reducer;
  }
  sharding.unreduced = resolve(*sharding.mesh, parse_some_axes(cursor));
  // An omitted reducer means sum. Storing it makes `unreduced={"x"}` and `unreduced=sum{"x"}` the same.
  if (sharding.reducer == Reducer::kNone) sharding.reducer = Reducer::kSum;
}

DimPlacement parse_placed_dim(SdyCursor& cursor, const Mesh& mesh) {
  DimPlacement dim;
  dim.axes = resolve(mesh, parse_axis_list(cursor));
  cursor.expect(":", "before the block of a dim");
  dim.block = cursor.take_integer("the block of a dim");
  return dim;
}

// [dims], replicated={...}, unreduced={...}
void parse_body(SdyCursor& cursor, TensorSharding& sharding) {
  cursor.expect("[", "before the dims of a sharding");
  cursor.take_items("]", "after a dim of a sharding",
                    [&] { sharding.dims.push_back(parse_dim(cursor, *sharding.mesh)); });
  bool has_replicated = false;
  bool has_unreduced = false;
  while (cursor.take(",")) {
    const size_t start = cursor.token_start();
    const std::string_view word = cursor.take_word();
    // Shardy reads the two lists in either order, and prints `replicated` first.
    bool* given = word == "replicated" ? &has_replicated : word == "unreduced" ? &has_unreduced : nullptr;
    if (!given) {
      cursor.fail_at(start, "expected 'replicated' or 'unreduced' after ','",
                     word.empty() ? cursor.found() : quote(word));
    }
    // A second list would silently replace the first one.
    if (std::exchange(*given, true)) {
      cursor.fail_at(start, str(word, " must be given once"), {}, "write all its axes in one list");
    }
    cursor.expect("=", str("after '", word, "'"));
    if (given == &has_replicated) {
      sharding.replicated = resolve(*sharding.mesh, parse_some_axes(cursor));
    } else {
      parse_unreduced(cursor, sharding);
    }
  }
}

MeshPtr parse_mesh_reference(SdyCursor& cursor, const MeshLookup& find_mesh) {
  if (cursor.peek("@")) {
    const size_t start = cursor.pos;
    const std::string name = cursor.take_symbol();
    MeshPtr mesh = find_mesh ? find_mesh(name) : nullptr;
    if (!mesh) cursor.fail_at(start, "a mesh must be declared", symbol_text(name), "declare it, or write mesh<[...]>");
    return mesh;
  }
  if (!cursor.take("mesh")) cursor.fail_here("a sharding must begin with a mesh: '@name' or 'mesh<[...]>'");
  // An inline mesh has no name, so that two of them with equal axes are equal.
  return std::make_shared<const Mesh>(parse_mesh(cursor, std::string()));
}

// <@mesh, [...]>
TensorSharding parse_bare(SdyCursor& cursor, const MeshLookup& find_mesh) {
  TensorSharding sharding;
  cursor.expect("<", "before a sharding");
  sharding.mesh = parse_mesh_reference(cursor, find_mesh);
  cursor.expect(",", "after the mesh of a sharding");
  parse_body(cursor, sharding);
  cursor.expect(">", "after a sharding");
  return sharding;
}

// `, unreduced=max{"x"}`, or nothing.
std::string unreduced_text(const Mesh& mesh, AxisSpan axes, Reducer reducer) {
  if (axes.empty()) return {};
  return str(", unreduced=", reducer == Reducer::kSum ? "" : name(reducer), axis_list_text(mesh, axes));
}

template <class Parse>
auto parse_whole(std::string_view text, Parse&& parse) {
  SdyCursor cursor(text);
  auto parsed = parse(cursor);
  cursor.expect_end();
  return parsed;
}

}  // namespace

Mesh parse_mesh(SdyCursor& cursor, std::string symbol_name) {
  std::vector<MeshAxis> axes;
  Dims device_ids;
  cursor.expect("<", "before a mesh");
  cursor.expect("[", "before the axes of a mesh");
  cursor.take_items("]", "after an axis of a mesh", [&] {
    if (!cursor.peek("\"")) cursor.fail_here("an axis of a mesh must be a string and a size, such as \"x\"=2");
    std::string name = cursor.take_string();
    cursor.expect("=", "after the name of an axis");
    axes.push_back({std::move(name), cursor.take_integer("the size of an axis")});
  });
  if (cursor.take(",")) {
    cursor.expect("device_ids", "after the axes of a mesh");
    cursor.expect("=", "after 'device_ids'");
    cursor.expect("[", "before the device ids");
    if (cursor.peek("]")) cursor.fail_here("a list of device ids must have one", "leave the list out");
    cursor.take_items("]", "after a device id", [&] { device_ids.push_back(cursor.take_integer("a device id")); });
  }
  cursor.expect(">", "after a mesh");
  return Mesh(std::move(symbol_name), std::move(axes), std::move(device_ids));
}

RawAxisRef parse_axis(SdyCursor& cursor) {
  if (!cursor.peek("\"")) cursor.fail_here("an axis must be a string, such as \"x\" or \"x\":(1)2");
  RawAxisRef raw{cursor.take_string(), std::nullopt};
  if (!cursor.take(":")) return raw;
  cursor.expect("(", "before the pre-size of a sub-axis");
  const int64_t pre = cursor.take_integer("the pre-size of a sub-axis");
  cursor.expect(")", "after the pre-size of a sub-axis");
  raw.sub = {pre, cursor.take_integer("the size of a sub-axis")};
  return raw;
}

std::vector<RawAxisRef> parse_axis_list(SdyCursor& cursor) {
  std::vector<RawAxisRef> axes;
  cursor.expect("{", "before a list of axes");
  cursor.take_items("}", "after an axis", [&] { axes.push_back(parse_axis(cursor)); });
  return axes;
}

TensorSharding parse_sharding(SdyCursor& cursor, const MeshLookup& find_mesh) {
  // Attributes have the prefix, and the pretty forms of ops leave it out.
  cursor.take(kShardingPrefix);
  return parse_bare(cursor, find_mesh);
}

TensorSharding parse_short_sharding(SdyCursor& cursor, MeshPtr mesh) {
  check_internal(mesh != nullptr, "a short sharding was parsed without a mesh");
  TensorSharding sharding;
  sharding.mesh = std::move(mesh);
  parse_body(cursor, sharding);
  return sharding;
}

Placement parse_placement(SdyCursor& cursor, const MeshLookup& find_mesh) {
  Placement placement;
  cursor.take(kPlacementPrefix);
  cursor.expect("<", "before a placement");
  placement.mesh = parse_mesh_reference(cursor, find_mesh);
  cursor.expect(",", "after the mesh of a placement");
  cursor.expect("[", "before the dims of a placement");
  cursor.take_items("]", "after a dim of a placement",
                    [&] { placement.dims.push_back(parse_placed_dim(cursor, *placement.mesh)); });
  if (cursor.take(",")) {
    cursor.expect("unreduced", "after the dims of a placement");
    cursor.expect("=", "after 'unreduced'");
    parse_unreduced(cursor, placement);
  }
  cursor.expect(">", "after a placement");
  return placement;
}

TensorSharding parse_sharding(std::string_view text, const MeshLookup& find_mesh) {
  return parse_whole(text, [&](SdyCursor& cursor) { return parse_sharding(cursor, find_mesh); });
}

TensorSharding parse_short_sharding(std::string_view text, MeshPtr mesh) {
  return parse_whole(text, [&](SdyCursor& cursor) { return parse_short_sharding(cursor, std::move(mesh)); });
}

std::string dim_text(const Mesh& mesh, const DimSharding& dim) {
  std::string text = axis_list_text(mesh, dim.axes);
  // Before the closing brace: {"a"} becomes {"a", ?}.
  if (dim.open) text.insert(text.size() - 1, dim.axes.empty() ? "?" : ", ?");
  if (dim.priority) text += "p" + std::to_string(*dim.priority);
  return text;
}

std::string short_text(const TensorSharding& sharding) {
  const Mesh& mesh = *sharding.mesh;
  std::string text = str("[", join(sharding.dims, ", ", [&](const auto& dim) { return dim_text(mesh, dim); }), "]");
  if (!sharding.replicated.empty()) text += ", replicated=" + axis_list_text(mesh, sharding.replicated);
  return text + unreduced_text(mesh, sharding.unreduced, sharding.pending_reducer());
}

std::string bare_text(const TensorSharding& sharding) {
  return "<" + sharding.mesh->reference() + ", " + short_text(sharding) + ">";
}

std::string text(const TensorSharding& sharding) { return std::string(kShardingPrefix) + bare_text(sharding); }

std::string text(const Placement& placement) {
  const Mesh& mesh = *placement.mesh;
  const auto text_of_dim = [&](const auto& dim) { return str(axis_list_text(mesh, dim.axes), ": ", dim.block); };
  return str(kPlacementPrefix, "<", mesh.reference(), ", [", join(placement.dims, ", ", text_of_dim), "]",
             placement.is_owned ? str(", unreduced=", kOwned, axis_list_text(mesh, placement.unreduced))
                                : unreduced_text(mesh, placement.unreduced, placement.reducer),
             ">");
}

std::string per_value_text(const std::vector<TensorSharding>& shardings) {
  return str("#sdy.sharding_per_value<[", join(shardings, ", ", bare_text), "]>");
}

}  // namespace shardwise
