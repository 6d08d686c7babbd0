// SPDX-License-Identifier: Apache-2.0
//
// Reads JSON whose errors name the place: each value knows its path in the document.
//
//   const JsonNode document = JsonNode::parse(R"({"axes": [{"size": "4"}]})", "mesh.json");
//   document.at("axes").items()[0].at("size").integer();
//   // ParseError: 1:12: mesh.json: axes[0].size must be an integer, got string
//
// The line and column are those of the key, or of the element of an array. Text that is no JSON is a ParseError, too; so
// are a key that stands twice in one object, brackets nested deeper than 64, and texts of more than 64 MiB. The time to
// read is linear in the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardwise {

class JsonNode {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 20;

  // `subject` begins each message: "JSON", or the name of a file. Without places, errors have no line and column: of
  // text that no user wrote.
  static JsonNode parse(std::string_view text, std::string subject, bool has_places = true);
  // This document in place of the parts of `base` that it has, as in RFC 7396: objects are merged, null removes a key,
  // anything else replaces; so does what has, or replaces an object with, one of the keys `whole`. Errors have this
  // document's subject. `base` must be read without places.
  JsonNode merged_onto(const JsonNode& base, std::initializer_list<std::string_view> whole) const;
  JsonNode without(std::string_view key) const;  // of the document
  std::string text() const;                      // indented by two

  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_boolean() const;
  bool has(std::string_view key) const;
  JsonNode at(const std::string& key) const;  // which must be there

  // Rejects keys outside `keys`, so that a misspelled key is not ignored.
  void expect_object(std::initializer_list<std::string_view> keys) const;
  void expect_object() const;
  std::vector<std::pair<std::string, JsonNode>> members() const;  // of an object, in the order of the text
  std::vector<JsonNode> items() const;                            // of an array
  std::string string() const;
  bool boolean() const;
  int64_t integer() const;
  double number() const;

  const std::string& path() const { return path_; }  // "axes[0].size"; "" for the document
  [[noreturn]] void fail_form(std::string_view must_hold, std::string_view got = {},
                              std::string_view way_out = {}) const;

 private:
  [[noreturn]] void fail_at(size_t place, std::string_view must_hold, std::string_view got,
                            std::string_view way_out) const;
  struct Document;
  struct Access;  // the library's types stay in read_json.cpp
  JsonNode(std::shared_ptr<const Document> document, const void* value, std::string path)
      : document_(std::move(document)), value_(value), path_(std::move(path)) {}

  std::shared_ptr<const Document> document_;
  const void* value_;  // in the document
  std::string path_;
};

// In a handler of an error of the JSON library: the same as ParseError of `subject`, with its place. `must_hold` is for a
// text that is no JSON.
[[noreturn]] void translate_json_error(std::string_view text, std::string_view subject, std::string_view must_hold);

}  // namespace shardwise
