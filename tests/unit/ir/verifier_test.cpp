// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/verifier.h"

#include <gtest/gtest.h>

#include "ir/test_ops.h"

namespace shardwise::testing {
namespace {

Module two_adds() {
  return parse_test(
      program("%0 = stablehlo.add %a, %b : tensor<8x8xf32> loc(\"f.py\":3:1)\n"
              "%1 = stablehlo.add %0, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}]>]>} : "
              "tensor<8x8xf32>"));
}

std::string verify_error(const Module& module) {
  try {
    verify(module);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Verifier, AcceptsWhatTheParserMakes) { EXPECT_EQ(verify_error(two_adds()), ""); }

TEST(Verifier, FindsUsesBeforeDefinitions) {
  Module module = two_adds();
  Region& body = module.region(module.main().body);
  std::swap(body.ops[0], body.ops[1]);
  const std::string error = verify_error(module);
  EXPECT_NE(error.find("a bug in shardwise: stablehlo.add: an operand must be defined before it"), std::string::npos)
      << error;
  std::swap(body.ops[0], body.ops[1]);
  module.set_operand(body.ops[0], 1, ValueId{999});
  EXPECT_NE(verify_error(module).find("an operand must exist"), std::string::npos);
  EXPECT_NE(verify_error(module).find("(at f.py:3)"), std::string::npos);
}

TEST(Verifier, FindsOpsInTwoPlaces) {
  Module module = two_adds();
  Region& body = module.region(module.main().body);
  body.ops.push_back(body.ops[0]);
  EXPECT_NE(verify_error(module).find("an op must be in one place"), std::string::npos);
}

TEST(Verifier, FindsWrongTypes) {
  Module module = two_adds();
  module.value(module.result(module.region(module.main().body).ops[1])).type = module.context().tensor(DType::kF32, {});
  EXPECT_NE(verify_error(module).find("the result types must be tensor<8x8xf32>, got tensor<f32>"), std::string::npos);
}

TEST(Verifier, FindsBadShardings) {
  Module module = two_adds();
  const ValueId last = module.result(module.region(module.main().body).ops[1]);
  TensorSharding sharding = module.context().sharding(module.value(last).sharding);
  sharding.dims.pop_back();
  module.value(last).sharding = module.context().intern(sharding);
  EXPECT_THROW(verify(module), ShardingError);
  module.value(last).sharding = {};
  module.main().result_shardings.resize(3);
  EXPECT_NE(verify_error(module).find("a sharding column for each result"), std::string::npos);
  module.main().result_shardings.clear();
  module.value(last).sharding = module.context().intern(TensorSharding::open(module.meshes[0], 2));
  module.meshes.clear();
  EXPECT_NE(verify_error(module).find("mesh @mesh must be declared"), std::string::npos);
}

TEST(Verifier, FindsValuesThatLeaveTheirRegion) {
  Module module = parse_test(
      program("\"test.any\"() ({\n^bb0(%x: tensor<8x8xf32>):\n stablehlo.return %x : tensor<8x8xf32>\n}) : () -> ()\n"
              "%1 = stablehlo.add %a, %b : tensor<8x8xf32>"));
  EXPECT_EQ(verify_error(module), "");
  const Region& body = module.region(module.main().body);
  const RegionId inner = module.regions(body.ops[0])[0];
  module.set_operand(body.ops[1], 0, module.region(inner).arguments[0]);
  EXPECT_NE(verify_error(module).find("in a region around it"), std::string::npos);
}

}  // namespace
}  // namespace shardwise::testing
