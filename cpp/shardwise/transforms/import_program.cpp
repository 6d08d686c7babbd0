// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/import_program.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ir/rewrite/structural_equality.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/transforms/gradient/name_gradients.h"
#include "shardwise/transforms/inline_calls.h"

namespace shardwise {
namespace {

void drop_names(Module& program) {
  walk(program, [&](OpId id) {
    LocId& loc = program.op(id).loc;
    if (!is_gradient_name(program.context().name_of(loc))) loc = program.context().without_names(loc);
  });
}

void locate(Module& program, LocId call) {
  walk(program, [&](OpId id) {
    LocId& loc = program.op(id).loc;
    if (program.context().resolve(loc).file.empty()) loc = call;
  });
}

constexpr std::string_view kNameAttr = "shardwise.name";

// A call of checkpoint_name:h becomes a barrier that carries the name: the value may be the result of another call,
// whose op exists only once that is inlined.
void mark_names(Module& program) {
  Rewrite rewrite(program);
  const auto is_name = [&](OpId id) {
    return is_call(program, id) && callee_of(program, id).starts_with(kValueNamePrefix);
  };
  for (const OpId id : find_ops(program, is_name)) {
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
  for (const OpId id : find_ops(program, [&](OpId id) { return program.attrs(id).find(kNameAttr) != nullptr; })) {
    const ValueId named = program.operands(id)[0];
    if (const OpId op = program.value(named).op) {  // an argument keeps its own name
      LocId& loc = program.op(op).loc;
      loc = program.context().named_location(program.attrs(id).get<std::string>(kNameAttr),
                                             program.context().without_names(loc ? loc : program.op(id).loc));
    }
    rewrite.replace(program.result(id), named);
    rewrite.erase(id);
  }
  rewrite.commit();
}

class FunctionImporter {
 public:
  FunctionImporter(const Module& program, Module& into) : program_(program), into_(into), same_regions_(into) {
    for (const Function& function : into.functions) taken_.insert(function.name);
  }

  RegionId run() {
    const CallGraph calls(program_);
    const std::vector<size_t>& reached = calls.reached();
    // From the end: callees come before their callers, whose calls are renamed with names_, and main comes last.
    for (auto f = reached.rbegin(); f != reached.rend(); ++f) {
      const Function& function = program_.functions[*f];
      const RegionId body = copy(function.body);
      if (&function == &program_.main()) return body;
      names_.emplace(function.name, name_of(function, body));
    }
    fail<InternalError>("import", "main is reached");
  }

 private:
  RegionId copy(RegionId body) {
    const RegionId made = GraphCopy(program_, into_).region(body);
    walk(into_, made, [&](OpId op) {
      if (!is_call(into_, op)) return;
      Attrs attrs = into_.attrs(op);
      attrs.set("callee", Symbol{names_.at(callee_of(into_, op))});
      into_.op(op).attrs = into_.context().intern(std::move(attrs));
    });
    return made;
  }

  // Of the function with this body: an existing one, or a new one.
  std::string name_of(const Function& function, RegionId body) {
    std::string name = function.name;
    for (int64_t i = 0; taken_.contains(name); ++i) {
      const auto known = std::ranges::find(into_.functions, name, &Function::name);
      // The same library function from two imports becomes one, which is then partitioned and planned once.
      const bool is_equal = !known->is_public() && known->result_shardings == function.result_shardings &&
                            same_regions_(known->body, body);
      if (is_equal) return name;
      name = str(function.name, "_", i);
    }
    taken_.insert(name);
    into_.functions.push_back({.name = name,
                               .visibility = Visibility::kPrivate,
                               .body = body,
                               .result_shardings = function.result_shardings});
    return name;
  }

  const Module& program_;
  Module& into_;
  SameRegions same_regions_;
  std::set<std::string> taken_;
  std::unordered_map<std::string, std::string> names_;  // by name in the program
};

}  // namespace

RegionId import_program(Module program, Module& into, LocId call, const std::function<void(Module&)>& name_gradients) {
  mark_names(program);
  // Between marking and naming: a name belongs to the op that makes the value, and inlining may be what brings it here.
  inline_small_calls(program);
  if (name_gradients) name_gradients(program);
  drop_names(program);
  if (call) locate(program, call);
  name_values(program);
  for (const MeshPtr& mesh : program.meshes) into.declare_mesh(mesh);
  return FunctionImporter(program, into).run();
}

}  // namespace shardwise
