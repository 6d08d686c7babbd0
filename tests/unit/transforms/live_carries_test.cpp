// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/live_carries.h"

#include <gtest/gtest.h>

#include "shardwise/transforms/form_scans.h"
#include "shardwise/transforms/simplify_loops.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

// while(%i, %a, %b, %c) do { body; return %j, %a2, %b2, %c2 }, from which `result` is returned.
Module loop_of(const std::string& body, const std::string& result) {
  return parse_program("sdy.mesh @mesh = <[\"x\"=2]>\nfunc.func @main(%x: tensor<f32>) -> " + result + R"( {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %w:4 = stablehlo.while(%i = %zero, %a = %x, %b = %x, %c = %x)
        : tensor<i32>, tensor<f32>, tensor<f32>, tensor<f32>
    cond {
      %p = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %a2 = stablehlo.tanh %a : tensor<f32>
      %b2 = stablehlo.add %b, %b : tensor<f32>
      )" + body + R"(
      stablehlo.return %j, %a2, %b2, %c2 : tensor<i32>, tensor<f32>, tensor<f32>, tensor<f32>
    }
    )" + (result == "tensor<i32>" ? "return %w#0 : tensor<i32>" : "return %w#3 : tensor<f32>") +
                       "\n}");
}

OpId first_loop(const Module& module) {
  for (const OpId op : module.region(module.main().body).ops) {
    if (module.op(op).def->regions == Regions::kLoop) return op;
  }
  return {};
}

std::vector<bool> live(Module module, Stage stage = Stage::kPropagated) {
  module.stage = stage;
  const OpId loop = first_loop(module);
  Effects effects(module, unused_constraints(module));
  LiveCarries carries(module, loop, effects);
  for (const ValueId result : module.region(module.regions(loop)[0]).results) carries.reach(result);
  return carries.find();
}

// The program after the pass, which must be valid.
std::string changed(const Pass& pass, Module module, Stage stage) {
  module.stage = stage;
  PassContext context;
  module = pass.run(std::move(module), context);
  verify(module);
  return print(module);
}

constexpr const char* kSinkOfCarry =
    "stablehlo.custom_call @sink(%a) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>\n";

const std::string kConstraint =
    "%c1 = sdy.sharding_constraint %b2 <@mesh, []> : tensor<f32>\n%c2 = stablehlo.sine %c : tensor<f32>";

TEST(LiveCarries, AreThoseThatResultsReach) {
  EXPECT_EQ(live(loop_of("%c2 = stablehlo.add %c, %b : tensor<f32>", "tensor<f32>")),
            (std::vector{true, false, true, true}));
  EXPECT_EQ(live(loop_of("%c2 = stablehlo.add %c, %b : tensor<f32>", "tensor<i32>")),
            (std::vector{true, false, false, false}));
}

TEST(LiveCarries, KeepWhatAnUnusedConstraintReadsUntilPropagation) {
  EXPECT_EQ(live(loop_of(kConstraint, "tensor<f32>"), Stage::kGlobal), (std::vector{true, false, true, true}));
  EXPECT_EQ(live(loop_of(kConstraint, "tensor<f32>"), Stage::kPropagated), (std::vector{true, false, false, true}));
}

TEST(LiveCarries, KeepThePredicateAroundAnEffect) {
  const std::string body = R"(%q = stablehlo.compare LT, %b, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %u = "stablehlo.if"(%q) ({
        %e = )" + std::string(kSinkOfCarry) +
                           R"(stablehlo.return %x : tensor<f32>
      }, {
        stablehlo.return %c : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      %c2 = stablehlo.sine %c : tensor<f32>)";
  // All results of the `if` count, because dce keeps them: %c is one.
  EXPECT_EQ(live(loop_of(body, "tensor<i32>")), (std::vector{true, true, true, true}));
}

// dce removes %d from the branch, so that nothing reads %b.
TEST(LiveCarries, LeaveOutWhatOnlyAnUnusedOpInARegionReads) {
  const std::string body = R"(%q = stablehlo.compare LT, %c, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %c2 = "stablehlo.if"(%q) ({
        %d = stablehlo.sine %b : tensor<f32>
        stablehlo.return %a : tensor<f32>
      }, {
        stablehlo.return %c : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>)";
  EXPECT_EQ(live(loop_of(body, "tensor<f32>")), (std::vector{true, true, false, true}));
  const std::string text = changed(kSimplifyLoops, loop_of(body, "tensor<f32>"), Stage::kPropagated);
  EXPECT_EQ(text.find("sine"), std::string::npos) << text;
}

// The loop inside reads the counter of the loop around it, whose other carries it does not read.
TEST(LiveCarries, OfALoopInALoopDoNotFollowValuesFromAround) {
  const std::string inner = R"(%in:2 = stablehlo.while(%k = %zero, %d = %c) : tensor<i32>, tensor<f32>
      cond {
        %r = stablehlo.compare LT, %k, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %r : tensor<i1>
      } do {
        %k2 = stablehlo.add %k, %one : tensor<i32>
        %d2 = stablehlo.cosine %d : tensor<f32>
        stablehlo.return %k2, %d2 : tensor<i32>, tensor<f32>
      }
      %c2 = stablehlo.sine %c : tensor<f32>)";
  const std::string text = changed(kSimplifyLoops, loop_of(inner, "tensor<f32>"), Stage::kPropagated);
  EXPECT_EQ(text.find("cosine"), std::string::npos) << text;
}

TEST(SimplifyLoops, DropsAnAnnotatedCarryAfterPropagation) {
  const std::string global = changed(kSimplifyLoops, loop_of(kConstraint, "tensor<f32>"), Stage::kGlobal);
  EXPECT_NE(global.find("sharding_constraint"), std::string::npos) << global;
  const std::string propagated = changed(kSimplifyLoops, loop_of(kConstraint, "tensor<f32>"), Stage::kPropagated);
  EXPECT_EQ(propagated.find("sharding_constraint"), std::string::npos) << propagated;
  EXPECT_EQ(propagated.find("tanh"), std::string::npos) << propagated;
}

// The scans are formed from the inside out: the outer loop must find the scan in its branch, not the while it replaces.
TEST(FormScans, FindsTheScanInABranch) {
  const std::string text = R"(module attributes {shardwise.stage = "local"} {
    func.func @main(%xs: tensor<3x4xf32>, %h: tensor<4xf32>) -> tensor<4xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %three = stablehlo.constant dense<3> : tensor<i32>
      %w:3 = stablehlo.while(%i = %zero, %a = %h, %t = %h) : tensor<i32>, tensor<4xf32>, tensor<4xf32>
      cond {
        %p = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %s = stablehlo.dynamic_slice %xs, %i, %zero, sizes = [1, 4]
            : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
        %r = stablehlo.reshape %s : (tensor<1x4xf32>) -> tensor<4xf32>
        %q = stablehlo.compare EQ, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %b = "stablehlo.if"(%q) ({
          %v:2 = stablehlo.while(%k = %zero, %c = %a) : tensor<i32>, tensor<4xf32>
          cond {
            %o = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %o : tensor<i1>
          } do {
            %s2 = stablehlo.dynamic_slice %xs, %k, %zero, sizes = [1, 4]
                : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
            %r2 = stablehlo.reshape %s2 : (tensor<1x4xf32>) -> tensor<4xf32>
            %c2 = stablehlo.multiply %c, %r2 : tensor<4xf32>
            %c3 = stablehlo.add %c2, %t : tensor<4xf32>
            %k2 = stablehlo.add %k, %one : tensor<i32>
            stablehlo.return %k2, %c3 : tensor<i32>, tensor<4xf32>
          }
          stablehlo.return %v#1 : tensor<4xf32>
        }, {
          stablehlo.return %r : tensor<4xf32>
        }) : (tensor<i1>) -> tensor<4xf32>
        %t2 = stablehlo.cosine %t : tensor<4xf32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %b, %t2 : tensor<i32>, tensor<4xf32>, tensor<4xf32>
      }
      return %w#1 : tensor<4xf32>
    }
  })";
  const std::string made = changed(kFormScans, parse_program(text), Stage::kLocal);
  EXPECT_EQ(made.find("while"), std::string::npos) << made;
  // Only the scan in the branch reads this carry.
  EXPECT_NE(made.find("cosine"), std::string::npos) << made;
}

}  // namespace
}  // namespace shardwise
