// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/entry_function.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/ir/verifier.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

constexpr const char* kFunctions = R"(
  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = func.call @norm(%a) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @norm(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.composite "f" %a {decomposition = @part} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @part(%a: tensor<4xf32>) -> tensor<4xf32> {
    return %a : tensor<4xf32>
  }
  func.func public @loss(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = func.call @main(%a) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
)";

std::vector<std::string> names_after(std::string_view entry) {
  const Module module = entry_function(parse_program(kFunctions), entry);
  verify(module);
  EXPECT_EQ(module.main().name, entry);
  std::vector<std::string> names;
  for (const Function& function : module.functions) {
    names.push_back(function.name);
    EXPECT_EQ(function.is_public(), function.name == entry);
  }
  return names;
}

TEST(EntryFunction, KeepsWhatTheFunctionReaches) {
  EXPECT_EQ(names_after("main"), (std::vector<std::string>{"main", "norm", "part"}));
  EXPECT_EQ(names_after("norm"), (std::vector<std::string>{"norm", "part"}));
  EXPECT_EQ(names_after("part"), (std::vector<std::string>{"part"}));
}

TEST(EntryFunction, RenamesMainIfItIsCalled) {
  EXPECT_EQ(names_after("loss"), (std::vector<std::string>{"loss", "main_0", "norm", "part"}));
}

TEST(EntryFunction, RefusesAnUnknownName) {
  EXPECT_THROW(entry_function(parse_program(kFunctions), "gain"), UnsupportedError);
}

}  // namespace
}  // namespace shardwise
