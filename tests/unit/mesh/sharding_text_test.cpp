// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/sharding_text.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

MeshPtr abcd() {
  static const MeshPtr mesh =
      std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"a", 4}, {"b", 8}, {"c", 2}, {"d", 2}});
  return mesh;
}

MeshPtr find_mesh(std::string_view name) { return name == "mesh" ? abcd() : nullptr; }

std::string round_trip(std::string_view source) { return text(parse_sharding(source, find_mesh)); }
std::string short_round_trip(std::string_view source) { return short_text(parse_short_sharding(source, abcd())); }

std::string error_of(std::string_view source) {
  try {
    parse_sharding(source, find_mesh);
  } catch (const ParseError& error) {
    return error.message();
  }
  return "no error";
}

std::string short_error(std::string_view source) {
  try {
    parse_short_sharding(source, abcd());
  } catch (const ParseError& error) {
    return error.message();
  }
  return "no error";
}

TEST(ShardingText, RoundTrips) {
  for (std::string_view source : {
           R"(#sdy.sharding<@mesh, [{"a", ?}, {?}, {}, {"b":(1)2}p1], replicated={"c"}, unreduced=max{"d"}>)",
           R"(#sdy.sharding<@mesh, []>)",
           R"(#sdy.sharding<@mesh, [{?}p0, {"b":(2)2, "a", "b":(4)2, ?}p12]>)",
           R"(#sdy.sharding<@mesh, [{}], unreduced={"b":(1)2, "c"}>)",
           R"(#sdy.sharding<mesh<["x"=2]>, [{"x"}]>)",
           R"(#sdy.sharding<mesh<["x"=2, "y y"=2], device_ids=[3, 2, 1, 0]>, [{"y y"}, {}]>)",
           R"(#sdy.sharding<mesh<[], device_ids=[3]>, []>)",
       }) {
    EXPECT_EQ(round_trip(source), source);
    EXPECT_EQ(parse_sharding(round_trip(source), find_mesh), parse_sharding(source, find_mesh));
  }
  for (std::string_view reducer : {"prod", "max", "min", "and", "or"}) {
    const std::string source = R"([{"a"}], unreduced=)" + std::string(reducer) + R"({"d"})";
    EXPECT_EQ(short_round_trip(source), source);
  }
}

TEST(ShardingText, BareAndShortForms) {
  const auto sharding = parse_sharding(R"(<@mesh,[{"b":(1)2,?}p1 , { }] , replicated = {"c"}>)", find_mesh);
  EXPECT_EQ(sharding.mesh, abcd());
  EXPECT_EQ(bare_text(sharding), R"(<@mesh, [{"b":(1)2, ?}p1, {}], replicated={"c"}>)");
  EXPECT_EQ(short_text(sharding), R"([{"b":(1)2, ?}p1, {}], replicated={"c"})");
  EXPECT_EQ(parse_short_sharding(short_text(sharding), abcd()), sharding);
  EXPECT_EQ(dim_text(*abcd(), sharding.dims[0]), R"({"b":(1)2, ?}p1)");
}

TEST(ShardingText, NormalisesOrderAndSum) {
  EXPECT_EQ(short_round_trip(R"([], unreduced=sum{"d"}, replicated={"c"})"),
            R"([], replicated={"c"}, unreduced={"d"})");
}

TEST(ShardingText, LeavesTheCursorBehindIt) {
  SdyCursor cursor(R"(x = #sdy.sharding<@mesh, [{"a"}]>, y)", 4);
  parse_sharding(cursor, find_mesh);
  EXPECT_EQ(cursor.text.substr(cursor.pos), ", y");
}

Mesh mesh_of(std::string_view text, std::string name = {}) {
  SdyCursor cursor(text);
  Mesh mesh = parse_mesh(cursor, std::move(name));
  cursor.expect_end();
  return mesh;
}

std::vector<RawAxisRef> axes_of(std::string_view text) {
  SdyCursor cursor(text);
  std::vector<RawAxisRef> axes = parse_axis_list(cursor);
  cursor.expect_end();
  return axes;
}

TEST(ShardingText, MeshesAndAxisLists) {
  for (std::string_view source :
       {R"(<["x"=2, "y"=4]>)", R"(<["x"=2], device_ids=[1, 0]>)", "<[]>", "<[], device_ids=[3]>"}) {
    EXPECT_EQ(mesh_of(source, "m").text(), source);
  }
  EXPECT_EQ(mesh_of(R"(<["a"=1], device_ids=[0]>)").text(), R"(<["a"=1]>)");
  EXPECT_EQ(mesh_of("<[]>", "m").name(), "m");
  EXPECT_EQ(axes_of(R"({"x", "y":(1)2})"), (std::vector<RawAxisRef>{{"x", {}}, {"y", {{1, 2}}}}));
  EXPECT_TRUE(axes_of("{}").empty());
  EXPECT_THROW(mesh_of(R"(<["x"=0]>)"), MeshError);
  EXPECT_THROW(parse_short_sharding(R"([{"q"}])", abcd()), ShardingError);
}

TEST(ShardingTextError, Priority) {
  EXPECT_EQ(short_error("[{?}q1]"), R"(1:5: sharding text: a priority must be 'p' and a number, such as p1, got "q1")");
  EXPECT_EQ(short_error("[{?}p]"), R"(1:5: sharding text: a priority must be 'p' and a number, such as p1, got "p")");
  EXPECT_EQ(short_error("[{?}p1x]"),
            R"(1:5: sharding text: a priority must be 'p' and a number, such as p1, got "p1x")");
  EXPECT_EQ(short_error("[{?}p01]"), R"(1:5: sharding text: a priority must have no leading zero, got "p01")");
  EXPECT_EQ(short_error("[{?}p9223372036854775808]"),
            "1:6: sharding text: a priority must fit in 64 bits, got 9223372036854775808");
  EXPECT_EQ(short_error("[{?}1]"), R"(1:5: sharding text: expected ',' or ']' after a dim of a sharding, got "1")");
}

TEST(ShardingTextError, MissingPunctuation) {
  EXPECT_EQ(error_of("#sdy.sharding @mesh"), R"(1:15: sharding text: expected '<' before a sharding, got "@")");
  EXPECT_EQ(error_of("<@mesh [{}]>"), R"(1:8: sharding text: expected ',' after the mesh of a sharding, got "[")");
  EXPECT_EQ(error_of("<@mesh, {}>"), R"(1:9: sharding text: expected '[' before the dims of a sharding, got "{")");
  EXPECT_EQ(error_of("<@mesh, [{}]"), "1:13: sharding text: expected '>' after a sharding, got the end of the text");
  EXPECT_EQ(error_of("<@mesh, [{}]> x"), R"(1:15: sharding text: expected the end of the text, got "x")");
  EXPECT_EQ(short_error("[\"a\"]"), R"(1:2: sharding text: expected '{' before the axes of a dim, got '"')");
  EXPECT_EQ(short_error("[{\"a\" \"b\"}]"),
            R"(1:7: sharding text: expected ',' or '}' after an axis of a dim, got '"')");
  EXPECT_EQ(short_error("[{}\n{}]"), R"(2:1: sharding text: expected ',' or ']' after a dim of a sharding, got "{")");
  EXPECT_EQ(short_error("[{}"),
            "1:4: sharding text: expected ',' or ']' after a dim of a sharding, got the end of the text");
  EXPECT_EQ(short_error("[], replicated{}"), R"(1:15: sharding text: expected '=' after 'replicated', got "{")");
  EXPECT_EQ(short_error("[], replicated=\"a\""), R"(1:16: sharding text: expected '{' before a list of axes, got '"')");
  EXPECT_EQ(short_error("[], replicated={\"a\"; }"),
            R"(1:20: sharding text: expected ',' or '}' after an axis, got ";")");
}

TEST(ShardingTextError, Axis) {
  const std::string a_string = R"(sharding text: an axis must be a string, such as "x" or "x":(1)2, got )";
  EXPECT_EQ(short_error("[{a}]"), "1:3: " + a_string + R"("a")");
  EXPECT_EQ(short_error("[{\"a\", }]"), "1:8: " + a_string + R"("}")");
  EXPECT_EQ(short_error(R"([{"b":1}])"),
            R"(1:7: sharding text: expected '(' before the pre-size of a sub-axis, got "1")");
  EXPECT_EQ(short_error(R"([{"b":(x)2}])"),
            R"(1:8: sharding text: expected a number as the pre-size of a sub-axis, got "x")");
  EXPECT_EQ(short_error(R"([{"b":(1}])"),
            R"(1:9: sharding text: expected ')' after the pre-size of a sub-axis, got "}")");
  EXPECT_EQ(short_error(R"([{"b":(1)}])"),
            R"(1:10: sharding text: expected a number as the size of a sub-axis, got "}")");
  EXPECT_EQ(short_error(R"([{"b":(1)99999999999999999999}])"),
            "1:10: sharding text: the size of a sub-axis must fit in 64 bits, got 99999999999999999999");
  EXPECT_EQ(short_error(R"([{?, "a"}])"), R"(1:4: sharding text: '?' must be the last in a dim, before '}', got ",")");
}

TEST(ShardingTextError, Keywords) {
  EXPECT_EQ(error_of("<@mesh, [{}], >"),
            R"(1:15: sharding text: expected 'replicated' or 'unreduced' after ',', got ">")");
  EXPECT_EQ(short_error("[{}], repl={\"a\"}"),
            R"(1:7: sharding text: expected 'replicated' or 'unreduced' after ',', got "repl")");
  EXPECT_EQ(short_error("[], unreduced=mean{\"a\"}"),
            R"(1:15: sharding text: a reducer must be sum, prod, max, min, and or or, got "mean")");
  EXPECT_EQ(short_error("[], replicated={\"a\"},\n  replicated={\"b\"}"),
            "2:3: sharding text: replicated must be given once; write all its axes in one list");
  EXPECT_EQ(short_error(R"([], unreduced={"a"}, unreduced={"b"})"),
            "1:22: sharding text: unreduced must be given once; write all its axes in one list");
  EXPECT_EQ(short_error("[], replicated={}"),
            "1:16: sharding text: a list of axes must have one, got {}; leave the list out");
  EXPECT_EQ(short_error("[], unreduced=max{}"),
            "1:18: sharding text: a list of axes must have one, got {}; leave the list out");
}

TEST(ShardingTextError, Mesh) {
  EXPECT_EQ(error_of("<[{}]>"),
            R"(1:2: sharding text: a sharding must begin with a mesh: '@name' or 'mesh<[...]>', got "[")");
  EXPECT_EQ(error_of("<@other, [{}]>"),
            "1:2: sharding text: a mesh must be declared, got @other; declare it, or write mesh<[...]>");
  EXPECT_EQ(error_of("<mesh[{}]>"), R"(1:6: sharding text: expected '<' before a mesh, got "[")");
  EXPECT_EQ(error_of("<mesh<\"x\"=2>, []>"), R"(1:7: sharding text: expected '[' before the axes of a mesh, got '"')");
  EXPECT_EQ(error_of("<mesh<[x=2]>, []>"),
            R"(1:8: sharding text: an axis of a mesh must be a string and a size, such as "x"=2, got "x")");
  EXPECT_EQ(error_of("<mesh<[\"x\" 2]>, []>"),
            R"(1:12: sharding text: expected '=' after the name of an axis, got "2")");
  EXPECT_EQ(error_of("<mesh<[\"x\"=y]>, []>"),
            R"(1:12: sharding text: expected a number as the size of an axis, got "y")");
  EXPECT_EQ(error_of("<mesh<[\"x\"=2], ids=[0]>, []>"),
            R"(1:16: sharding text: expected 'device_ids' after the axes of a mesh, got "ids")");
  EXPECT_EQ(error_of("<mesh<[\"x\"=2], device_ids=[0; 1]>, []>"),
            R"(1:29: sharding text: expected ',' or ']' after a device id, got ";")");
  EXPECT_EQ(error_of("<mesh<[\"x\"=2], []>"),
            R"(1:16: sharding text: expected 'device_ids' after the axes of a mesh, got "[")");
}

// No prefix and no single changed byte of a text crashes the parser.
TEST(ShardingTextError, SurvivesDamage) {
  const std::string whole =
      R"(#sdy.sharding<mesh<["a"=4, "b"=8], device_ids=[0]>, [{"a", ?}p1, {"b":(1)2}], replicated={"b":(2)2}>)";
  for (size_t i = 0; i < whole.size(); ++i) {
    for (char c : {'\0', '"', '\\', '{', '<', '9', 'p', '\xff'}) {
      std::string damaged = whole;
      damaged[i] = c;
      EXPECT_NO_FATAL_FAILURE({
        try {
          parse_sharding(damaged, find_mesh);
        } catch (const Error&) {
        }
      });
    }
    EXPECT_THROW(parse_sharding(whole.substr(0, i), find_mesh), Error);
  }
}

}  // namespace
}  // namespace shardwise
