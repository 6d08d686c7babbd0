// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/verifier.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/op_verifier.h"
#include "shardwise/ir/rewrite/located.h"

namespace shardwise {
namespace {

class Verifier {
 public:
  explicit Verifier(const Module& module)
      : module_(module),
        defined_(module.value_count(), false),
        seen_ops_(module.op_count(), false),
        seen_regions_(module.region_count(), false) {}

  void run() {
    std::unordered_set<std::string_view> names;
    for (const Function& function : module_.functions) {
      subject_ = "@" + function.name;
      check(names.insert(function.name).second, "the name of a function must be new");
      region(function.body, OpId{});
      function_results(function);
    }
    // After all regions, because uses may come later.
    const DataFlowEdgeUses uses(module_);
    for (uint32_t i = 1; i < seen_ops_.size(); ++i) {
      if (seen_ops_[i]) uses.verify(OpId{i});
    }
  }

 private:
  void check(bool holds, std::string_view what) const {
    // The text is built only on failure: a large module has millions of checks.
    if (!holds) check_internal(false, str(subject_, ": ", what));
  }

  void function_results(const Function& function) {
    const std::vector<ValueId>& results = module_.region(function.body).results;
    if (function.result_shardings.empty()) return;
    check(function.result_shardings.size() == results.size(), "there must be a sharding column for each result");
    for (size_t i = 0; i < results.size(); ++i) sharding(function.result_shardings[i], module_.type(results[i]));
  }

  void region(RegionId id, OpId owner) {
    check(id && id.index < module_.region_count(), "a region must exist");
    check(!seen_regions_[id.index], "a region must belong to one op or function");
    seen_regions_[id.index] = true;
    const Region& region = module_.region(id);
    check(region.op == owner, "a region must know its op");
    for (size_t i = 0; i < region.arguments.size(); ++i) {
      value(region.arguments[i]);
      const Value& argument = module_.value(region.arguments[i]);
      check(argument.region == id && !argument.op && argument.index == i, "an argument must know its region and place");
    }
    for (OpId op : region.ops) this->op(op, id);
    for (ValueId result : region.results) use(result, "what a region returns");
    // Values are visible only in their region and in nested ones.
    for (ValueId argument : region.arguments) defined_[argument.index] = false;
    for (OpId op : region.ops) {
      for (uint32_t i = 0; i < module_.op(op).result_count; ++i) defined_[module_.result(op, i).index] = false;
    }
  }

  void use(ValueId id, std::string_view what) const {
    check(id && id.index < module_.value_count(), str(what, " must exist"));
    if (!defined_[id.index]) check(false, str(what, " must be defined before it, in a region around it"));
  }

  // Defines a value.
  void value(ValueId id) {
    check(id && id.index < module_.value_count(), "a value must exist");
    check(!defined_[id.index], "a value must be defined once");
    defined_[id.index] = true;
    const Value& value = module_.value(id);
    check(static_cast<bool>(value.type), "a value must have a type");
    sharding(value.sharding, module_.type(id));
    verify_part(module_, id);
  }

  void sharding(ShardingId id, const TensorType& type) const {
    if (!id) return;
    const TensorSharding& sharding = module_.context().sharding(id);
    check(sharding.mesh != nullptr, "a sharding must have a mesh");
    if (!sharding.mesh->name().empty()) {
      const MeshPtr declared = module_.find_mesh(sharding.mesh->name());
      if (declared == nullptr || !equal(declared, sharding.mesh)) {
        check(false, str("mesh ", sharding.mesh->reference(), " must be declared in the module"));
      }
    }
    verify_sharding(sharding, type);
  }

  void op(OpId id, RegionId parent) {
    check(id && id.index < module_.op_count(), "an op must exist");
    check(!seen_ops_[id.index], "an op must be in one place");
    seen_ops_[id.index] = true;
    const Operation& operation = module_.op(id);
    check(operation.def != nullptr, "an op must have a definition");
    // The ops of a region change the subject.
    const std::string outer = std::move(subject_);
    subject_ = operation.def->name;
    located(module_, id, [&] {
      check(operation.parent == parent, "an op must know its region");
      for (ValueId operand : module_.operands(id)) use(operand, "an operand");
      // Before the results are defined: a region must not read the results of its own op.
      for (RegionId inner : module_.regions(id)) region(inner, id);
      types(id);
      for (uint32_t i = 0; i < operation.result_count; ++i) {
        const ValueId result = module_.result(id, i);
        value(result);
        check(module_.value(result).op == id && module_.value(result).index == i,
              "a result must know its op and place");
      }
      verify_op(OpView(module_, id));
    });
    subject_ = outer;
  }

  void types(OpId id) const {
    const Operation& operation = module_.op(id);
    std::vector<TypeId> declared, inferred;
    for (uint32_t i = 0; i < operation.result_count; ++i) declared.push_back(module_.value(module_.result(id, i)).type);
    // Inferred again from the operands, so that an edit of operands or attributes cannot leave a stale type.
    const InferContext context(module_, *operation.def, module_.operands(id), module_.attrs(id), declared,
                               module_.regions(id));
    operation.def->infer(context, inferred);
    auto text = [&](TypeId type) { return module_.context().type(type).text(); };
    if (inferred != declared) {
      check(false, str("the result types must be ", join(inferred, ", ", text), ", got ", join(declared, ", ", text)));
    }
  }

  const Module& module_;
  std::vector<bool> defined_, seen_ops_, seen_regions_;
  std::string subject_;
};

}  // namespace

void verify(const Module& module) { Verifier(module).run(); }

}  // namespace shardwise
