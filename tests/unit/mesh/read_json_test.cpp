// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/read_json.h"

#include <functional>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

JsonNode node_of(std::string_view text) { return JsonNode::parse(text, "a.json"); }

std::string error_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const ParseError& error) {
    return error.message();
  }
  return "no error";
}

TEST(JsonNode, ErrorsNameThePlace) {
  const JsonNode document = node_of(R"({"axes": [{"size": "4"}], "big": 18446744073709551615})");
  EXPECT_EQ(error_of([&] { document.at("axes").items()[0].at("size").integer(); }),
            "1:12: a.json: axes[0].size must be an integer, got string");
  EXPECT_EQ(error_of([&] { document.at("axes").items()[0].at("name"); }), "1:11: a.json: axes[0] must have \"name\"");
  EXPECT_EQ(error_of([&] { document.at("big").integer(); }),
            "1:27: a.json: big must fit in 64 bits, got 18446744073709551615");
  EXPECT_EQ(error_of([&] { document.expect_object({"axes"}); }),
            "1:27: a.json: the document must have no other keys than axes, got \"big\"");
  EXPECT_EQ(error_of([&] { document.at("axes").boolean(); }), "1:2: a.json: axes must be true or false, got array");
}

TEST(JsonNode, RefusesWhatTheLibraryAccepts) {
  EXPECT_EQ(error_of([] { node_of(R"([{"a": {"b": 1}, "c": {"b": 1, "b": 2}}])"); }),
            "1:32: a.json: a key must stand once in an object, got \"b\" twice");
  EXPECT_EQ(error_of([] { node_of(R"([{"a": {"a": 1}}, {"a": 2}])"); }), "no error");
  EXPECT_EQ(error_of([] { node_of(std::string(64, '[') + std::string(64, ']')); }), "no error");
  EXPECT_EQ(error_of([] { node_of(std::string(66, '[') + std::string(66, ']')); }),
            "1:65: a.json: brackets must be nested at most 64 deep");
  EXPECT_EQ(error_of([] { node_of("{\n  \"a\": }"); }).substr(0, 5), "2:8: ");
}

// Positions are those of keys and elements, whatever stands before them.
TEST(JsonNode, ErrorsHaveLineAndColumn) {
  const auto place_of = [](std::string_view text, const std::string& key) {
    const std::string error = error_of([&] { node_of(text).at(key).boolean(); });
    return error.substr(0, error.find(": "));
  };
  EXPECT_EQ(place_of(R"({"b": 1})", "b"), "1:2");
  EXPECT_EQ(place_of("{\n  \"a\" : 12 ,\n\n  \"b\"\n:\n1 }", "b"), "4:3");
  EXPECT_EQ(place_of(R"({"a":12,"b":1})", "b"), "1:9");
  EXPECT_EQ(place_of(R"({"a":[1,2],"b":1})", "b"), "1:12");
  EXPECT_EQ(place_of(R"({"a":{"c":-1e3} ,"b":1})", "b"), "1:18");
  EXPECT_EQ(place_of(R"({"a":"x\"\u0041, {[:","b":1})", "b"), "1:23");
  EXPECT_EQ(place_of(R"({"a":[{},[],[[null]],true] , "b":1})", "b"), "1:30");
  EXPECT_EQ(error_of([] { node_of("[10, 20\n,30]").items()[2].boolean(); }),
            "2:2: a.json: [2] must be true or false, got number");
  EXPECT_EQ(error_of([] { node_of(" 7").boolean(); }), "1:2: a.json: the document must be true or false, got number");
  EXPECT_EQ(error_of([] { JsonNode::parse(R"({"b": 1})", "a.json", false).at("b").boolean(); }),
            "a.json: b must be true or false, got number");
}

// 50,000 keys in one object, and merged onto as many others.
TEST(JsonNode, AreReadInLinearTime) {
  const auto object = [](std::string_view prefix) {
    std::string text = "{";
    for (int i = 0; i < 50'000; ++i) text += str(i == 0 ? "" : ",", "\"", prefix, i, "\":", i);
    return text + "}";
  };
  const JsonNode a = node_of(object("a")), b = JsonNode::parse(object("b"), "b.json", false);
  EXPECT_EQ(a.merged_onto(b, {"value"}).members().size(), 100'000u);
  EXPECT_EQ(a.text().size(), node_of(a.text()).text().size());
  EXPECT_EQ(error_of([] { node_of(std::string(JsonNode::kMostBytes + 1, ' ')); }),
            "a.json: must have at most 64 MiB, got 67108865 bytes");
}

// RFC 7396, but an object with one of the keys is replaced whole.
TEST(JsonNode, IsMergedOntoAnother) {
  const JsonNode base = node_of(R"({"a": {"b": 1, "c": 2}, "d": [1, 2], "e": {"value": 1, "source": "x"}, "f": 3})");
  const JsonNode patch = node_of(R"({"a": {"b": 5}, "d": [3], "e": {"value": 2}, "f": null, "g": {"h": 1}})");
  EXPECT_EQ(patch.merged_onto(base, {"value"}).text(),
            node_of(R"({"a": {"b": 5, "c": 2}, "d": [3], "e": {"value": 2}, "g": {"h": 1}})").text());
  EXPECT_EQ(patch.merged_onto(base, {}).at("e").text(), node_of(R"({"value": 2, "source": "x"})").text());
  // Nothing is added to a number of the base.
  EXPECT_EQ(node_of(R"({"e": {}})").merged_onto(base, {"value"}).at("e").text(), "{}");
  EXPECT_EQ(patch.without("a").without("g").text(), node_of(R"({"d": [3], "e": {"value": 2}, "f": null})").text());
}

}  // namespace
}  // namespace shardwise
