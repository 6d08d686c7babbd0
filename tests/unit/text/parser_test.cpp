// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/parser.h"

#include <map>

#include <gtest/gtest.h>

#include "ir/test_ops.h"
#include "shardwise/ir/place.h"
#include "shardwise/ir/rewrite/structural_equality.h"
#include "shardwise/ir/verifier.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/text/module_json.h"

namespace shardwise::testing {
namespace {

const char* const kFull = R"(#loc = loc(unknown)
#loc1 = loc("train.py":31:4 to :20)
module @jit_f attributes {mhlo.num_partitions = 8 : i32, "a }" = "}"} {
  // A comment.
  sdy.mesh @mesh = <["x"=4, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 4 : i64}]}} loc(#loc)
  sdy.mesh @"other mesh" = <["z"=2], device_ids=[1, 0]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}p1], replicated={"y"}>, jax.a = [">"]} loc("w"("train.py":7:0)), %arg1: tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]> : tensor<7xf32>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@"other mesh", [{"z"}, {}]>}, tensor<8xf32> {jax.result_info = "r"}) {
    %0:2 = "test.any"(%arg0) <{ints = array<i64: 1, -2>, none = array<i64>, flag = true, note, text = "a\"\\\0A\C3\A9", f = -0.000000e+00 : f32, n = 0x7FC00000 : f32, t = tensor<2xi1>, list = [1 : i32, [], {a = @g}], e = #stablehlo<precision HIGHEST>, s = #stablehlo.gather<offset_dims = [1], index_vector_dim = 1, x = [], kind = tf32, b = false>, raw = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, "odd name" = 3 : i64, axes = #sdy<axis_ref_list{"x", "y":(1)2}>, dims = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, sh = #sdy.sharding<@mesh, [{}]>, d = dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>}> ({
    ^bb0(%arg2: tensor<f32> loc("x"), %arg3: tensor<f32>):
      %1 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc2)
      stablehlo.return %1 : tensor<f32> loc(#loc)
    }, {
      "stablehlo.return"() : () -> ()
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{"x"}]>]>, shardwise.local_blocks = [array<i64: 3, 4>, unit], x.y = #alias} : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) loc(callsite(#loc2 at fused<"m">[#loc1, #loc]))
    return %0#0, %0#1 : tensor<8x4xf32>, tensor<8xf32>
  } loc(#loc1)
  func.func private @"g h"() {
    func.return
  }
} loc(#loc)
#loc2 = loc("h"(#loc1))
#alias = array<i64: 7>
)";

TEST(Parser, AFullTextRoundTrips) {
  const Module module = parse_test(kFull);
  verify(module);
  for (bool locations : {false, true}) {
    for (bool generic : {false, true}) {
      const PrintOptions options{locations, generic};
      const std::string text = print(module, options);
      const Module again = parse_test(text);
      verify(again);
      EXPECT_TRUE(structurally_equal(module, again)) << text;
      EXPECT_EQ(print(again, options), text);
    }
  }
}

TEST(Place, IsThatOfIPythonInANotebook) {
  EXPECT_EQ(place_text("train.py", 31), "train.py:31");
  EXPECT_EQ(place_text("Cell In[2]", 6), "Cell In[2], line 6");
  EXPECT_EQ(place_text("", 6), "");
}

TEST(Parser, KeepsWhatTheTextSays) {
  const Module module = parse_test(kFull);
  EXPECT_EQ(module.name, "jit_f");
  ASSERT_EQ(module.meshes.size(), 2u);
  EXPECT_EQ(module.meshes[1]->name(), "other mesh");
  ASSERT_EQ(module.functions.size(), 2u);
  EXPECT_EQ(module.functions[1].visibility, Visibility::kPrivate);
  const Region& body = module.region(module.main().body);
  EXPECT_EQ(module.context().name_of(module.value(body.arguments[0]).loc), "w");
  ASSERT_EQ(body.ops.size(), 1u);
  const OpView op(module, body.ops[0]);
  EXPECT_EQ(module.context().name_of(op.loc()), "h");
  EXPECT_EQ(module.context().location_text(op.loc()), "train.py:31");
  EXPECT_EQ(op.regions().size(), 2u);
  EXPECT_EQ(op.attrs().get<IntArray>("ints"), (IntArray{1, -2}));
  EXPECT_EQ(op.attrs().get<IntArray>("x.y"), IntArray{7});
  EXPECT_EQ(op.attrs().get<std::string>("text"), "a\"\\\n\xC3\xA9");
  EXPECT_EQ(op.attrs().get<EnumAttr>("e").value, "HIGHEST");
  EXPECT_EQ(op.attrs().get<StructAttr>("s").fields.size(), 4u);  // an empty list is left out
  EXPECT_EQ(std::get<std::string>(op.attrs().get<StructAttr>("raw").fields[0].second.base()),
            "[b, 0, f]x[0, i, o]->[b, 0, f]");
  const auto placement_of = [&](ValueId value) { return module.part(value).placement; };
  ASSERT_TRUE(placement_of(op.result(0)));
  EXPECT_EQ(shardwise::text(module.context().placement(placement_of(op.result(0)))),
            R"(#shardwise.placement<@mesh, [{"x"}: 3, {}: 4]>)");
  EXPECT_FALSE(placement_of(op.result(1)));
  EXPECT_EQ(module.global_type(body.arguments[1]).shape, Dims{7});
  EXPECT_EQ(module.part(body.arguments[1]).padding.kind, Padding::Kind::kGarbage);
  EXPECT_TRUE(module.value(op.result(1)).sharding);
}

TEST(Parser, ReadsTheGenericFormOfModulesAndFunctions) {
  const Module module = parse_test(R"("builtin.module"() <{sym_name = "m"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=4]>, sym_name = "mesh"}> : () -> ()
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}], function_type = (tensor<8xf32>) -> tensor<8xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<8xf32>):
    "func.return"(%arg0) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32} : () -> () loc(unknown)
)");
  EXPECT_EQ(print(module),
            "module @m {\n  sdy.mesh @mesh = <[\"x\"=4]>\n"
            "  func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) -> "
            "tensor<8xf32> {\n    return %arg0 : tensor<8xf32>\n  }\n}\n");
}

TEST(Parser, ToleratesModulesInModules) {
  const Module module = parse_test("module @a { module @b { func.func @main() { return } } }");
  EXPECT_EQ(module.name, "a");
  EXPECT_EQ(module.main().name, "main");
}

TEST(Parser, AResultWithoutShardingPrintsAsOpen) {
  Module module = parse_test(kFull);
  const OpView op(module, module.region(module.main().body).ops[0]);
  module.value(op.result(1)).sharding = {};
  const Module again = parse_test(print(module));
  EXPECT_TRUE(structurally_equal(module, again));
  EXPECT_EQ(print(again), print(module));
}

// ---- errors --------------------------------------------------------------------------------------------------------

struct BadBody {
  const char* body;
  const char* error;  // what the message starts with; the body is on line 4
};

TEST(Parser, ErrorsHaveLineAndColumn) {
  const BadBody cases[] = {
      {"%0 = foo.bar %a : tensor<f32>", "4:6: program text: an op must be one that shardwise knows, got 'foo.bar'"},
      {"%0 = test.any %a : tensor<f32>", "4:6: program text: 'test.any' must be written in quotes"},
      {"%0 = stablehlo.add %a, %d : tensor<8x8xf32>",
       "4:24: program text: a value must be defined before its use, got %d"},
      {"%0 = stablehlo.add %a, %a : tensor<8x4xf32>",
       "4:29: program text: value 0 must have the type it was defined with, tensor<8x8xf32>, got tensor<8x4xf32>"},
      {"%0 = stablehlo.add %a, %c : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>",
       "4:6: stablehlo.add: operands must have one type, got tensor<8x8xf32>, tensor<f32>"},
      {"%0 = stablehlo.add %a, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32>",
       "4:6: stablehlo.add: the declared result types must be tensor<8x8xf32>, got tensor<f32>"},
      {"%0:2 = stablehlo.add %a, %a : tensor<8x8xf32>",
       "4:8: program text: 'stablehlo.add' has 1 results, got 2 names"},
      {"%a = stablehlo.add %a, %a : tensor<8x8xf32>",
       "4:1: program text: the name of a value must be new in its scope"},
      {"%0 = stablehlo.add %a#1, %a : tensor<8x8xf32>", "4:20: program text: %a has 1 results"},
      {"%0 = \"test.any\"(%a)[^bb1] : (tensor<8x8xf32>) -> tensor<f32>",
       "4:20: program text: an op must have no successors"},
      {"%0 = \"test.any\"() : () -> tensor<?x3xf32>",
       "4:27: program text: a dim must have a static size, got tensor<?"},
      {"%0 = \"test.any\"() : () -> tensor<2xcomplex<i32>>", "4:36: program text: the element type must be"},
      {"%0 = \"test.any\"() : () -> tuple<tensor<f32>>",
       "4:27: program text: a type must be a tensor with static shape"},
      {"%0 = \"test.any\"() : () -> !stablehlo.tokens", "4:"},
      {"%0 = \"test.any\"() : () -> !stablehlo.future<tensor<f32>>", "4:27: program text: a type must be a tensor"},
      {"%0 = \"test.any\"() : () -> tensor<99999999999x99999999999xf32>",
       "4:27: program text: a tensor must have less"},
      {"%0 = \"test.any\"() <{a = 1, a = 2}> : () -> tensor<f32>",
       "4:28: program text: attribute 'a' must be given once"},
      {"%0 = \"test.any\"() <{a = @x::@y}> : () -> tensor<f32>", "4:27: program text: expected '}'"},
      {"%0 = \"test.any\"() <{a = 300 : ui8}> : () -> tensor<f32>",
       "4:25: program text: an integer attribute must fit ui8"},
      {"%0 = \"test.any\"() <{a = 3 : f8}> : () -> tensor<f32>", "4:25: program text: an integer attribute must be"},
      {"%0 = \"test.any\"() <{a = array<i7: 1>}> : () -> tensor<f32>", "4:31: program text: an array attribute must"},
      {"%0 = \"test.any\"() <{a = array<i8: 200>}> : () -> tensor<f32>", "4:38: program text: an element must fit i8"},
      {"%0 = stablehlo.constant dense<(1.0)> : tensor<2xcomplex<f32>>",
       "4:35: program text: expected ',' between the parts"},
      {"%0 = stablehlo.constant dense<1.0> : tensor<2xcomplex<f32>>",
       "4:31: program text: expected '(' before the real part"},
      {"%0 = stablehlo.constant dense<500.0> : tensor<2xf8E4M3FN>",
       "4:31: program text: an element must be a number that fits f8E4M3FN"},
      {"%0 = stablehlo.constant dense<16> : tensor<2xui4>",
       "4:31: program text: an element must be a number that fits ui4"},
      {"%0 = \"test.any\"() <{a = #nothing}> : () -> tensor<f32>", "4:25: program text: an alias must be defined"},
      {"%0 = stablehlo.constant dense<[1, 2]> : tensor<3xi32>", "4:36: program text: the elements must have the shape"},
      {"%0 = stablehlo.constant dense<300> : tensor<3xi8>",
       "4:31: program text: an element must be a number that fits i8"},
      {"%0 = stablehlo.constant dense<\"0x01\"> : tensor<3xi32>",
       "4:31: program text: raw bytes must be those of tensor<3xi32>"},
      {"%0 = stablehlo.constant dense<> : tensor<3xi32>", "4:31: program text: expected elements"},
      {"%0 = sdy.reshard %a <@nope, [{}, {}]> : tensor<8x8xf32>", "4:"},
      {"%0 = sdy.reshard %a <@mesh, [{\"q\"}, {}]> : tensor<8x8xf32>", "4:"},
      {"%0 = sdy.reshard %a <@mesh, [{}]> : tensor<8x8xf32>", "4:6: "},
      {"%0 = \"sdy.reshard\"(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>",
       "4:6: program text: 'sdy.reshard' must have the attribute 'sharding'"},
      {"%0 = stablehlo.add %a, %a {mhlo.sharding = \"{devices=[2]<=[2]}\"} : tensor<8x8xf32>",
       "4:44: mhlo.sharding: a sharding must have 2 tiled dims"},
      {"%0 = stablehlo.reduce(%a init: %c) applies foo.bar across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> "
       "tensor<8xf32>",
       "4:44: program text: an op must be one that shardwise knows, got 'foo.bar'"},
      {"\"test.any\"() ({ ^bb0: stablehlo.return ^bb1: stablehlo.return }) : () -> ()",
       "4:40: program text: a region must have a single block"},
  };
  for (const BadBody& test : cases) {
    const std::string error = parse_error(program(test.body));
    EXPECT_EQ(error.substr(0, std::string(test.error).size()), test.error) << test.body << "\n" << error;
  }
}

TEST(Parser, ErrorsOutsideFunctions) {
  EXPECT_EQ(parse_error("module { foo }").substr(0, 4), "1:10");
  EXPECT_EQ(parse_error("module {").substr(0, 3), "1:9");
  EXPECT_NE(parse_error("func.func @f()").find("before the body of a function"), std::string::npos);
  EXPECT_NE(parse_error("func.func @f(tensor<f32>) -> tensor<f32>").find("a function must have a body"),
            std::string::npos);
  EXPECT_NE(parse_error("func.func @f() { return } func.func @f() { return }").find("must be new"), std::string::npos);
  EXPECT_NE(parse_error("func.func @f() -> tensor<f32> { return }").find("result types of the function"),
            std::string::npos);
  EXPECT_NE(parse_error("sdy.mesh @m = <[\"x\"=2]> sdy.mesh @m = <[\"x\"=3]>").find("declared once"),
            std::string::npos);
  EXPECT_NE(parse_error("func.func @f(%a: tensor<f32> {mhlo.sharding = \"\"}) { return }").find("must not be empty"),
            std::string::npos);
  EXPECT_NE(parse_error("#a = loc(#a)\nfunc.func @f() { return loc(#a) }").find("deep"), std::string::npos);
}

// ---- nasty input: an error or a module, never a crash or a memory bill ----------------------------------------------

void expect_module_or_place(const std::string& text) {
  const std::string error = parse_error(text);
  EXPECT_TRUE(error.empty() || (error.front() >= '1' && error.front() <= '9')) << error;
}

TEST(Parser, EveryTruncationIsHandled) {
  const std::string text = kFull;
  for (size_t size = 0; size < text.size(); ++size) expect_module_or_place(text.substr(0, size));
}

TEST(Parser, EveryOmissionAndReplacementIsHandled) {
  const std::string text = kFull;
  for (size_t i = 0; i < text.size(); ++i) {
    expect_module_or_place(text.substr(0, i) + text.substr(i + 1));
    for (char c : {'"', '}', '<', '0', '%', '#', '\xff', '\0'}) {
      if (i % 3 != static_cast<size_t>(static_cast<unsigned char>(c)) % 3) continue;
      std::string changed = text;
      changed[i] = c;
      expect_module_or_place(changed);
    }
  }
}

std::string repeated(std::string_view part, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += part;
  return text;
}

TEST(Parser, NestingIsLimited) {
  const size_t deep = 100000;
  EXPECT_NE(parse_error(program("\"test.any\"() {a = " + repeated("[", deep))), "");
  EXPECT_NE(parse_error(program("\"test.any\"() {a = " + repeated("{a = ", deep))), "");
  EXPECT_NE(parse_error(program("\"test.any\"() {a = " + repeated("#a<b = ", deep))), "");
  EXPECT_NE(parse_error(program(repeated("\"test.any\"() ({", deep))), "");
  EXPECT_NE(parse_error(program("\"test.any\"() {a = dense<" + repeated("[", deep) + "> : tensor<" +
                                repeated("1x", deep) + "f32>")),
            "");
  EXPECT_NE(parse_error(repeated("module {", deep)), "");
  EXPECT_NE(parse_error("func.func @f() { return loc(" + repeated("\"a\"(", deep)), "");
}

TEST(Parser, AllocationsAreLimitedByTheText) {
  EXPECT_NE(parse_error(program("%0 = stablehlo.constant dense<[1]> : tensor<1000000000000xi32>")), "");
  EXPECT_NE(parse_error(program("%0 = stablehlo.constant dense<\"0x0102\"> : tensor<1000000000000xi32>")), "");
  // A splat takes one element.
  EXPECT_EQ(parse_error(program("%0 = stablehlo.constant dense<1> : tensor<1000000000000xi32>")), "");
  std::string bomb = "#a0 = [1, 1]\n";
  for (int i = 1; i < 60; ++i)
    bomb += "#a" + std::to_string(i) + " = [#a" + std::to_string(i - 1) + ", #a" + std::to_string(i - 1) + "]\n";
  EXPECT_NE(parse_error(bomb + program("\"test.any\"() {a = #a59} : () -> ()")), "");
}

// ---- options -------------------------------------------------------------------------------------------------------

constexpr const char* kPlaces = R"(func.func @main(%x: tensor<f32>,
      %y: tensor<f32> loc("own")) -> tensor<f32> {
  %a = stablehlo.add %x, %y : tensor<f32>
  %b:2 = "test.any"(%a) ({
      ^bb0(%c: tensor<f32>):
        %d = stablehlo.add %c, %c : tensor<f32> stablehlo.return %d : tensor<f32>
    }) : (tensor<f32>) -> (tensor<f32>, tensor<f32>) %e = stablehlo.add %b#0, %b#1 : tensor<f32> loc("e"("t.py":7:8))
  return %e : tensor<f32>
})";

TEST(Parser, NamesAndPlacesOfATextAreKeptWhereTheyAreAskedFor) {
  const Module module = parse_test(kPlaces, {.file = "p.mlir", .name_values = true});
  const Context& context = module.context();
  std::map<std::string, std::string> places;
  for (uint32_t i = 1; i < module.value_count(); ++i) {
    const Value& value = module.value(ValueId{i});
    const LocId loc = value.op ? module.op(value.op).loc : value.loc;
    const ResolvedSource source = context.resolve(loc);
    const std::string inner = context.name_of(context.location(loc).child);
    places[context.name_of(loc)] =
        inner + source.file + ":" + std::to_string(source.line) + ":" + std::to_string(source.column);
  }
  const std::map<std::string, std::string> expected{
      {"@main %x", "p.mlir:1:17"},   {"@main %y", "ownp.mlir:2:7"}, {"@main %a", "p.mlir:3:8"},
      {"@main %b:2", "p.mlir:4:10"}, {"@main %c", "p.mlir:5:12"},   {"@main %d", "p.mlir:6:14"},
      {"@main %e", "et.py:7:8"},
  };
  EXPECT_EQ(places, expected);
  EXPECT_EQ(print(parse_test(kPlaces), {.locations = true}).find("p.mlir"), std::string::npos);
}

TEST(Parser, TheResultsOfFunctionsHaveAPlace) {
  const std::string text = R"(sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>,
    tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  return %x, %x : tensor<8xf32>, tensor<8xf32>
})";
  const Module module = parse_test(text, {.file = "p.mlir"});
  ASSERT_EQ(module.main().result_locs.size(), 2u);
  EXPECT_EQ(module.context().location_text(module.main().result_locs[0]), "");
  EXPECT_EQ(module.context().location_text(module.main().result_locs[1]), "p.mlir:3");
  EXPECT_TRUE(parse_test(text).main().result_locs.empty());
}

// ---- JSON ----------------------------------------------------------------------------------------------------------

TEST(ModuleJson, RoundTrips) {
  const Module module = parse_test(kFull);
  const Module again = module_from_json(module_to_json(module), std::make_shared<Context>());
  EXPECT_TRUE(structurally_equal(module, again));
  EXPECT_EQ(module_to_json(again), module_to_json(module));
}

TEST(ModuleJson, RefusesWhatItDoesNotKnow) {
  const auto error = [](std::string_view json) -> std::string {
    try {
      module_from_json(json, std::make_shared<Context>());
    } catch (const ParseError& e) {
      return e.what();
    }
    return {};
  };
  EXPECT_EQ(error("{\"format\": \"shardwise\",\n x"),
            "2:2: program: must be JSON, got syntax error while parsing object key - invalid literal");
  EXPECT_NE(error("[]").find("\"format\": \"shardwise\""), std::string::npos);
  EXPECT_NE(error("{\"format\": \"onnx\"}").find("got \"onnx\""), std::string::npos);
  EXPECT_NE(error("{\"format\": \"shardwise\", \"version\": 2}").find("newer shardwise"), std::string::npos);
  EXPECT_NE(error("{\"format\": \"shardwise\", \"version\": \"1\"}").find("must be a number"), std::string::npos);
  EXPECT_NE(error("{\"format\": \"shardwise\", \"version\": 1}").find("the text of the program"), std::string::npos);
  EXPECT_NE(error("{\"format\": \"shardwise\", \"version\": 1, \"stablehlo\": \"module {\"}").find("1:9"),
            std::string::npos);
}

}  // namespace
}  // namespace shardwise::testing
