// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/import_program.h"

#include <string>
#include <utility>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/pass.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/transforms/inline_calls.h"

namespace shardwise {
namespace {

LocId without_names(const Context& context, LocId loc) {
  while (loc && context.location(loc).kind == Location::Kind::kName) loc = context.location(loc).child;
  return loc;
}

void drop_names(Module& program) {
  walk(program, [&](OpId id) { program.op(id).loc = without_names(program.context(), program.op(id).loc); });
}

void name_values(Module& program) {
  walk(program, [&](OpId id) {
    if (!is_call(program, id) || !callee_of(program, id).starts_with(kValueNamePrefix)) return;
    const std::string name = callee_of(program, id).substr(kValueNamePrefix.size());
    const Value& value = program.value(program.operands(id)[0]);
    if (!value.op) return;  // an argument keeps its own name
    LocId& loc = program.op(value.op).loc;
    loc = program.context().named_location(name, loc ? loc : program.op(id).loc);
  });
}

}  // namespace

RegionId import_program(Module program, Module& into) {
  drop_names(program);
  name_values(program);
  PassContext context;
  const Module inlined = inline_calls(std::move(program), context);
  for (const MeshPtr& mesh : inlined.meshes) into.declare_mesh(mesh);
  return GraphCopy(inlined, into).region(inlined.main().body);
}

}  // namespace shardwise
