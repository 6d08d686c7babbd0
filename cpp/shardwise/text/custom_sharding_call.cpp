// SPDX-License-Identifier: Apache-2.0
//
// GSPMD's annotations of ops: mhlo.sharding attributes, and custom_call @Sharding; and its calls around manual regions.
#include <algorithm>
#include <utility>
#include <variant>

#include "shardwise/base/text.h"
#include "shardwise/ir/op_verifier.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/text/custom_gspmd_regions.h"
#include "shardwise/text/op_parser.h"

namespace shardwise {

ShardingId OpParser::gspmd_sharding(std::string_view sharding, const TensorType& type, const Dims& open,
                                    size_t position, bool in_manual_region) {
  return located(position, [&] {
    // The mesh must suit all shardings of the text, so the first one makes a search for the others.
    if (!gspmd_) gspmd_.emplace(text);
    const TensorSharding read = gspmd_->read(sharding, type.ndim(), open, module(), in_manual_region);
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

}  // namespace

// custom_call @Sharding annotates a value, as sdy.sharding_constraint does.
void OpParser::make_constraint(OpSyntax& op) {
  const std::string* target =
      op.def->name == "stablehlo.custom_call" ? text_attribute(op, "call_target_name") : nullptr;
  if (target == nullptr) return;
  if (is_gspmd_border(*target)) {
    if (!region_start_) region_start_ = op.start;
    // Moved into an attribute, so that create() does not read it as the sharding of the results.
    op.attributes.emplace_back(text_words::kGspmdSharding, std::exchange(op.gspmd, {}));
    return;
  }
  if (*target != "Sharding") return;
  // The op's definition changes before its builder checks the number of operands.
  if (op.operands.size() != 1) fail_at(op.start, "@Sharding must have one operand", str(op.operands.size()));
  const TypeId type = type_of(op.operands[0]);
  const Dims open = gspmd_open_dims(text_attribute(op, "backend_config"));
  const bool in_manual_region = op.gspmd.find("manual") != std::string::npos;
  op.shardings = {gspmd_sharding(op.gspmd, context().type(type), open, op.gspmd_start, in_manual_region)};
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

void OpParser::form_manual_regions() {
  if (!region_start_) return;
  located(*region_start_, [&] {
    if (!gspmd_) gspmd_.emplace(text);
    for (const OpId made : shardwise::form_manual_regions(module(), *gspmd_)) {
      unverified_.emplace_back(made, *region_start_);
    }
  });
}

}  // namespace shardwise
