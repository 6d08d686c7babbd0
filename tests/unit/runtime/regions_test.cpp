// SPDX-License-Identifier: Apache-2.0
//
// Loops and branches: local programs as text, on several meshes and in all modes.
#include <array>
#include <map>
#include <numeric>

#include "runtime/local_text.h"
#include "shardwise/base/error.h"
#include "shardwise/runtime/memory/buffer_pool.h"
#include "shardwise/runtime/plan/plan.h"
#include "support/message_of.h"

namespace shardwise {
namespace {

using namespace shardwise::testing;

MeshPtr mesh_of(std::vector<MeshAxis> axes) { return std::make_shared<const Mesh>("mesh", std::move(axes)); }

std::vector<int64_t> counted(int64_t count) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1);
  return values;
}

template <class F>
std::vector<int64_t> mapped(std::vector<int64_t> values, F&& f) {
  for (int64_t& value : values) value = f(value);
  return values;
}

// while i < limit: body, which makes %next of %c, with %i as i32.
std::string counted_loop(std::string_view type, std::string_view init, std::string_view limit, std::string_view body) {
  return str("%zero = stablehlo.constant dense<0> : tensor<i32>\n%one = stablehlo.constant dense<1> : tensor<i32>\n",
             "%limit = stablehlo.constant dense<", limit, "> : tensor<i32>\n",
             "%r:2 = stablehlo.while(%i = %zero, %c = ", init, ") : tensor<i32>, ", type, R"(
      cond {
        %goes = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %goes : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        )",
             body, "\nstablehlo.return %j, %next : tensor<i32>, ", type, "\n}\n");
}

std::string main_of(std::string_view arguments, std::string_view results, std::string_view body,
                    std::string_view returned) {
  return str("func.func @main(", arguments, ") -> (", results, ") {\n", body, "\nreturn ", returned, " : ", results,
             "\n}");
}

// c ← c + (sum of c over x): each shard's row of k elements, k = local size.
TEST(Regions, ALoopWithAnAllReduceOnAnyNumberOfDevices) {
  for (const int64_t devices : {1, 4, 8}) {
    const MeshPtr mesh = mesh_of({{"x", devices}});
    const std::string type = "tensor<1x3xf32>";
    const LocalText program(mesh,
                            main_of(str("%a: ", type), type,
                                    counted_loop(type, "%a", "5",
                                                 str(R"(
        %s = "shardwise.all_reduce"(%c) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum"}> : ()",
                                                     type, ") -> ", type, "\n%next = stablehlo.add %c, %s : ", type)),
                                    "%r#1"),
                            {{{devices, 3}, {{full_axis(*mesh, 0)}, {}}}},
                            {{{devices, 3}, {{full_axis(*mesh, 0)}, {}}}});
    std::vector<int64_t> values = counted(devices * 3);
    const NdArray whole = numbers(DType::kF32, {devices, 3}, values);
    for (int trip = 0; trip < 5; ++trip) {
      std::array<int64_t, 3> sums{};
      for (size_t i = 0; i < values.size(); ++i) sums[i % 3] += values[i];
      for (size_t i = 0; i < values.size(); ++i) values[i] += sums[i % 3];
    }
    program.expect({whole}, {numbers(DType::kF32, {devices, 3}, values)});
  }
}

// 10 rows in blocks of 3 over 4 devices and of 4 over 3: the padding is poisoned in each trip and never read.
TEST(Regions, UnevenCarries) {
  for (const int64_t devices : {4, 3}) {
    const MeshPtr mesh = mesh_of({{"x", devices}, {"y", 2}});
    const std::string type = str("tensor<", ceil_div(10, devices), "xf32>");
    const LocalText program(
        mesh,
        main_of(str("%a: ", type), type,
                counted_loop(type, "%a", "7",
                             str("%d = stablehlo.negate %c : ", type, "\n%e = stablehlo.subtract %d, %c : ", type,
                                 "\n%next = stablehlo.abs %e : ", type)),
                "%r#1"),
        {{{10}, {{full_axis(*mesh, 0)}}}}, {{{10}, {{full_axis(*mesh, 0)}}}});
    program.expect({numbers(DType::kF32, {10}, counted(10))},
                   {numbers(DType::kF32, {10}, mapped(counted(10), [](int64_t v) { return v * 128; }))});
  }
}

// %b starts the same everywhere and varies after one trip, %c after two, %d after three.
TEST(Regions, CarriesThatBecomeVarying) {
  const MeshPtr mesh = mesh_of({{"x", 2}, {"y", 4}});
  const AxisList both{full_axis(*mesh, 0), full_axis(*mesh, 1)};
  const std::string text = R"(func.func @main(%a: tensor<1xi32>) -> (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %limit = stablehlo.constant dense<4> : tensor<i32>
    %r:4 = stablehlo.while(%i = %zero, %b = %a, %c = %a, %d = %a)
        : tensor<i32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>
      cond {
        %goes = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %goes : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        %k = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"y"}>, mesh = @mesh}> : () -> tensor<i32>
        %l = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
        %e = stablehlo.add %b, %l : tensor<1xi32>
        %f = stablehlo.add %c, %b : tensor<1xi32>
        %g = stablehlo.add %d, %c : tensor<1xi32>
        stablehlo.return %j, %e, %f, %g : tensor<i32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>
      }
    return %r#1, %r#2, %r#3 : tensor<1xi32>, tensor<1xi32>, tensor<1xi32>
  })";
  const Placed everywhere{{8}, {both}};
  const LocalText program(mesh, text, {{{1}, {{}}}}, {everywhere, everywhere, everywhere});
  std::vector<int64_t> b(8, 1), c(8, 1), d(8, 1);
  for (int trip = 0; trip < 4; ++trip) {
    for (size_t i = 0; i < 8; ++i) {
      d[i] += c[i];
      c[i] += b[i];
      b[i] += static_cast<int64_t>(i % 4);
    }
  }
  program.expect({numbers(DType::kI32, {1}, {1})},
                 {numbers(DType::kI32, {8}, b), numbers(DType::kI32, {8}, c), numbers(DType::kI32, {8}, d)});
  // All carries vary along y alone, so that four shards serve eight devices.
  const Plan plan = make_plan(program.module(), *mesh, {});
  for (const Step& step : plan.main.steps) {
    if (!std::holds_alternative<Loop>(step.work)) continue;
    ASSERT_EQ(step.outputs.size(), 4U);
    EXPECT_TRUE(plan.slot_axes[step.outputs[0]].empty());
    for (size_t i = 1; i < 4; ++i) EXPECT_EQ(plan.slot_axes[step.outputs[i]], AxisList{full_axis(*mesh, 1)});
  }
}

TEST(Regions, CarriesThatSwapStayOrMeet) {
  const MeshPtr mesh = mesh_of({{"x", 2}});
  const std::string text = R"(func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>)
      -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %limit = stablehlo.constant dense<3> : tensor<i32>
    %r:6 = stablehlo.while(%i = %zero, %c = %a, %d = %b, %e = %a, %f = %a, %g = %a)
        : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
      cond {
        %goes = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %goes : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        %h = stablehlo.add %c, %d : tensor<2xf32>
        %k = stablehlo.negate %f : tensor<2xf32>
        stablehlo.return %j, %d, %c, %e, %k, %b
            : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
      }
    %s = stablehlo.add %r#3, %b : tensor<2xf32>
    return %r#1, %r#2, %s, %r#4, %r#5 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  })";
  const Placed placed{{4}, {{full_axis(*mesh, 0)}}};
  const LocalText program(mesh, text, {placed, placed}, {placed, placed, placed, placed, placed});
  const std::vector<int64_t> a{1, 2, 3, 4}, b{50, 60, 70, 80};
  const auto array = [](const std::vector<int64_t>& values) { return numbers(DType::kF32, {4}, values); };
  program.expect({array(a), array(b)},
                 {array(b), array(a), array({51, 62, 73, 84}), array({-1, -2, -3, -4}), array(b)});
}

TEST(Regions, NoTripsAtAll) {
  const MeshPtr mesh = mesh_of({{"x", 4}});
  const std::string type = "tensor<2xf32>";
  const Placed placed{{8}, {{full_axis(*mesh, 0)}}};
  const LocalText program(mesh,
                          main_of(str("%a: ", type), type,
                                  counted_loop(type, "%a", "0", str("%next = stablehlo.negate %c : ", type)), "%r#1"),
                          {placed}, {placed});
  const NdArray whole = numbers(DType::kF32, {8}, counted(8));
  program.expect({whole}, {whole});
  EXPECT_EQ(program.run({whole})[0].data(), whole.data());  // nothing is copied
}

// A triangle of additions: the inner loop's limit is a carry of the outer one, and both capture from around.
TEST(Regions, LoopsInLoops) {
  const MeshPtr mesh = mesh_of({{"x", 8}});
  const std::string type = "tensor<2xf32>";
  const std::string inner = R"(
        %n:2 = stablehlo.while(%k = %zero, %d = %c) : tensor<i32>, tensor<2xf32>
          cond {
            %more = stablehlo.compare LT, %k, %j, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %more : tensor<i1>
          } do {
            %l = stablehlo.add %k, %one : tensor<i32>
            %e = stablehlo.add %d, %b : tensor<2xf32>
            stablehlo.return %l, %e : tensor<i32>, tensor<2xf32>
          }
        %next = stablehlo.negate %n#1 : tensor<2xf32>)";
  const Placed placed{{16}, {{full_axis(*mesh, 0)}}};
  const LocalText program(
      mesh,
      main_of("%a: tensor<2xf32>", type,
              str("%b = stablehlo.abs %a : ", type, "\n", counted_loop(type, "%a", "4", inner)), "%r#1"),
      {placed}, {placed});
  const auto f = [](int64_t v) {
    int64_t c = v;
    for (int64_t j = 1; j <= 4; ++j) c = -(c + j * std::abs(v));
    return c;
  };
  program.expect({numbers(DType::kF32, {16}, counted(16))}, {numbers(DType::kF32, {16}, mapped(counted(16), f))});
}

// The branch depends on the trip; one branch holds a loop, one a collective, one returns a capture.
TEST(Regions, BranchesInLoopsAndLoopsInBranches) {
  const MeshPtr mesh = mesh_of({{"x", 4}, {"y", 2}});
  const std::string type = "tensor<2xf32>";
  const std::string body = R"(
        %next = "stablehlo.case"(%i) ({
          stablehlo.return %b : tensor<2xf32>
        }, {
          %s = "shardwise.all_reduce"(%c) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum"}> : (tensor<2xf32>) -> tensor<2xf32>
          stablehlo.return %s : tensor<2xf32>
        }, {
          %n:2 = stablehlo.while(%k = %i, %d = %c) : tensor<i32>, tensor<2xf32>
            cond {
              %more = stablehlo.compare GT, %k, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
              stablehlo.return %more : tensor<i1>
            } do {
              %l = stablehlo.subtract %k, %one : tensor<i32>
              %e = stablehlo.add %d, %b : tensor<2xf32>
              stablehlo.return %l, %e : tensor<i32>, tensor<2xf32>
            }
          stablehlo.return %n#1 : tensor<2xf32>
        }) : (tensor<i32>) -> tensor<2xf32>)";
  const Placed placed{{8}, {{full_axis(*mesh, 0)}}};
  const LocalText program(
      mesh,
      main_of("%a: tensor<2xf32>", type,
              str("%b = stablehlo.negate %a : ", type, "\n", counted_loop(type, "%a", "5", body)), "%r#1"),
      {placed}, {placed});
  std::vector<int64_t> c = counted(8);
  const std::vector<int64_t> b = mapped(c, [](int64_t v) { return -v; });
  c = b;                                                                                   // 0
  for (size_t i = 0; i < 8; ++i) c[i] = i % 2 == 0 ? -(1 + 3 + 5 + 7) : -(2 + 4 + 6 + 8);  // 1
  for (int64_t trip : {2, 3, 4}) {  // 4 is out of bounds: the last branch
    for (size_t i = 0; i < 8; ++i) c[i] += trip * b[i];
  }
  program.expect({numbers(DType::kF32, {8}, counted(8))}, {numbers(DType::kF32, {8}, c)});
}

TEST(Regions, BranchesThatVaryAlongDifferentAxes) {
  const MeshPtr mesh = mesh_of({{"x", 2}, {"y", 2}});
  const AxisList both{full_axis(*mesh, 0), full_axis(*mesh, 1)};
  const std::string text = R"(func.func @main(%p: tensor<i1>, %a: tensor<1xi32>) -> tensor<1xi32> {
    %r = "stablehlo.if"(%p) ({
      %k = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"y"}>, mesh = @mesh}> : () -> tensor<i32>
      %l = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
      stablehlo.return %l : tensor<1xi32>
    }, {
      stablehlo.return %a : tensor<1xi32>
    }) : (tensor<i1>) -> tensor<1xi32>
    return %r : tensor<1xi32>
  })";
  const LocalText program(mesh, text, {{{}, {}}, {{2}, {{full_axis(*mesh, 0)}}}}, {{{4}, {both}}});
  const NdArray a = numbers(DType::kI32, {2}, {7, 9});
  program.expect({numbers(DType::kBool, {}, {1}), a}, {numbers(DType::kI32, {4}, {0, 1, 0, 1})});
  program.expect({numbers(DType::kBool, {}, {0}), a}, {numbers(DType::kI32, {4}, {7, 7, 9, 9})});
}

TEST(Regions, AnIndexBelowZeroPicksTheLastBranch) {
  const MeshPtr mesh = mesh_of({{"x", 1}});
  const std::string text = R"(func.func @main(%p: tensor<i32>, %a: tensor<f32>) -> tensor<f32> {
    %r = "stablehlo.case"(%p) ({
      stablehlo.return %a : tensor<f32>
    }, {
      %l = stablehlo.negate %a : tensor<f32>
      stablehlo.return %l : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    return %r : tensor<f32>
  })";
  const LocalText program(mesh, text, {{{}, {}}, {{}, {}}}, {{{}, {}}});
  const NdArray a = numbers(DType::kF32, {}, {7});
  program.expect({numbers(DType::kI32, {}, {0}), a}, {a});
  for (const int64_t index : {-1, 1, 2, 1000}) {
    program.expect({numbers(DType::kI32, {}, {index}), a}, {numbers(DType::kF32, {}, {-7})});
  }
}

// The way is one for all devices, so what decides on it cannot vary.
TEST(Regions, APredicateThatVaries) {
  const MeshPtr mesh = mesh_of({{"x", 2}, {"y", 2}});
  const std::string loop = R"(func.func @main(%a: tensor<i1>) -> tensor<i1> {
    %r = stablehlo.while(%c = %a) : tensor<i1>
      cond {
        stablehlo.return %c : tensor<i1>
      } do {
        %k = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"y"}>, mesh = @mesh}> : () -> tensor<i32>
        %d = stablehlo.convert %k : (tensor<i32>) -> tensor<i1>
        stablehlo.return %d : tensor<i1>
      }
    return %r : tensor<i1>
  })";
  const auto plan = [&](const std::string& text, const PlanOptions& options) {
    const LocalText program(mesh, text, {{{}, {}}}, {{{}, {}}});
    make_plan(program.module(), *mesh, options);
  };
  const std::string expected =
      "stablehlo.while: the condition must be the same on all devices, got a value that varies along {\"y\"}; reduce "
      "it "
      "over these axes";
  EXPECT_EQ(message_of<UnsupportedError>([&] { plan(loop, {}); }), expected);
  EXPECT_THROW(plan(loop, {.pinned = {full_axis(*mesh, 1)}}), UnsupportedError);
  EXPECT_NO_THROW(plan(loop, {.faithful = true}));  // nothing is known there; the other plan is made first
  const std::string branch = R"(func.func @main(%a: tensor<i32>) -> tensor<i32> {
    %k = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x", "y"}>, mesh = @mesh}> : () -> tensor<i32>
    %r = "stablehlo.case"(%k) ({
      stablehlo.return %a : tensor<i32>
    }) : (tensor<i32>) -> tensor<i32>
    return %r : tensor<i32>
  })";
  EXPECT_EQ(
      message_of<UnsupportedError>([&] { plan(branch, {}); }),
      "stablehlo.case: the operand must be the same on all devices, got a value that varies along {\"x\", \"y\"}; "
      "reduce it over these axes");
}

TEST(Regions, ALoopThatNeverEndsStops) {
  const MeshPtr mesh = mesh_of({{"x", 2}});
  const std::string with_steps = R"(func.func @main(%a: tensor<f32>) -> tensor<f32> {
    %true = stablehlo.constant dense<true> : tensor<i1>
    %r = stablehlo.while(%c = %a) : tensor<f32>
      cond {
        stablehlo.return %true : tensor<i1>
      } do {
        %d = stablehlo.negate %c : tensor<f32>
        stablehlo.return %d : tensor<f32>
      }
    return %r : tensor<f32>
  })";
  std::string without_steps = with_steps;
  without_steps.replace(without_steps.find("%d = stablehlo.negate %c : tensor<f32>"), 38, "");
  without_steps.replace(without_steps.find("return %d"), 9, "return %c");
  for (const std::string& text : {with_steps, without_steps}) {
    const LocalText program(mesh, text, {{{}, {}}}, {{{}, {}}});
    int calls = 0;
    const auto stop = [&] {
      if (++calls == 1000) throw std::runtime_error("stop");
    };
    const int64_t before = live_buffer_bytes();
    EXPECT_THROW(program.run({numbers(DType::kF32, {}, {1})}, {.between_ops = stop}), std::runtime_error);
    EXPECT_EQ(calls, 1000);
    EXPECT_EQ(live_buffer_bytes(), before);
  }
}

TEST(Regions, TraceHasARowForEachStepThatRuns) {
  const MeshPtr mesh = mesh_of({{"x", 2}});
  const std::string type = "tensor<2xf32>";
  const Placed placed{{4}, {{full_axis(*mesh, 0)}}};
  const LocalText program(mesh,
                          main_of(str("%a: ", type), type,
                                  counted_loop(type, "%a", "3", str("%next = stablehlo.tanh %c : ", type)), "%r#1"),
                          {placed}, {placed});
  std::vector<StepTiming> trace;
  program.run({numbers(DType::kF32, {4}, counted(4))}, {.trace = &trace});
  std::map<std::string_view, int> rows;
  for (const StepTiming& row : trace) ++rows[row.op];
  const std::map<std::string_view, int> expected{
      {"stablehlo.constant", 1}, {"stablehlo.compare", 4}, {"stablehlo.add", 3}, {"stablehlo.tanh", 3}};
  EXPECT_EQ(rows, expected);
}

// ---- memory --------------------------------------------------------------------------------------------------------

// A loop that writes row i of a stack: it owns its carry, so the stack is written where it is.
std::string scan_of(int64_t rows, int64_t columns, std::string_view init) {
  const std::string stack = str("tensor<", rows, "x", columns, "xf32>");
  const std::string row = str("tensor<1x", columns, "xf32>");
  return counted_loop(stack, init, str(rows),
                      str("%x = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>\n",
                          "%y = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> ", row,
                          "\n%next = stablehlo.dynamic_update_slice %c, %y, %i, %zero : (", stack, ", ", row,
                          ", tensor<i32>, tensor<i32>) -> ", stack));
}

// All memory that the runs of the program took from the system, beyond what is alive before.
template <class F>
int64_t taken_by(F&& run) {
  const int64_t capacity = buffer_pool_capacity();
  set_buffer_pool_capacity(0);  // free what is kept
  set_buffer_pool_capacity(capacity);
  const int64_t before = live_buffer_bytes();
  const auto results = run();
  return live_buffer_bytes() - before + buffer_pool_bytes();
}

TEST(Regions, AStackIsWrittenInPlace) {
  const MeshPtr mesh = mesh_of({{"x", 8}});
  constexpr int64_t kRows = 1000, kColumns = 64, kBytes = kRows * kColumns * 4;
  const std::string stack = str("tensor<", kRows, "x", kColumns, "xf32>");
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < kRows * kColumns; ++i) expected.push_back(i / kColumns);
  const NdArray stacked = numbers(DType::kF32, {kRows, kColumns}, expected);
  const NdArray ones = numbers(DType::kF32, {kRows, kColumns}, std::vector<int64_t>(expected.size(), 1));
  const Placed placed{{kRows, kColumns}, {{}, {}}};

  // From an argument, which the loop copies once; from zeros; and from a value that is read after the loop, too.
  const LocalText of_argument(mesh, main_of(str("%a: ", stack), stack, scan_of(kRows, kColumns, "%a"), "%r#1"),
                              {placed}, {placed});
  const LocalText of_zeros(
      mesh,
      main_of("", stack, str("%a = stablehlo.constant dense<0.0> : ", stack, "\n", scan_of(kRows, kColumns, "%a")),
              "%r#1"),
      {}, {placed});
  const LocalText of_used(
      mesh,
      main_of(str("%a: ", stack), str(stack, ", ", stack),
              str("%b = stablehlo.negate %a : ", stack, "\n", scan_of(kRows, kColumns, "%b")), "%b, %r#1"),
      {placed}, {placed, placed});
  const auto is_about = [](int64_t taken, int64_t arrays) {
    return taken >= arrays * kBytes && taken < arrays * kBytes * 5 / 4 + (1 << 14);
  };
  std::vector<NdArray> results;
  EXPECT_PRED2(is_about, taken_by([&] { return results = of_argument.run({ones}); }), 1);
  EXPECT_TRUE(same_elements(results[0], stacked));
  results.clear();
  EXPECT_PRED2(is_about, taken_by([&] { return results = of_zeros.run({}); }), 1);
  EXPECT_TRUE(same_elements(results[0], stacked));
  results.clear();
  EXPECT_PRED2(is_about, taken_by([&] { return results = of_used.run({ones}); }), 2);
  EXPECT_TRUE(same_elements(results[1], stacked));
  EXPECT_EQ(results[0].scalar_at(5).real, -1);
  EXPECT_EQ(ones.scalar_at(5).real, 1);
  of_argument.expect({ones}, {stacked});
  of_used.expect({ones}, {numbers(DType::kF32, {kRows, kColumns}, std::vector<int64_t>(expected.size(), -1)), stacked});
}

// The loop's body makes %next of the carry %c, 1000x64 and 1 everywhere at first; and it takes the memory of one array.
void expect_written_in_place(const std::string& body, const std::function<int64_t(int64_t row)>& expected) {
  const MeshPtr mesh = mesh_of({{"x", 4}});
  const std::string stack = "tensor<1000x64xf32>";
  const Placed placed{{1000, 64}, {{}, {}}};
  const LocalText program(mesh, main_of(str("%a: ", stack), stack, counted_loop(stack, "%a", "1000", body), "%r#1"),
                          {placed}, {placed});
  const NdArray ones = numbers(DType::kF32, {1000, 64}, std::vector<int64_t>(64000, 1));
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 64000; ++i) values.push_back(expected(i / 64));
  std::vector<NdArray> results;
  EXPECT_LT(taken_by([&] { return results = program.run({ones}); }), ones.nbytes() * 3 / 2);
  program.expect({ones}, {numbers(DType::kF32, {1000, 64}, values)});
}

// The same with scatter, which adds to rows of the carry.
TEST(Regions, AScatterWritesItsCarry) {
  const std::string body = R"(
        %at = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
        %x = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
        %y = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<64xf32>
        %next = "stablehlo.scatter"(%c, %at, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %s = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<1000x64xf32>, tensor<1xi32>, tensor<64xf32>) -> tensor<1000x64xf32>)";
  expect_written_in_place(body, [](int64_t row) { return 1 + row; });
}

// A branch runs once in a trip, so it writes a carry that is not read after it.
TEST(Regions, ABranchWritesACarryOfTheLoopAroundIt) {
  const std::string body = R"(
        %two = stablehlo.constant dense<2> : tensor<i32>
        %odd = stablehlo.remainder %i, %two : tensor<i32>
        %next = "stablehlo.case"(%odd) ({
          %y = stablehlo.constant dense<7.0> : tensor<1x64xf32>
          %u = stablehlo.dynamic_update_slice %c, %y, %i, %zero : (tensor<1000x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1000x64xf32>
          stablehlo.return %u : tensor<1000x64xf32>
        }, {
          stablehlo.return %c : tensor<1000x64xf32>
        }) : (tensor<i32>) -> tensor<1000x64xf32>)";
  expect_written_in_place(body, [](int64_t row) { return row % 2 == 0 ? 7 : 1; });
}

// A capture of a loop is never written, however often the loop runs.
TEST(Regions, CapturesStayAsTheyAre) {
  const MeshPtr mesh = mesh_of({{"x", 2}});
  const std::string body = R"(
        %y = stablehlo.constant dense<5.0> : tensor<1x4xf32>
        %u = stablehlo.dynamic_update_slice %b, %y, %i, %zero : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
        %next = stablehlo.add %c, %u : tensor<8x4xf32>)";
  const std::string type = "tensor<8x4xf32>";
  const Placed placed{{8, 4}, {{}, {}}};
  const LocalText program(
      mesh,
      main_of(str("%a: ", type), type,
              str("%b = stablehlo.negate %a : ", type, "\n", counted_loop(type, "%b", "3", body)), "%r#1"),
      {placed}, {placed});
  std::vector<int64_t> expected;
  for (int64_t row = 0; row < 8; ++row) expected.insert(expected.end(), 4, row < 3 ? -1 - 1 - 1 + 5 : -4);
  program.expect({numbers(DType::kF32, {8, 4}, std::vector<int64_t>(32, 1))}, {numbers(DType::kF32, {8, 4}, expected)});
}

TEST(Regions, MemoryDoesNotGrowWithTheTrips) {
  const MeshPtr mesh = mesh_of({{"x", 8}});
  const std::string type = "tensor<32x32xf32>";
  const Placed placed{{256, 32}, {{full_axis(*mesh, 0)}, {}}};
  const NdArray whole = numbers(DType::kF32, {256, 32}, std::vector<int64_t>(256 * 32, 1));
  std::vector<int64_t> taken;
  for (const std::string_view trips : {"10", "10000"}) {
    const LocalText program(mesh,
                            main_of(str("%a: ", type), type, counted_loop(type, "%a", trips, R"(
        %d = stablehlo.transpose %c, dims = [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
        %e = stablehlo.tanh %d : tensor<32x32xf32>
        %f = stablehlo.dot_general %e, %c, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
        %next = stablehlo.tanh %f : tensor<32x32xf32>)"),
                                    "%r#1"),
                            {placed}, {placed});
    int64_t peak = 0;
    const int64_t before = live_buffer_bytes();
    taken.push_back(taken_by([&] {
      return program.run({whole}, {.between_ops = [&] { peak = std::max(peak, live_buffer_bytes() - before); }});
    }));
    EXPECT_LE(peak, 3 * whole.nbytes() + 1024);
    EXPECT_EQ(live_buffer_bytes(), before);
  }
  EXPECT_EQ(taken[0], taken[1]);
}

}  // namespace
}  // namespace shardwise
