// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/read_json.h"

#include <functional>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"

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
            "1:1: a.json: axes[0].size must be an integer, got string");
  EXPECT_EQ(error_of([&] { document.at("axes").items()[0].at("name"); }), "1:1: a.json: axes[0] must have \"name\"");
  EXPECT_EQ(error_of([&] { document.at("big").integer(); }),
            "1:1: a.json: big must fit in 64 bits, got 18446744073709551615");
  EXPECT_EQ(error_of([&] { document.expect_object({"axes"}); }),
            "1:1: a.json: the document must have no other keys than axes, got \"big\"");
  EXPECT_EQ(error_of([&] { document.at("axes").boolean(); }), "1:1: a.json: axes must be true or false, got array");
}

TEST(JsonNode, RefusesWhatTheLibraryAccepts) {
  EXPECT_EQ(error_of([] { node_of(R"([{"a": {"b": 1}, "c": {"b": 1, "b": 2}}])"); }),
            "1:1: a.json: a key must stand once in an object, got \"b\" twice");
  EXPECT_EQ(error_of([] { node_of(R"([{"a": {"a": 1}}, {"a": 2}])"); }), "no error");
  EXPECT_EQ(error_of([] { node_of(std::string(64, '[') + std::string(64, ']')); }), "no error");
  EXPECT_EQ(error_of([] { node_of(std::string(66, '[') + std::string(66, ']')); }),
            "1:1: a.json: brackets must be nested at most 64 deep");
  EXPECT_EQ(error_of([] { node_of("{\n  \"a\": }"); }).substr(0, 5), "2:8: ");
}

// RFC 7396, but an object with one of the keys is replaced whole.
TEST(JsonNode, IsMergedOntoAnother) {
  const JsonNode base = node_of(R"({"a": {"b": 1, "c": 2}, "d": [1, 2], "e": {"value": 1, "source": "x"}, "f": 3})");
  const JsonNode patch = node_of(R"({"a": {"b": 5}, "d": [3], "e": {"value": 2}, "f": null, "g": {"h": 1}})");
  EXPECT_EQ(patch.merged_onto(base, {"value"}).text(),
            node_of(R"({"a": {"b": 5, "c": 2}, "d": [3], "e": {"value": 2}, "g": {"h": 1}})").text());
  EXPECT_EQ(patch.merged_onto(base, {}).at("e").text(), node_of(R"({"value": 2, "source": "x"})").text());
}

}  // namespace
}  // namespace shardwise
