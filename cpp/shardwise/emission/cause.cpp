// SPDX-License-Identifier: Apache-2.0
#include "shardwise/emission/cause.h"

#include "shardwise/base/text.h"

namespace shardwise {
namespace {

std::string text_of_kind(const Cause& cause) {
  const std::string_view op = cause.of.substr(cause.of.find('.') + 1);  // "add" of "stablehlo.add"
  switch (cause.kind) {
    case Cause::kNone: break;
    case Cause::kAnnotation: return "annotation";
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

Attrs Cause::attrs() const { return {{std::string(kCauseAttr), text()}}; }

void set_cause(Module& module, ValueId result, std::string cause) {
  module.set_attribute(module.value(result).op, kCauseAttr, std::move(cause));
}

void copy_cause(Module& module, OpView from, ValueId result) {
  const std::string* cause = from.attrs().find<std::string>(kCauseAttr);
  if (cause != nullptr) set_cause(module, result, *cause);
}

}  // namespace shardwise
