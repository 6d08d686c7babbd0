// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/read_json.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/mesh/mesh.h"
#include "shardwise/mesh/sdy_cursor.h"

namespace shardwise {

// Keys keep the order in which they stand.
using OrderedJson = nlohmann::ordered_json;

namespace json {

constexpr size_t kNoPlace = std::string_view::npos;

struct Compound;

// A value of a document, and where it begins: at its key, if it has one. Documents share what they merge.
struct Value {
  OrderedJson leaf;  // of an object or an array, an empty one
  std::shared_ptr<const Compound> parts = nullptr;
  size_t place = kNoPlace;
};

// The values in an array or an object; the library's own objects find a key in linear time.
struct Compound {
  std::vector<std::string> keys = {};  // of an object
  std::vector<Value> values = {};

  const Value* find(std::string_view key) const {
    const auto found = std::ranges::find(keys, key);
    return found == keys.end() ? nullptr : &values[static_cast<size_t>(found - keys.begin())];
  }
};

}  // namespace json

namespace {

using json::Compound;
using json::kNoPlace;
using json::Value;

// Values are merged, printed and destroyed by recursion.
constexpr size_t kMostDepth = 64;

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

// With the line and column of a place in the text, if it is known.
[[noreturn]] void throw_at(std::string_view text, size_t place, const std::string& message) {
  if (place == kNoPlace) throw ParseError(message, 0, 0);
  const SdyCursor cursor(text);
  throw ParseError(message, cursor.line(place), cursor.column(place));
}

// Reads characters, and counts those that are read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, size_t& count) : at_(at), count_(&count) {}

  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  size_t* count_;
};

// Makes the values of a document while the library reads it, and rejects what the library accepts.
class ValueBuilder {
 public:
  ValueBuilder(std::string_view text, const std::string& subject, bool has_places)
      : text_(text), subject_(subject), has_places_(has_places) {}

  Value parse() {
    OrderedJson::sax_parse(CountingIterator(text_.data(), read_), CountingIterator(text_.data() + text_.size(), read_),
                           this);
    return std::move(root_);
  }

  // What the library calls.
  using number_integer_t = OrderedJson::number_integer_t;
  using number_unsigned_t = OrderedJson::number_unsigned_t;
  using number_float_t = OrderedJson::number_float_t;
  using string_t = OrderedJson::string_t;
  using binary_t = OrderedJson::binary_t;
  bool null() { return add_leaf(nullptr); }
  bool boolean(bool value) { return add_leaf(value); }
  bool number_integer(number_integer_t value) { return add_leaf(value); }
  bool number_unsigned(number_unsigned_t value) { return add_leaf(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) { return add_leaf(value); }
  bool string(string_t& value) { return add_leaf(std::move(value)); }
  bool binary(binary_t& /*value*/) { return false; }  // of other formats than text
  bool start_object(size_t /*size*/) { return open(OrderedJson::object()); }
  bool start_array(size_t /*size*/) { return open(OrderedJson::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(string_t& key) {
    Open& object = open_.back();
    object.place = next_place();
    if (!object.known.insert(key).second) {
      fail_at(object.place, "a key must stand once in an object", quote(key) + " twice");
    }
    object.parts->keys.push_back(std::move(key));
    return true;
  }
  bool parse_error(size_t /*at*/, const std::string& /*token*/, const nlohmann::detail::exception& error) {
    if (const auto* form = dynamic_cast<const OrderedJson::parse_error*>(&error)) throw *form;
    throw dynamic_cast<const OrderedJson::out_of_range&>(error);
  }

 private:
  // An object or an array whose end is not read.
  struct Open {
    OrderedJson leaf;
    size_t place = kNoPlace;  // of the key whose value follows; before the first key, its own
    size_t own_place = kNoPlace;
    std::shared_ptr<Compound> parts = std::make_shared<Compound>();
    std::unordered_set<std::string> known = {};  // keys
  };

  // Where the token begins that was read last. The library may have read one character after a number.
  size_t next_place() {
    if (read_ == 0) return kNoPlace;
    const size_t place = text_.find_first_not_of(" \t\r\n,:", end_);
    end_ = read_;
    return has_places_ ? std::min(place, text_.size()) : kNoPlace;
  }
  // A member of an object is where its key is.
  size_t value_place() {
    const size_t place = next_place();
    return !open_.empty() && open_.back().leaf.is_object() ? open_.back().place : place;
  }

  template <class T>
  bool add_leaf(T&& value) {
    const size_t place = value_place();
    add({.leaf = std::forward<T>(value), .place = place});
    return true;
  }
  void add(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      open_.back().parts->values.push_back(std::move(value));
    }
  }
  bool open(OrderedJson empty) {
    const size_t place = value_place();
    if (open_.size() == kMostDepth) {
      fail_at(place, str("brackets must be nested at most ", kMostDepth, " deep"), {});
    }
    open_.push_back({.leaf = std::move(empty), .own_place = place});
    return true;
  }
  bool close() {
    static_cast<void>(next_place());
    Open closed = std::move(open_.back());
    open_.pop_back();
    add({.leaf = std::move(closed.leaf), .parts = std::move(closed.parts), .place = closed.own_place});
    return true;
  }
  [[noreturn]] void fail_at(size_t place, std::string_view must_hold, std::string_view got) const {
    throw_at(text_, place, error_message(subject_, must_hold, got, {}));
  }

  const std::string_view text_;
  const std::string& subject_;
  const bool has_places_;
  size_t read_ = 0, end_ = 0;  // characters: in all, and up to the end of the token before
  std::vector<Open> open_;     // around the position
  Value root_;
};

Value merged(const Value& base, const Value& patch, std::initializer_list<std::string_view> whole) {
  const auto stands_alone = [&](const Value& value) {
    return std::ranges::any_of(whole, [&](std::string_view key) { return value.parts->find(key) != nullptr; });
  };
  const bool is_merged = patch.leaf.is_object() && base.leaf.is_object() && !stands_alone(patch) && !stands_alone(base);
  if (!is_merged) return patch;
  std::unordered_map<std::string_view, size_t> places;  // in the patch
  for (size_t i = 0; i < patch.parts->keys.size(); ++i) places.emplace(patch.parts->keys[i], i);
  auto parts = std::make_shared<Compound>();
  const auto add = [&](const std::string& key, Value value) {
    if (value.leaf.is_null()) return;
    parts->keys.push_back(key);
    parts->values.push_back(std::move(value));
  };
  for (size_t i = 0; i < base.parts->keys.size(); ++i) {
    const auto found = places.find(base.parts->keys[i]);
    const Value& own = base.parts->values[i];
    add(base.parts->keys[i], found == places.end() ? own : merged(own, patch.parts->values[found->second], whole));
    if (found != places.end()) places.erase(found);
  }
  for (size_t i = 0; i < patch.parts->keys.size(); ++i) {
    if (places.contains(patch.parts->keys[i])) add(patch.parts->keys[i], patch.parts->values[i]);
  }
  return {.leaf = OrderedJson::object(), .parts = std::move(parts), .place = patch.place};
}

void append_text(std::string& text, const Value& value, size_t indent) {
  if (!value.parts || value.parts->values.empty()) {
    text += value.leaf.dump();
    return;
  }
  const bool is_object = value.leaf.is_object();
  text += is_object ? "{" : "[";
  for (size_t i = 0; i < value.parts->values.size(); ++i) {
    text += i > 0 ? ",\n" : "\n";
    text.append(indent + 2, ' ');
    if (is_object) text += OrderedJson(value.parts->keys[i]).dump() + ": ";
    append_text(text, value.parts->values[i], indent + 2);
  }
  text += "\n";
  text.append(indent, ' ');
  text += is_object ? "}" : "]";
}

}  // namespace

struct JsonNode::Document {
  Value root;
  std::string subject;
  std::shared_ptr<const std::string> text = nullptr;  // to which places belong
};

struct JsonNode::Access {
  static const Value& value(const JsonNode& node) { return *static_cast<const Value*>(node.value_); }
  static const OrderedJson& json(const JsonNode& node) { return value(node).leaf; }
  static const Compound& parts(const JsonNode& node) { return *value(node).parts; }
  static JsonNode root(Document document) {
    auto shared = std::make_shared<const Document>(std::move(document));
    const void* value = &shared->root;
    return {std::move(shared), value, ""};
  }
  static JsonNode member(const JsonNode& node, const std::string& key, const Value& value) {
    return {node.document_, &value, node.path_.empty() ? key : node.path_ + "." + key};
  }
  static JsonNode item(const JsonNode& node, size_t i) {
    return {node.document_, &parts(node).values[i], str(node.path_, "[", i, "]")};
  }
};

JsonNode JsonNode::parse(std::string_view text, std::string subject, bool has_places) {
  if (text.size() > kMostBytes) {
    throw_at(
        text, kNoPlace,
        error_message(subject, str("must have at most ", kMostBytes >> 20, " MiB"), str(text.size(), " bytes"), {}));
  }
  try {
    Value root = ValueBuilder(text, subject, has_places).parse();
    auto kept = has_places ? std::make_shared<const std::string>(text) : nullptr;
    return Access::root({std::move(root), std::move(subject), std::move(kept)});
  } catch (const OrderedJson::exception&) {
    translate_json_error(text, subject, "expected a JSON document");
  }
}

JsonNode JsonNode::merged_onto(const JsonNode& base, std::initializer_list<std::string_view> whole) const {
  return Access::root({merged(Access::value(base), Access::value(*this), whole), document_->subject, document_->text});
}

JsonNode JsonNode::without(std::string_view key) const {
  const Compound& parts = Access::parts(*this);
  auto rest = std::make_shared<Compound>();
  for (size_t i = 0; i < parts.keys.size(); ++i) {
    if (parts.keys[i] == key) continue;
    rest->keys.push_back(parts.keys[i]);
    rest->values.push_back(parts.values[i]);
  }
  const Value& own = Access::value(*this);
  return Access::root({{own.leaf, std::move(rest), own.place}, document_->subject, document_->text});
}

std::string JsonNode::text() const {
  std::string text;
  append_text(text, Access::value(*this), 0);
  return text;
}

bool JsonNode::is_object() const { return Access::json(*this).is_object(); }
bool JsonNode::is_array() const { return Access::json(*this).is_array(); }
bool JsonNode::is_string() const { return Access::json(*this).is_string(); }
bool JsonNode::is_boolean() const { return Access::json(*this).is_boolean(); }
bool JsonNode::has(std::string_view key) const { return is_object() && Access::parts(*this).find(key) != nullptr; }

JsonNode JsonNode::at(const std::string& key) const {
  const Value* found = is_object() ? Access::parts(*this).find(key) : nullptr;
  if (!found) fail_form("must have " + quote(key));
  return Access::member(*this, key, *found);
}

void JsonNode::expect_object() const {
  if (!is_object()) fail_form("must be an object", Access::json(*this).type_name());
}

void JsonNode::expect_object(std::initializer_list<std::string_view> keys) const {
  expect_object();
  const Compound& parts = Access::parts(*this);
  for (size_t i = 0; i < parts.keys.size(); ++i) {
    if (std::find(keys.begin(), keys.end(), parts.keys[i]) != keys.end()) continue;
    fail_at(parts.values[i].place, str("must have no other keys than ", join(keys, ", ")), quote(parts.keys[i]), {});
  }
}

std::vector<std::pair<std::string, JsonNode>> JsonNode::members() const {
  expect_object();
  const Compound& parts = Access::parts(*this);
  std::vector<std::pair<std::string, JsonNode>> members;
  for (size_t i = 0; i < parts.keys.size(); ++i) {
    members.emplace_back(parts.keys[i], Access::member(*this, parts.keys[i], parts.values[i]));
  }
  return members;
}

std::vector<JsonNode> JsonNode::items() const {
  const OrderedJson& json = Access::json(*this);
  if (!json.is_array()) fail_form("must be an array", json.type_name());
  std::vector<JsonNode> nodes;
  for (size_t i = 0; i < Access::parts(*this).values.size(); ++i) nodes.push_back(Access::item(*this, i));
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
  fail_at(Access::value(*this).place, must_hold, got, way_out);
}

void JsonNode::fail_at(size_t place, std::string_view must_hold, std::string_view got, std::string_view way_out) const {
  const std::string_view text = document_->text ? std::string_view(*document_->text) : std::string_view();
  throw_at(
      text, place,
      error_message(document_->subject, str(path_.empty() ? "the document" : path_, " ", must_hold), got, way_out));
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
