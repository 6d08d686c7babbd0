// SPDX-License-Identifier: Apache-2.0
//
// The ledger's bytes and numbers of collectives, times trips and calls, are what a communicator counts in a run.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "runtime/local_program.h"
#include "shardwise/analysis/collective_ledger.h"
#include "shardwise/base/text.h"
#include "shardwise/compiler/compile.h"
#include "shardwise/cost/exchange_cost.h"
#include "shardwise/runtime/executor.h"
#include "shardwise/text/parser.h"

namespace shardwise {
namespace {

// Counts the bytes that one device receives.
class CountingCommunicator final : public Communicator {
 public:
  struct Sent {
    int64_t count = 0;
    double bytes = 0;
  };
  std::map<OpId, Sent> sent;

  void begin(OpId op) override { op_ = op; }
  Shards run_on_its_mesh(const CollectiveCall& call, std::span<const Shards> operands) override {
    if (call.kind != CollectiveKind::kAxisIndex) {
      ++sent[op_].count;
      sent[op_].bytes += bytes_received(call, operands[0]);
    }
    return own_.run_on_its_mesh(call, operands);
  }

 private:
  static double bytes_received(const CollectiveCall& call, const Shards& operand) {
    const auto bytes = static_cast<double>(element_count(operand.local_shape()) * item_size(operand.dtype()));
    int64_t group = product(call.axes);
    for (const AllToAllMove& move : call.moves) group *= product(move.axes);
    // The parts of the operand that the others of a group have.
    const double others = bytes * static_cast<double>(group - 1) / static_cast<double>(group);
    switch (call.kind) {
      case CollectiveKind::kAllReduce: return 2 * others;
      case CollectiveKind::kReduceScatter:
      case CollectiveKind::kAllToAll: return others;
      case CollectiveKind::kAllGather:
        for (const AxisList& axes : call.dims) group *= product(axes);
        return bytes * static_cast<double>(group - 1);
      case CollectiveKind::kExchange:
        return exchange_cost(call.exchange).elements * static_cast<double>(item_size(operand.dtype()));
      default: return bytes;
    }
  }

  VirtualCommunicator own_;
  OpId op_;
};

constexpr std::string_view kType = "tensor<10x12xf32>";

// Ops on %x, whose result is %<name>.
std::string add_sum(std::string_view x, std::string_view name) {
  return str("%z", name, " = stablehlo.constant dense<0.0> : tensor<f32>\n%s", name, " = stablehlo.reduce(%", x,
             " init: %z", name, ") applies stablehlo.add across dimensions = [0] : (", kType,
             ", tensor<f32>) -> tensor<12xf32>\n%b", name, " = stablehlo.broadcast_in_dim %s", name,
             ", dims = [1] : (tensor<12xf32>) -> ", kType, "\n%", name, " = stablehlo.add %", x, ", %b", name, " : ",
             kType, "\n");
}

std::string constrain(std::string_view x, std::string_view name, std::string_view dims) {
  return str("%t", name, " = stablehlo.tanh %", x, " : ", kType, "\n%", name, " = sdy.sharding_constraint %t", name,
             " <@mesh, [", dims, "]> : ", kType, "\n");
}

std::string reversed(std::string_view x, std::string_view name) {
  return str("%", name, " = stablehlo.reverse %", x, ", dims = [0] : ", kType, "\n");
}

std::string loop(std::string_view x, std::string_view name, int trips, const std::string& body,
                 std::string_view result) {
  const std::string i = str("i", name);
  return str("%zero", i, " = stablehlo.constant dense<0> : tensor<i32>\n%one", i,
             " = stablehlo.constant dense<1> : tensor<i32>\n%end", i, " = stablehlo.constant dense<", trips,
             "> : tensor<i32>\n%", name, "_:2 = stablehlo.while(%", i, " = %zero", i, ", %c", name, " = %", x,
             ") : tensor<i32>, ", kType, " cond {\n%p", i, " = stablehlo.compare LT, %", i, ", %end", i,
             " : (tensor<i32>, tensor<i32>) -> tensor<i1>\nstablehlo.return %p", i, " : tensor<i1>\n} do {\n", body,
             "%n", i, " = stablehlo.add %", i, ", %one", i, " : tensor<i32>\nstablehlo.return %n", i, ", %", result,
             " : tensor<i32>, ", kType, "\n}\n%", name, " = stablehlo.negate %", name, "_#1 : ", kType, "\n");
}

std::string branch(std::string_view x, std::string_view name, const std::string& body, std::string_view result) {
  return str("%p", name, " = stablehlo.constant dense<0> : tensor<i32>\n%", name, " = \"stablehlo.case\"(%p", name,
             ") ({\n", body, "stablehlo.return %", result, " : ", kType, "\n}, {\nstablehlo.return %", x, " : ", kType,
             "\n}) : (tensor<i32>) -> ", kType, "\n");
}

std::string call(std::string_view x, std::string_view name, std::string_view function = "f") {
  return str("%", name, " = func.call @", function, "(%", x, ") : (", kType, ") -> ", kType, "\n");
}

// The function has so many ops that it is not inlined.
std::string function(std::string_view name, const std::string& body, std::string_view result) {
  std::string text = str("func.func private @", name, "(%x: ", kType, ") -> ", kType, " {\n", body);
  std::string last(result);
  for (int i = 0; i < 12; ++i) {
    text += str("%m", i, " = stablehlo.tanh %", last, " : ", kType, "\n");
    last = str("m", i);
  }
  return text + str("return %", last, " : ", kType, "\n}\n");
}

struct Program {
  const char* name;
  std::string body;  // from %x to %r
  std::string functions = {};
};

std::vector<Program> programs() {
  const std::string f = function("f", add_sum("x", "y"), "y");
  const std::string twice = call("cl", "a") + call("a", "b");
  return {
      {"sum", add_sum("x", "r")},
      {"sums", add_sum("x", "y") + add_sum("y", "r")},
      {"loop", loop("x", "r", 5, add_sum("cr", "y"), "y")},
      {"no trips", loop("x", "r", 0, add_sum("cr", "y"), "y")},
      {"loops in loops", loop("x", "r", 3, loop("cr", "l", 4, add_sum("cl", "y"), "y"), "l")},
      {"branch", branch("x", "r", add_sum("x", "y"), "y")},
      {"branch in a loop", loop("x", "r", 3, branch("cr", "l", add_sum("cr", "y"), "y"), "l")},
      {"all_to_all in a loop",
       loop("x", "r", 4, constrain("cr", "y", "{}, {\"a\"}") + constrain("y", "w", "{\"a\"}, {}"), "w")},
      {"gather in a loop", loop("x", "r", 4, constrain("cr", "y", "{}, {}") + constrain("y", "w", "{\"b\"}, {}"), "w")},
      {"exchange in a loop", loop("x", "r", 2, reversed("cr", "y") + add_sum("y", "w"), "w")},
      {"calls", call("x", "y") + call("y", "w") + call("w", "r"), f},
      {"calls in loops", loop("x", "l", 3, twice, "b") + loop("l", "k", 2, call("ck", "c"), "c") + call("k", "r"), f},
      {"calls in a branch", call("x", "y") + branch("y", "r", call("y", "w"), "w"), f},
      {"calls in calls", call("x", "y", "g") + loop("y", "l", 3, call("cl", "w", "g"), "w") + call("l", "r"),
       f + function("g", call("x", "y") + loop("y", "l", 2, call("cl", "w"), "w"), "l")},
  };
}

Module module_of(const Program& program) {
  return parse(str("sdy.mesh @mesh = <[\"a\"=4, \"b\"=2]>\nfunc.func @main(%x: ", kType,
                   " {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {}]>}) -> ", kType, " {\n", program.body,
                   "return %r : ", kType, "\n}\n", program.functions),
               std::make_shared<Context>());
}

TEST(LedgerCounts, AreThoseOfTheCommunicator) {
  register_ops();
  int64_t collectives = 0;
  for (const Program& program : programs()) {
    SCOPED_TRACE(program.name);
    const CompileUnit unit = compile(std::make_shared<Module>(module_of(program)));
    const Executable executable(unit.module, unit.module->meshes.front());
    const NdArray x = NdArray::empty(DType::kF32, {10, 12});
    std::fill_n(reinterpret_cast<float*>(x.data()), x.size(), 0.25F);
    CountingCommunicator devices;
    executable.run(devices, {scatter(x, executable.argument_placement(0))});
    size_t run = 0;
    for (const LedgerRow& row : collective_ledger(*unit.module)) {
      const CountingCommunicator::Sent& sent = devices.sent[row.op];
      EXPECT_NE(row.bound, "per trip") << row.cause;
      EXPECT_EQ(sent.count, row.count) << row.name << " for " << row.cause;
      EXPECT_DOUBLE_EQ(sent.bytes, row.bytes * static_cast<double>(row.count)) << row.name << " for " << row.cause;
      collectives += sent.count;
      ++run;
    }
    EXPECT_EQ(devices.sent.size(), run);
    EXPECT_GT(run, 0U);
  }
  EXPECT_GT(collectives, 50);
}

}  // namespace
}  // namespace shardwise
