// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/factor_projection.h"

#include <gtest/gtest.h>

#include "shardwise/ir/rule/rule_builder.h"
#include "shardwise/mesh/sharding_text.h"

namespace shardwise {
namespace {

struct Case {
  std::string mesh;
  Dims factors;  // of the one dim of the operand; the result has one dim per factor
  std::string operand;
  std::string factor_axes;  // per factor: axes | overflow, ! when closed
  std::string back;
};

ShardingRule reshape_rule(const Dims& factors) {
  int64_t size = 1;
  for (int64_t factor : factors) size *= factor;
  RuleBuilder rule({Dims{size}, factors}, 1);
  for (size_t d = 0; d < factors.size(); ++d) {
    const FactorId factor = rule.factor(factors[d]);
    rule.map(0, 0, factor).map(1, d, factor);
  }
  return rule.build();
}

std::string factors_text(const FactorProjection& projection, const Mesh& mesh) {
  std::string text;
  for (size_t f = 0; f < projection.rule().factors().size(); ++f) {
    if (f != 0) text += " ";
    const FactorSharding* factor = projection.find(0, static_cast<FactorId>(f));
    if (factor == nullptr) {
      text += "-";
      continue;
    }
    text += axis_list_text(mesh, factor->axes);
    if (!factor->overflow.empty()) text += "|" + axis_list_text(mesh, factor->overflow);
    if (factor->closed) text += "!";
  }
  return text;
}

std::shared_ptr<const Mesh> mesh_of(std::string_view text) {
  SdyCursor cursor(text);
  return std::make_shared<const Mesh>(parse_mesh(cursor, "mesh"));
}

TEST(FactorProjection, FillsFactorsFromMajorToMinor) {
  const Case cases[] = {
      {R"(<["a"=4]>)", {2, 4}, R"([{"a", ?}])", R"({"a":(1)2} {"a":(2)2})", R"([{"a", ?}])"},
      {R"(<["a"=16]>)", {4, 2, 4}, R"([{"a"}])", R"({"a":(1)4}! {"a":(4)2}! {"a":(8)2}!)", R"([{"a"}])"},
      {R"(<["a"=6]>)", {2, 4}, R"([{"a", ?}])", R"({"a":(1)2} {"a":(2)3})", R"([{"a", ?}])"},
      {R"(<["a"=3]>)", {2, 4}, R"([{"a", ?}])", R"({}|{"a"} {}!)", R"([{"a", ?}])"},
      {R"(<["a"=2, "b"=3]>)", {8, 4}, R"([{"a", "b", ?}])", R"({"a"}|{"b"} {}!)", R"([{"a", "b", ?}])"},
      {R"(<["a"=3]>)", {2, 2, 2}, R"([{"a", ?}])", R"({}|{"a"} {}! -)", R"([{"a", ?}])"},
  };
  for (const Case& one : cases) {
    const auto mesh = mesh_of(one.mesh);
    const TensorSharding operand = parse_short_sharding(one.operand, mesh);
    const TensorSharding* shardings[] = {&operand, nullptr};
    const ShardingRule rule = reshape_rule(one.factors);
    FactorProjection projection;
    projection.project(rule, shardings);
    EXPECT_EQ(factors_text(projection, *mesh), one.factor_axes);
    EXPECT_EQ(short_text(projection.sharding(0, mesh)), one.back);
  }
}

TEST(FactorProjection, StopsBeforeAStridedLayout) {
  const auto mesh = mesh_of(R"(<["a"=2, "b"=2]>)");
  const TensorSharding result = parse_short_sharding(R"([{"a", ?}, {"b", ?}])", mesh);
  const TensorSharding* shardings[] = {nullptr, &result};
  const ShardingRule rule = reshape_rule({4, 4});
  FactorProjection projection;
  projection.project(rule, shardings);
  for (FactorId f : {FactorId{0}, FactorId{1}}) projection.find(0, f)->axes = projection.find(1, f)->axes;
  EXPECT_EQ(short_text(projection.sharding(0, mesh)), R"([{"a", ?}])");
}

TEST(FactorProjection, MissingIsOpenDuringPropagationAndClosedAfterIt) {
  const ShardingRule rule = reshape_rule({2, 4});
  const TensorSharding* shardings[] = {nullptr, nullptr};
  FactorProjection projection;
  projection.project(rule, shardings);
  EXPECT_FALSE(projection.find(0, 0)->closed);
  const Placement* placements[] = {nullptr, nullptr};
  projection.project(rule, placements);
  EXPECT_TRUE(projection.find(0, 0)->closed);
}

}  // namespace
}  // namespace shardwise
