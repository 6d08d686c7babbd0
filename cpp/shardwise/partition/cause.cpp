// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/cause.h"

namespace shardwise {

void set_cause(Module& module, ValueId result, std::string cause) {
  Operation& op = module.op(module.value(result).op);
  Attrs attrs = module.context().attrs(op.attrs);
  attrs.set(kCauseAttr, std::move(cause));
  op.attrs = module.context().intern(attrs);
}

void copy_cause(Module& module, OpView from, ValueId result) {
  const std::string* cause = from.attrs().find<std::string>(kCauseAttr);
  if (cause != nullptr) set_cause(module, result, *cause);
}

}  // namespace shardwise
