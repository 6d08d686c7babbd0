// SPDX-License-Identifier: Apache-2.0
//
// GSPMD's annotations of ops: mhlo.sharding attributes, and custom_call @Sharding.
#include <algorithm>
#include <utility>
#include <variant>

#include "shardwise/base/text.h"
#include "shardwise/ir/op_verifier.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/text/op_parser.h"

namespace shardwise {

ShardingId OpParser::gspmd_sharding(std::string_view sharding, const TensorType& type, const Dims& open,
                                    size_t position) {
  return located(position, [&] {
    // The mesh must suit all shardings of the text, so the first one makes a search for the others.
    if (!gspmd_) gspmd_.emplace(text);
    const TensorSharding read = gspmd_->read(sharding, type.ndim(), open, module());
    verify_sharding(read, type);
    return context().intern(read);
  });
}

void OpParser::parse_gspmd(std::string& sharding, size_t& start) {
  start = token_start();
  sharding = take_string();
  if (sharding.empty()) fail_at(start, "a sharding must not be empty", quote(sharding));
}

namespace {

const std::string* text_attribute(const OpSyntax& op, std::string_view name) {
  const auto found = std::ranges::find(op.attributes, name, &NamedAttribute::first);
  return found == op.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
}

// backend_config = "unspecified_dims=[0,1]"
Dims unspecified_dims(const OpSyntax& op) {
  Dims dims;
  const std::string* config = text_attribute(op, "backend_config");
  const size_t start = config == nullptr ? std::string::npos : config->find("unspecified_dims=[");
  bool continues = false;
  for (size_t i = start; i < (config == nullptr ? 0 : config->size()) && (*config)[i] != ']'; ++i) {
    const char c = (*config)[i];
    // Bounded, because the digits come from the text and a large dim is ignored anyway.
    if (is_digit(c) && !continues) dims.push_back(0);
    if (is_digit(c)) dims.back() = std::min<int64_t>(10 * dims.back() + (c - '0'), 1000);
    continues = is_digit(c);
  }
  return dims;
}

// Calls around a manual region, and annotations inside: they stay calls, and keep the text of their sharding.
bool is_of_manual_region(const std::string& target, const std::string& sharding) {
  return target.starts_with("SPMD") || (target == "Sharding" && sharding.find("manual") != sharding.npos);
}

}  // namespace

// custom_call @Sharding annotates a value, as sdy.sharding_constraint does.
void OpParser::make_constraint(OpSyntax& op) {
  const std::string* target =
      op.def->name == "stablehlo.custom_call" ? text_attribute(op, "call_target_name") : nullptr;
  if (target == nullptr) return;
  if (is_of_manual_region(*target, op.gspmd)) {
    // Moved into an attribute, so that create() does not read it as the sharding of the results.
    op.attributes.emplace_back(text_words::kGspmdSharding, std::exchange(op.gspmd, {}));
    return;
  }
  if (*target != "Sharding") return;
  // The op's definition changes before its builder checks the number of operands.
  if (op.operands.size() != 1) fail_at(op.start, "@Sharding must have one operand", str(op.operands.size()));
  const TypeId type = type_of(op.operands[0]);
  op.shardings = {gspmd_sharding(op.gspmd, context().type(type), unspecified_dims(op), op.gspmd_start)};
  set_def(op, "sdy.sharding_constraint");
  // call_target_name and backend_config are attributes of the call, not of the constraint that replaces it.
  op.attributes.clear();
  op.declared = {type};
  op.has_shardings = true;
  op.gspmd.clear();
}

void OpParser::set_gspmd_shardings(const OpSyntax& op, OpId id) {
  const std::vector<std::string_view> each = gspmd_elements(op.gspmd);
  const uint32_t count = module().op(id).result_count;
  if (each.size() != count) {
    fail_at(op.gspmd_start, str("'", op.def->name, "' must have ", count, " shardings"), str(each.size()));
  }
  for (uint32_t i = 0; i < count; ++i) {
    const ValueId result = module().result(id, i);
    module().value(result).sharding = gspmd_sharding(each[i], module().type(result), {}, op.gspmd_start);
  }
}

}  // namespace shardwise
