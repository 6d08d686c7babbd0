// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/custom_gspmd_regions.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/op_verifier.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ir/text_words.h"

namespace shardwise {
namespace {

constexpr std::string_view kWithShardy = "lower the program with jax_use_shardy_partitioner=True";
constexpr std::string_view kEnter = "SPMDFullToShardShape", kLeave = "SPMDShardToFullShape";

// The text of an attribute of a custom call, or null.
const std::string* text_of_call(const Module& module, OpId op, std::string_view name) {
  return module.context().attrs(module.op(op).attrs).find<std::string>(name);
}

bool calls(const Module& module, OpId op, std::string_view target) {
  if (module.op(op).def->name != "stablehlo.custom_call") return false;
  const std::string* called = text_of_call(module, op, "call_target_name");
  return called != nullptr && *called == target;
}

// The calls around one region, in the order of the program, and the ops between them.
struct GspmdRegion {
  std::vector<OpId> entries, inside, exits;
};

bool is_inside_op(const Module& module, ValueId value, OpId op) {
  return std::ranges::any_of(module.regions(op), [&](RegionId region) { return is_inside(module, value, region); });
}

// What leaves depends on the ops behind the calls that enter. Calls that share one of these belong together.
std::vector<GspmdRegion> find_regions(const Module& module, const std::vector<OpId>& borders) {
  struct Found {
    std::set<uint32_t> ops, entries;
    std::vector<OpId> exits;
  };
  std::vector<Found> all;
  for (const OpId exit : borders) {
    if (!calls(module, exit, kLeave)) continue;
    Found found{.ops = {}, .entries = {}, .exits = {exit}};
    std::vector<ValueId> waiting{module.operands(exit)[0]};
    while (!waiting.empty()) {
      const ValueId value = waiting.back();
      waiting.pop_back();
      const OpId op = module.value(value).op;
      if (!op || module.op(op).parent != module.op(exit).parent) {
        fail<UnsupportedError>(kLeave, "a value of a manual region must enter it by @SPMDFullToShardShape",
                               module.type(value).text(), kWithShardy);
      }
      if (calls(module, op, kEnter)) {
        found.entries.insert(op.index);
      } else if (found.ops.insert(op.index).second) {
        visit_reads(module, op, [&](ValueId read) {
          if (!is_inside_op(module, read, op)) waiting.push_back(read);
        });
      }
    }
    const auto shares = [&](const Found& other) {
      const auto meets = [](const std::set<uint32_t>& a, const std::set<uint32_t>& b) {
        return std::ranges::any_of(a, [&](uint32_t op) { return b.contains(op); });
      };
      return meets(found.ops, other.ops) || meets(found.entries, other.entries);
    };
    for (auto other = all.begin(); other != all.end();) {
      if (!shares(*other)) {
        ++other;
        continue;
      }
      found.ops.insert(other->ops.begin(), other->ops.end());
      found.entries.insert(other->entries.begin(), other->entries.end());
      found.exits.insert(found.exits.begin(), other->exits.begin(), other->exits.end());
      other = all.erase(other);
    }
    all.push_back(std::move(found));
  }
  std::vector<GspmdRegion> regions;
  for (const Found& found : all) {
    GspmdRegion region{.entries = {}, .inside = {}, .exits = found.exits};
    for (const OpId op : module.region(module.op(found.exits[0]).parent).ops) {
      if (found.entries.contains(op.index)) region.entries.push_back(op);
      if (found.ops.contains(op.index)) region.inside.push_back(op);
    }
    regions.push_back(std::move(region));
  }
  return regions;
}

OpId form_region(Rewrite& rewrite, Module& module, GspmdShardings& shardings, const GspmdRegion& region) {
  const auto sharding_of_call = [&](OpId op) -> std::string_view {
    const std::string* text = text_of_call(module, op, text_words::kGspmdSharding);
    if (text == nullptr || text->empty()) fail<ShardingError>(kEnter, "a call must have mhlo.sharding");
    return *text;
  };
  if (region.entries.empty()) {
    fail<UnsupportedError>(kLeave, "a manual region must have an input", {}, kWithShardy);
  }
  std::vector<RawAxisRef> axes = shardings.manual_axes(sharding_of_call(region.entries[0]), module);
  // In another region, what leaves this one still has the axes of that one.
  if (const std::string_view outside = sharding_of_call(region.exits[0]); outside.find("manual") != outside.npos) {
    const std::vector<RawAxisRef> outer = shardings.manual_axes(outside, module);
    std::erase_if(axes, [&](const RawAxisRef& axis) { return std::ranges::find(outer, axis) != outer.end(); });
  }
  const RegionId body = module.add_region();
  std::vector<ValueId> operands, left;
  for (const OpId entry : region.entries) {
    const ValueId operand = module.operands(entry)[0], inside = module.result(entry);
    const ShardingId sharding = module.value(operand).sharding;
    if (!sharding) {
      fail<ShardingError>(kEnter, "the operand must have a sharding", "none", "annotate it by @Sharding");
    }
    const ValueId argument = module.add_argument(body, module.value(inside).type, module.op(entry).loc);
    module.value(argument).sharding = sharding;
    operands.push_back(operand);
    rewrite.replace(inside, argument);
  }
  for (const OpId op : region.inside) rewrite.move(op, rewrite.end(body));
  std::vector<TypeId> types;
  for (const OpId exit : region.exits) {
    left.push_back(module.operands(exit)[0]);
    types.push_back(module.value(module.result(exit)).type);
  }
  module.region(body).results = left;
  const OpId first = region.exits[0];
  const OpId made = rewrite.insert(rewrite.before(first), module.op(first).loc, [&](Builder& builder) {
    return builder.create_op("sdy.manual_computation", operands, Attrs{{"manual_axes", AxesAttr{axes}}}, types,
                             std::array{body});
  });
  for (size_t i = 0; i < region.exits.size(); ++i) {
    const OpId exit = region.exits[i];
    const ValueId result = module.result(made, static_cast<uint32_t>(i));
    const TensorType& type = module.type(result);
    const Dims open = gspmd_open_dims(text_of_call(module, exit, "backend_config"));
    const TensorSharding sharding = shardings.read(sharding_of_call(exit), type.ndim(), open, module, true);
    verify_sharding(sharding, type);
    module.value(result).sharding = module.context().intern(sharding);
    rewrite.replace(exit, std::array{result});
  }
  return made;
}

}  // namespace

bool is_gspmd_border(std::string_view target) { return target == kEnter || target == kLeave; }

std::vector<OpId> form_manual_regions(Module& module, GspmdShardings& shardings) {
  const std::vector<OpId> borders =
      find_ops(module, [&](OpId op) { return calls(module, op, kEnter) || calls(module, op, kLeave); });
  std::vector<OpId> made;
  Rewrite rewrite(module);
  for (const GspmdRegion& region : find_regions(module, borders)) {
    made.push_back(form_region(rewrite, module, shardings, region));
  }
  for (const OpId op : borders) {
    // An input that no region reads.
    if (!rewrite.is_erased(op)) rewrite.erase(op);
  }
  return made;
}

}  // namespace shardwise
