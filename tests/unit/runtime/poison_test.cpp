// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/poison.h"

#include <gtest/gtest.h>

#include "runtime/local_program.h"
#include "runtime/simulator.h"
#include "shardwise/base/error.h"
#include "support/message_of.h"

namespace shardwise {
namespace {

using namespace shardwise::testing;

// 6 rows in blocks of 2 on 4 devices: the last two are padding, and zeros in the argument. a + a claims `fill` there.
std::vector<ShardedArray> doubled(Scalar fill, const RunOptions& options) {
  const auto mesh = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 4}});
  const AxisList x{full_axis(*mesh, 0)};
  LocalProgram program(mesh);
  const ValueId a = program.argument(DType::kF32, {6}, {x});
  const ValueId b = program.op("stablehlo.add", {a, a});
  program.finish({{b, {6}, {x}}});
  GlobalPart part = program.module().part(b);
  part.padding = {Padding::Kind::kFill, fill};
  program.module().set_part(b, part);
  GlobalPart zeros = program.module().part(a);
  zeros.padding = {Padding::Kind::kFill, Scalar::of_float(DType::kF32, 0)};
  program.module().set_part(a, zeros);
  const auto executable = program.executable({});
  Random random(3);
  return run_virtual(*executable, std::vector{given(*executable, 0, random_array(random, DType::kF32, {6}))}, options);
}

TEST(Poison, AClaimThatHoldsPasses) {
  for (const bool faithful : {false, true}) {
    const Scalar zero = Scalar::of_float(DType::kF32, 0);
    EXPECT_TRUE(same_elements(gather(doubled(zero, {.faithful = faithful, .poison = true})[0]),
                              gather(doubled(zero, {.faithful = faithful})[0])));
  }
}

TEST(Poison, AClaimThatDoesNotHoldIsABug) {
  const Scalar three = Scalar::of_float(DType::kF32, 3);
  for (const bool faithful : {false, true}) {
    const std::string message =
        message_of<InternalError>([&] { doubled(three, {.faithful = faithful, .poison = true}); });
    EXPECT_NE(message.find("stablehlo.add: the padding of shard 3 must be 3, but holds 0"), std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace shardwise
