// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/read_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/mesh/mesh.h"
#include "shardwise/mesh/sdy_cursor.h"

namespace shardwise {
namespace {

// Keys keep the order in which they stand.
using OrderedJson = nlohmann::ordered_json;

// The library merges, copies and prints nested values by recursion.
constexpr int kMostDepth = 64;

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

// Rejects what the library accepts, while it reads.
class FormChecks {
 public:
  explicit FormChecks(const std::string& subject) : subject_(subject) {}

  bool operator()(int depth, OrderedJson::parse_event_t event, const OrderedJson& parsed) {
    if (depth > kMostDepth) fail_document(str("brackets must be nested at most ", kMostDepth, " deep"), {});
    if (event == OrderedJson::parse_event_t::object_start) {
      keys_.emplace_back();
    } else if (event == OrderedJson::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == OrderedJson::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) fail_document("a key must stand once in an object", quote(key) + " twice");
    }
    return true;
  }

 private:
  [[noreturn]] void fail_document(std::string_view must_hold, std::string_view got) const {
    throw ParseError(error_message(subject_, must_hold, got, {}), 1, 1);
  }

  const std::string& subject_;
  std::vector<std::set<std::string>> keys_;  // of the objects around the position
};

void merge(OrderedJson& base, const OrderedJson& patch, std::initializer_list<std::string_view> whole) {
  const bool is_merged =
      patch.is_object() && base.is_object() &&
      std::ranges::none_of(whole, [&](std::string_view key) { return patch.contains(std::string(key)); });
  if (!is_merged) {
    base = patch;
    return;
  }
  for (const auto& item : patch.items()) {
    if (item.value().is_null()) {
      base.erase(item.key());
    } else {
      merge(base[item.key()], item.value(), whole);
    }
  }
}

}  // namespace

struct JsonNode::Document {
  OrderedJson json;
  std::string subject;
};

struct JsonNode::Access {
  static const OrderedJson& json(const JsonNode& node) { return *static_cast<const OrderedJson*>(node.value_); }
  static JsonNode root(OrderedJson json, std::string subject) {
    auto document = std::make_shared<const Document>(Document{std::move(json), std::move(subject)});
    const void* value = &document->json;
    return {std::move(document), value, ""};
  }
  static JsonNode child(const JsonNode& node, const OrderedJson& json, std::string path) {
    return {node.document_, &json, std::move(path)};
  }
};

JsonNode JsonNode::parse(std::string_view text, std::string subject) {
  try {
    FormChecks checks(subject);
    OrderedJson json = OrderedJson::parse(
        text.begin(), text.end(),
        [&](int depth, OrderedJson::parse_event_t event, OrderedJson& parsed) { return checks(depth, event, parsed); });
    return Access::root(std::move(json), std::move(subject));
  } catch (const OrderedJson::exception&) {
    translate_json_error(text, subject, "expected a JSON document");
  }
}

JsonNode JsonNode::merged_onto(const JsonNode& base, std::initializer_list<std::string_view> whole) const {
  OrderedJson merged = Access::json(base);
  merge(merged, Access::json(*this), whole);
  return Access::root(std::move(merged), document_->subject);
}

std::string JsonNode::text() const { return Access::json(*this).dump(2); }

bool JsonNode::is_object() const { return Access::json(*this).is_object(); }
bool JsonNode::is_array() const { return Access::json(*this).is_array(); }
bool JsonNode::is_string() const { return Access::json(*this).is_string(); }
bool JsonNode::is_boolean() const { return Access::json(*this).is_boolean(); }
bool JsonNode::has(const std::string& key) const { return Access::json(*this).contains(key); }

JsonNode JsonNode::at(const std::string& key) const {
  const OrderedJson& json = Access::json(*this);
  if (!json.contains(key)) fail_form("must have " + quote(key));
  return Access::child(*this, json[key], path_.empty() ? key : path_ + "." + key);
}

void JsonNode::expect_object() const {
  if (!is_object()) fail_form("must be an object", Access::json(*this).type_name());
}

void JsonNode::expect_object(std::initializer_list<std::string_view> keys) const {
  expect_object();
  for (const auto& item : Access::json(*this).items()) {
    if (std::find(keys.begin(), keys.end(), item.key()) != keys.end()) continue;
    fail_form(str("must have no other keys than ", join(keys, ", ")), quote(item.key()));
  }
}

std::vector<std::pair<std::string, JsonNode>> JsonNode::members() const {
  expect_object();
  std::vector<std::pair<std::string, JsonNode>> members;
  for (const auto& item : Access::json(*this).items()) members.emplace_back(item.key(), at(item.key()));
  return members;
}

std::vector<JsonNode> JsonNode::items() const {
  const OrderedJson& json = Access::json(*this);
  if (!json.is_array()) fail_form("must be an array", json.type_name());
  std::vector<JsonNode> nodes;
  for (size_t i = 0; i < json.size(); ++i) nodes.push_back(Access::child(*this, json[i], str(path_, "[", i, "]")));
  return nodes;
}

std::string JsonNode::string() const {
  const OrderedJson& json = Access::json(*this);
  if (!json.is_string()) fail_form("must be a string", json.type_name());
  return json.get<std::string>();
}

bool JsonNode::boolean() const {
  const OrderedJson& json = Access::json(*this);
  if (!json.is_boolean()) fail_form("must be true or false", json.type_name());
  return json.get<bool>();
}

int64_t JsonNode::integer() const {
  const OrderedJson& json = Access::json(*this);
  if (!json.is_number_integer()) fail_form("must be an integer", json.type_name());
  // The library would wrap such a number to a negative one.
  if (json.is_number_unsigned() && json.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    fail_form("must fit in 64 bits", json.dump());
  }
  return json.get<int64_t>();
}

double JsonNode::number() const {
  const OrderedJson& json = Access::json(*this);
  if (!json.is_number()) fail_form("must be a number", json.type_name());
  return json.get<double>();
}

void JsonNode::fail_form(std::string_view must_hold, std::string_view got, std::string_view way_out) const {
  // The parsed document has no positions, so the path is the most precise location.
  throw ParseError(
      error_message(document_->subject, str(path_.empty() ? "the document" : path_, " ", must_hold), got, way_out), 1,
      1);
}

void translate_json_error(std::string_view text, std::string_view subject, std::string_view must_hold) {
  const SdyCursor cursor(text);
  try {
    throw;
  } catch (const OrderedJson::parse_error& error) {
    // The library counts bytes from 1, and reports an unexpected end after the text.
    const size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    throw ParseError(error_message(subject, must_hold, reason_of(error.what()), {}), cursor.line(at),
                     cursor.column(at));
  } catch (const OrderedJson::out_of_range& error) {
    const size_t at = place_of_large_number(text, error.what());
    throw ParseError(error_message(subject, "a number must fit 64 bits", {}, {}), cursor.line(at), cursor.column(at));
  }
}

}  // namespace shardwise
