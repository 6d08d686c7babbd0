// SPDX-License-Identifier: Apache-2.0
// The planner and the analysis of local programs price a reshard alike.
#include <gtest/gtest.h>

#include "shardwise/analysis/collective_price.h"
#include "shardwise/base/text.h"
#include "shardwise/choice/reshard_planner.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/mesh/tiling.h"
#include "shardwise/partition/assign.h"
#include "shardwise/partition/localize.h"
#include "shardwise/partition/plan_reshards.h"
#include "shardwise/propagation/propagate.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

struct Reshard {
  std::string type, from, to;
  std::string_view moves;  // of the local program
};

constexpr std::string_view kMeshes =
    "sdy.mesh @mesh = <[\"data\"=2, \"model\"=8]>\n"
    "sdy.mesh @other = <[\"a\"=4, \"b\"=4], "
    "device_ids=[1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 14]>\n";

struct Priced {
  std::string moves;
  Price price;
};

// The collectives of the program that reshards an argument.
Priced local_price(const Reshard& reshard, const Hardware& hardware) {
  Module module =
      parse_program(str(kMeshes, "func.func @main(%arg0: tensor<", reshard.type, "> {sdy.sharding = #sdy.sharding<",
                        reshard.from, ">}) -> tensor<", reshard.type, "> {\n  %0 = sdy.reshard %arg0 <", reshard.to,
                        "> : tensor<", reshard.type, ">\n  return %0 : tensor<", reshard.type, ">\n}\n"));
  PassContext context;
  for (const Pass& pass : {kPropagate, kAssign, kPlanReshards, kLocalize}) {
    module = pass.run(std::move(module), context);
  }
  Priced sum;
  walk(module, module.main().body, [&](OpId id) {
    const LocalCollective collective = read_collective(OpView(module, id));
    if (!moves_data(collective.kind)) return;
    const std::string_view name = OpView(module, id).name();
    sum.moves += str(sum.moves.empty() ? "" : " ", name.substr(name.find('.') + 1));
    sum.price += collective_price(collective, hardware);
  });
  return sum;
}

Price planned_price(const Reshard& reshard, const HardwarePtr& hardware) {
  const Module module = parse_program(str(kMeshes, "func.func @main(%arg0: tensor<", reshard.type, ">) -> tensor<",
                                          reshard.type, "> {\n  return %arg0 : tensor<", reshard.type, ">\n}\n"));
  const TypeId type = module.value(module.region(module.main().body).results[0]).type;
  const auto placement = [&](const std::string& sharding) {
    const size_t comma = sharding.find(',');
    const MeshPtr mesh = module.find_mesh(sharding.substr(1, comma - 1));
    const TensorSharding parsed = parse_short_sharding(sharding.substr(comma + 2), mesh);
    return module.context().intern(placement_of(parsed, module.context().type(type).shape));
  };
  ReshardPlanner planner{module.context()};
  return planner.price(type, placement(reshard.from), placement(reshard.to), hardware).price;
}

TEST(ReshardPrice, IsThatOfTheLocalCollectives) {
  const Reshard reshards[] = {
      {"32x64xf32", R"(@mesh, [{"model"}, {}])", "@mesh, [{}, {}]", "all_gather"},
      {"32x64xf32", R"(@mesh, [{"data", "model"}, {}])", R"(@mesh, [{"data"}, {}])", "all_gather"},
      {"32x64xf32", R"(@mesh, [{"model"}, {}])", R"(@mesh, [{}, {"model"}])", "all_to_all"},
      {"32x64xf32", R"(@mesh, [{"data"}, {"model"}])", R"(@mesh, [{"model"}, {"data"}])", "exchange"},
      {"32x64xf32", R"(@mesh, [{"data", "model"}, {}])", R"(@mesh, [{"model", "data"}, {}])", "collective_permute"},
      {"8x8x8xf32", R"(@mesh, [{"data"}, {"model":(1)2}, {"model":(4)2}])",
       R"(@mesh, [{"data"}, {"model":(4)2}, {"model":(1)2}])", "collective_permute"},
      {"8x60xf32", R"(@mesh, [{"data"}, {"model"}])", R"(@mesh, [{"data"}, {}])", "all_gather"},
      {"8x60xf32", R"(@mesh, [{"data"}, {"model"}])", R"(@mesh, [{"data"}, {"model":(1)2}])", "exchange"},
      {"33x33xf32", R"(@mesh, [{"data"}, {"model"}])", R"(@mesh, [{"model"}, {"data"}])", "exchange"},
      {"33x33xbf16", R"(@mesh, [{"model"}, {}])", R"(@mesh, [{}, {"model"}])", "exchange"},
      {"32x64xf32", R"(@mesh, [{}, {}], unreduced={"model"})", "@mesh, [{}, {}]", "all_reduce"},
      {"8x60xf32", R"(@mesh, [{}, {}], unreduced={"model"})", R"(@mesh, [{"model"}, {}])", "reduce_scatter"},
      {"8x60xf32", R"(@mesh, [{}, {}], unreduced={"model"})", R"(@mesh, [{}, {"model"}])", "reduce_scatter"},
      {"32x64xf32", R"(@mesh, [{"data"}, {}], unreduced={"model"})", R"(@mesh, [{}, {"model"}])",
       "reduce_scatter all_gather"},
      {"3x5xf32", R"(@mesh, [{}, {}], unreduced={"data", "model"})", "@mesh, [{}, {}]", "all_reduce"},
      {"1x1xf64", R"(@mesh, [{}, {}], unreduced={"data", "model"})", "@mesh, [{}, {}]", "all_reduce"},
      {"32x64xf32", R"(@mesh, [{"data"}, {"model"}])", R"(@other, [{"a"}, {"b"}])", "exchange"},
      {"32x64xf32", R"(@mesh, [{"data"}, {}])", "@other, [{}, {}]", "all_gather"},
  };
  for (const std::string_view name : {"default", "h100_sxm", "tpu_v5e"}) {
    const HardwarePtr hardware = builtin_hardware(name);
    for (const Reshard& reshard : reshards) {
      const Priced local = local_price(reshard, *hardware);
      const Price planned = planned_price(reshard, hardware);
      EXPECT_EQ(local.moves, reshard.moves) << reshard.from << " -> " << reshard.to;
      EXPECT_EQ(planned.ps, local.price.ps) << name << ": " << reshard.from << " -> " << reshard.to;
      EXPECT_EQ(planned.rounds, local.price.rounds) << name << ": " << reshard.from << " -> " << reshard.to;
      EXPECT_EQ(planned.bytes, local.price.bytes) << reshard.from << " -> " << reshard.to;
    }
  }
}

}  // namespace
}  // namespace shardwise
