// SPDX-License-Identifier: Apache-2.0
#include "shardwise/emission/cause.h"

#include "shardwise/base/text.h"

namespace shardwise {
namespace {

std::string_view short_name(std::string_view op) { return op.substr(op.find('.') + 1); }  // "add" of "stablehlo.add"

std::string text_of_kind(const Cause& cause) {
  const std::string_view op = short_name(cause.of);
  switch (cause.kind) {
    case Cause::kNone: break;
    case Cause::kAnnotation: return cause.detail.empty() ? "annotation" : cause.detail;
    case Cause::kReshard: return "reshard";
    case Cause::kOperand: return str("operand ", cause.index, " of ", op, cause.detail);
    case Cause::kMainArgument: return cause.detail;
    case Cause::kArgument: return str("argument ", cause.index, " of @", cause.of);
    case Cause::kResult: return str("result ", cause.index, cause.of.empty() ? "" : " of @", cause.of);
    case Cause::kResultOfRegion: return str("result ", cause.index, " of a region of ", op);
    case Cause::kCondition: return str("condition of ", op);
    case Cause::kReduction: return str("reduction in ", op);
    case Cause::kMethod: return str(cause.detail, " of ", op);
  }
  return {};
}

}  // namespace

std::string Cause::text() const { return text_of_kind(*this) + (is_after_loop ? ", after the loop" : ""); }

bool Cause::is_about(std::string_view text, std::string_view op) {
  const std::string_view name = short_name(op);
  for (const std::string_view link : {" of ", " in "}) {
    const size_t found = text.find(str(link, name));
    if (found == std::string_view::npos) continue;
    const size_t end = found + link.size() + name.size();
    if (end == text.size() || text[end] == ' ' || text[end] == ',' || text[end] == ':') return true;
  }
  return false;
}

Attrs Cause::attrs() const { return {{std::string(kCauseAttr), text()}}; }

void set_cause(Module& module, ValueId result, std::string cause) {
  module.set_attribute(module.value(result).op, kCauseAttr, std::move(cause));
}

void copy_cause(Module& module, OpView from, ValueId result) {
  const std::string* cause = from.attrs().find<std::string>(kCauseAttr);
  if (cause != nullptr) set_cause(module, result, *cause);
}

}  // namespace shardwise
