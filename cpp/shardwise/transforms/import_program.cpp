// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/import_program.h"

#include <string>
#include <utility>
#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/rewrite.h"
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

constexpr std::string_view kNameAttr = "shardwise.name";

// A call of checkpoint_name:h becomes a barrier that carries the name: the value may be the result of another call,
// whose op exists only once that is inlined.
void mark_names(Module& program) {
  Rewrite rewrite(program);
  std::vector<OpId> calls;
  walk(program, [&](OpId id) {
    if (is_call(program, id) && callee_of(program, id).starts_with(kValueNamePrefix)) calls.push_back(id);
  });
  for (const OpId id : calls) {
    const Attrs attrs{{std::string(kNameAttr), callee_of(program, id).substr(kValueNamePrefix.size())}};
    const ValueId operand = program.operands(id)[0];
    const ValueId marked = rewrite.insert(rewrite.before(id), program.op(id).loc, [&](Builder& builder) {
      return builder.create("stablehlo.optimization_barrier", {operand}, attrs);
    });
    rewrite.replace(program.result(id), marked);
    rewrite.erase(id);
  }
  rewrite.commit();
}

void name_values(Module& program) {
  Rewrite rewrite(program);
  std::vector<OpId> marks;
  walk(program, [&](OpId id) {
    if (program.attrs(id).find(kNameAttr) != nullptr) marks.push_back(id);
  });
  for (const OpId id : marks) {
    const ValueId named = program.operands(id)[0];
    if (const OpId op = program.value(named).op) {  // an argument keeps its own name
      LocId& loc = program.op(op).loc;
      loc = program.context().named_location(program.attrs(id).get<std::string>(kNameAttr),
                                             without_names(program.context(), loc ? loc : program.op(id).loc));
    }
    rewrite.replace(program.result(id), named);
    rewrite.erase(id);
  }
  rewrite.commit();
}

}  // namespace

RegionId import_program(Module program, Module& into) {
  drop_names(program);
  mark_names(program);
  inline_all_calls(program);
  name_values(program);
  for (const MeshPtr& mesh : program.meshes) into.declare_mesh(mesh);
  return GraphCopy(program, into).region(program.main().body);
}

}  // namespace shardwise
