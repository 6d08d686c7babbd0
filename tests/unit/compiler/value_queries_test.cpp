// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/value_queries.h"

#include <gtest/gtest.h>

#include "shardwise/ir/value_names.h"
#include "shardwise/text/parser.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

using Texts = std::vector<std::string>;

TEST(ValueQueries, FindsNamesOpsAndLines) {
  const Module module = parse_program(R"(func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("model.py":3:1)
    %1 = stablehlo.tanh %0 : tensor<8x8xf32> loc("h"("model.py":4:1))
    return %1 : tensor<8x8xf32>
  })");
  const auto count = [&](const std::string& query) { return ValueQueries(module).find(query).size(); };
  EXPECT_EQ(count("h"), 1u);
  EXPECT_EQ(count("tanh"), 1u);
  EXPECT_EQ(count("stablehlo.tanh[0]"), 1u);
  EXPECT_EQ(count("model.py:3"), 1u);
  for (const char* query : {"tanh[1]", "anh", "odel.py:3", "model.py:5", "model.py:", "tanh[]", "tanh[-1]", ":3", ""}) {
    EXPECT_EQ(count(query), 0u) << query;
  }
  EXPECT_EQ(ValueQueries(module).all(), (Texts{"h", "stablehlo.tanh", "stablehlo.transpose"}));
}

TEST(ValueQueries, AreThoseOfTheText) {
  const std::string text = R"(func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = func.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %r:2 = stablehlo.optimization_barrier %0, %x : tensor<8xf32>, tensor<8xf32>
    return %r#1 : tensor<8xf32>
  }
  func.func private @f(%y: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.tanh %y : tensor<8xf32>
    return %0 : tensor<8xf32>
  })";
  const Module module = parse(text, std::make_shared<Context>(), {.file = "t.mlir", .name_values = true});
  const auto names = [&](const std::string& query) {
    Texts found;
    for (const NamedValue& value : ValueQueries(module).find(query)) {
      found.push_back(value.name);
      EXPECT_EQ(shown_name(module, value.value), value.name);
    }
    return found;
  };
  EXPECT_EQ(names("%x"), Texts{"%x"});
  EXPECT_EQ(names("@main %x"), Texts{"%x"});
  EXPECT_EQ(names("%y"), Texts{"@f %y"});
  EXPECT_EQ(names("%r"), (Texts{"%r#0", "%r#1"}));
  EXPECT_EQ(names("@main %r#1"), Texts{"%r#1"});
  EXPECT_EQ(names("@f %0"), Texts{"@f %0"});
  EXPECT_EQ(names("t.mlir:7"), Texts{"@f %0"});
  EXPECT_EQ(names("@f %x"), Texts{});
  EXPECT_EQ(ValueQueries(module).meanings("%0"), (Texts{"@main %0", "@f %0"}));
  EXPECT_EQ(ValueQueries(module).meanings("%x"), Texts{});
  EXPECT_EQ(ValueQueries(module).meanings("@f %0"), Texts{});
}

}  // namespace
}  // namespace shardwise
