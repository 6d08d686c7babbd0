// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/mesh_json.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/mesh/sharding_text.h"

namespace shardwise {
namespace {

std::string parse_error(std::string_view json) {
  try {
    sharding_from_json(json);
  } catch (const ParseError& error) {
    return error.message();
  }
  return "no error";
}

TEST(MeshJson, RoundTrips) {
  EXPECT_EQ(mesh_to_json(Mesh("m", {{"x", 2}, {"y", 2}}, {3, 2, 1, 0})),
            R"({"name":"m","axes":[{"name":"x","size":2},{"name":"y","size":2}],"device_ids":[3,2,1,0]})");
  for (const Mesh& mesh :
       {Mesh("m", {{"x", 2}, {"y \"ü\"", 4}}), Mesh("", {}), Mesh("d", {}, {3}), Mesh("p", {{"x", 3}}, {2, 0, 1})}) {
    EXPECT_EQ(mesh_from_json(mesh_to_json(mesh)), mesh);
  }
}

TEST(ShardingJson, RoundTrips) {
  const auto mesh = std::make_shared<const Mesh>("m", std::vector<MeshAxis>{{"x", 4}, {"y", 2}, {"z", 2}});
  for (std::string_view source : {R"([{"x":(1)2, ?}p1, {}, {"x":(2)2}], replicated={"y"}, unreduced=max{"z"})", "[]",
                                  R"([{?}, {"z", "y"}], unreduced={"x"})"}) {
    const TensorSharding sharding = parse_short_sharding(source, mesh);
    EXPECT_EQ(sharding_from_json(sharding_to_json(sharding)), sharding);
  }
  EXPECT_EQ(sharding_to_json(parse_short_sharding(R"([{"x":(1)2, ?}p1], unreduced={"z"})", mesh)),
            R"({"mesh":{"name":"m","axes":[{"name":"x","size":4},{"name":"y","size":2},{"name":"z","size":2}]},)"
            R"("dims":[{"axes":[{"axis":"x","pre":1,"size":2}],"open":true,"priority":1}],"unreduced":["z"],)"
            R"("reducer":"sum"})");
}

TEST(MeshJsonError, NamesPositionOrPath) {
  EXPECT_EQ(
      parse_error("{\n  \"mesh\": }"),
      "2:11: JSON: expected a JSON document, got syntax error while parsing value - unexpected '}'; expected '[', "
      "'{', or a literal");
  EXPECT_EQ(
      parse_error("\"\xff\""),
      "1:2: JSON: expected a JSON document, got syntax error while parsing value - invalid string: ill-formed UTF-8 "
      "byte");
  EXPECT_EQ(parse_error("").substr(0, 36), "1:1: JSON: expected a JSON document,");
  EXPECT_EQ(parse_error("[]"), "1:1: JSON: the document must be an object, got array");
  EXPECT_EQ(parse_error("{}"), "1:1: JSON: the document must have \"mesh\"");
  EXPECT_EQ(parse_error(R"({"mesh": {"axes": 3}})"), "1:11: JSON: mesh.axes must be an array, got number");
  EXPECT_EQ(parse_error(R"({"mesh": {"axes": [{"name": "x", "size": "2"}]}})"),
            "1:34: JSON: mesh.axes[0].size must be an integer, got string");
  EXPECT_EQ(parse_error(R"({"mesh": {"axes": [{"name": "x", "size": 1.5}]}})"),
            "1:34: JSON: mesh.axes[0].size must be an integer, got number");
  EXPECT_EQ(parse_error(R"({"mesh": {"axes": [{"name": "x", "size": 9223372036854775808}]}})"),
            "1:34: JSON: mesh.axes[0].size must fit in 64 bits, got 9223372036854775808");
  EXPECT_EQ(parse_error(R"({"mesh": {"axes": [{"name": 1, "size": 2}]}})"),
            "1:21: JSON: mesh.axes[0].name must be a string, got number");
  EXPECT_EQ(parse_error(R"({"mesh": {"axes": [], "ids": []}})"),
            "1:23: JSON: mesh must have no other keys than name, axes, device_ids, got \"ids\"");
  EXPECT_EQ(parse_error(R"({"mesh": {"axes": []}, "dims": [{"axes": [], "open": 1}]})"),
            "1:46: JSON: dims[0].open must be true or false, got number");
  EXPECT_EQ(parse_error(R"({"mesh": {"axes": []}, "dims": [], "reducer": "mean"})"),
            "1:36: JSON: reducer must be sum, prod, max, min, and or or, got \"mean\"");
  EXPECT_EQ(parse_error(R"({"mesh": {"axes": []}, "dims": [{"axes": [3]}]})"),
            "1:43: JSON: dims[0].axes[0] must be an object, got number");
}

TEST(MeshJsonError, ImpossibleValues) {
  EXPECT_THROW(mesh_from_json(R"({"axes": [{"name": "x", "size": 0}]})"), MeshError);
  EXPECT_THROW(sharding_from_json(R"({"mesh": {"axes": []}, "dims": [{"axes": ["q"]}]})"), ShardingError);
  EXPECT_THROW(mesh_to_json(Mesh("m", {{"\xff", 2}})), MeshError);
  EXPECT_THROW(mesh_from_json("{\"name\": \"\xff\", \"axes\": []}"), ParseError);
  EXPECT_THROW(mesh_from_json(std::string(100000, '[')), ParseError);
}

}  // namespace
}  // namespace shardwise
