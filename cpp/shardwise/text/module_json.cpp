// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/module_json.h"

#include <nlohmann/json.hpp>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/mesh/read_json.h"
#include "shardwise/text/parser.h"
#include "shardwise/text/printer.h"

namespace shardwise {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kVersion = 1;

[[noreturn]] void fail_json(std::string_view must_hold, std::string_view got = {}, std::string_view way_out = {}) {
  throw ParseError(error_message("program", must_hold, got, way_out), 1, 1);
}

// Describes the value of a field. Only scalars are printed in full, because an array may nest arbitrarily deep.
std::string described(const Json* field) {
  if (field == nullptr) return "none";
  return field->is_structured() ? field->type_name() : field->dump();
}

Json parse_json(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::exception&) {
    translate_json_error(text, "program", "must be JSON");
  }
}

}  // namespace

std::string module_to_json(const Module& module) {
  const Json json{{"format", "shardwise"},
                  {"version", kVersion},
                  {"stablehlo", print(module, PrintOptions{.locations = true, .generic = false})}};
  // Locations may contain any bytes; invalid UTF-8 is replaced.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

Module module_from_json(std::string_view text, std::shared_ptr<Context> context) {
  const Json json = parse_json(text);
  // A JSON text may also be an array or a number, which has no fields.
  auto field = [&](const char* name) -> const Json* {
    const auto it = json.is_object() ? json.find(name) : json.end();
    return it == json.end() ? nullptr : &*it;
  };
  const Json* format = field("format");
  if (format == nullptr || *format != "shardwise") {
    fail_json("must be an object with \"format\": \"shardwise\"", described(format));
  }
  const Json* version = field("version");
  if (version == nullptr || !version->is_number_integer() || version->get<int64_t>() < 1) {
    fail_json("\"version\" must be a number from 1 on", described(version));
  }
  // Older versions are read; a newer one may mean other things by the same text.
  if (version->get<int64_t>() > kVersion) {
    fail_json(str("\"version\" must be at most ", kVersion), version->dump(), "read it with a newer shardwise");
  }
  const Json* stablehlo = field("stablehlo");
  if (stablehlo == nullptr || !stablehlo->is_string()) fail_json("\"stablehlo\" must be the text of the program");
  return parse(stablehlo->get_ref<const std::string&>(), std::move(context));
}

}  // namespace shardwise
