// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a permute, as counted in a run and as the ledger predicts them.
#include "shardwise/runtime/counting_communicator.h"

#include <numeric>

#include <gtest/gtest.h>

#include "shardwise/analysis/device_bytes.h"
#include "shardwise/base/text.h"
#include "shardwise/runtime/virtual_communicator.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

struct Permute {
  std::string_view attrs;
  std::vector<int64_t> received;  // of a tile of 8 bytes, by device
};

constexpr std::string_view kAll = R"(axes = #sdy<axis_ref_list{"x", "y"}>)";

std::vector<Permute> permutes() {
  return {
      {"shift = 1 : i64, wrap = false", {0, 8, 8, 8}},
      {"shift = -3 : i64, wrap = false", {8, 0, 0, 0}},
      {"shift = 0 : i64, wrap = false", {0, 0, 0, 0}},
      {"shift = 1 : i64, wrap = true", {8, 8, 8, 8}},
      {"shift = 4 : i64, wrap = true", {0, 0, 0, 0}},
      {"shift = -8 : i64, wrap = true", {0, 0, 0, 0}},
      {"reducer = \"sum\", shift = -1 : i64, wrap = false", {8, 8, 8, 0}},
      {R"(from = #sdy<axis_ref_list{"x"}>, to = #sdy<axis_ref_list{"y"}>)", {0, 8, 8, 0}},
  };
}

TEST(CountingCommunicator, APermuteSendsWhatTheLedgerPredicts) {
  for (const Permute& permute : permutes()) {
    const bool is_shift = permute.attrs.find("shift") != std::string_view::npos;
    const Module module = parse_program(
        str("sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]>\nfunc.func @main(%0: tensor<2xf32>) -> tensor<2xf32> {\n",
            "%1 = \"shardwise.collective_permute\"(%0) <{", is_shift ? str(kAll, ", ") : "", permute.attrs,
            ", mesh = @mesh}> : (tensor<2xf32>) -> tensor<2xf32>\nreturn %1 : tensor<2xf32>\n}\n"));
    const OpId op = module.region(module.main().body).ops[0];
    VirtualCommunicator devices;
    CountingCommunicator counter(devices, module.meshes.front());
    DeviceOrders orders;
    const Shards shards(NdArray::full(DType::kF32, {2}, Scalar::of_float(DType::kF32, 1)));
    counter.begin(op);
    counter.run_on_its_mesh(read_collective(OpView(module, op), *module.meshes.front(), orders), {&shards, 1});
    EXPECT_EQ(counter.received().at(op), permute.received) << permute.attrs;
    const auto sum = std::reduce(permute.received.begin(), permute.received.end());
    EXPECT_EQ(device_bytes(OpView(module, op), 8).sum, static_cast<double>(sum)) << permute.attrs;
  }
}

}  // namespace
}  // namespace shardwise
