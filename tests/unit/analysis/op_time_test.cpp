// SPDX-License-Identifier: Apache-2.0
//
// Costs and times against counts by hand. Each comment has the formula; no expected number is computed by shardwise.
#include "shardwise/analysis/op_time.h"

#include <gtest/gtest.h>

#include "analysis/timed.h"
#include "shardwise/base/quantity.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

using testing::round_hardware;
using testing::Timed;
using Bytes = std::vector<int64_t>;

// What an op takes, and its time with the launch.
struct Expected {
  int64_t matrix = 0, vector = 0, transcendental = 0;
  Bytes touched;
  int64_t ps = 0;
  Bound bound = Bound::kMemory;
};

void expect(const Timed& op, const Expected& expected) {
  EXPECT_EQ(op.cost.matrix, expected.matrix);
  EXPECT_EQ(op.cost.vector, expected.vector);
  EXPECT_EQ(op.cost.transcendental, expected.transcendental);
  EXPECT_EQ(op.cost.touched, expected.touched);
  EXPECT_EQ(op.time.ps(), expected.ps);
  EXPECT_EQ(op.time.bound(), expected.bound);
}

// ---- products ------------------------------------------------------------------------------------------------------

TEST(OpTime, ADotTakesTwoOperationsForEachProduct) {
  // 2·512·512·512 = 268435456 at 1000 a ps: 268436; 3·2·512² = 1572864 bytes at one a ps
  expect(Timed("%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
               "(tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>",
               "%a: tensor<512x512xbf16>, %b: tensor<512x512xbf16>", "tensor<512x512xbf16>"),
         {.matrix = 268435456, .touched = {524288, 524288, 524288}, .ps = 1573864});
  // 2·4096·8192·4096 = 274877906944: 274877907 (up); 2·(4096·8192 + 8192·4096 + 4096·4096) = 167772160 bytes
  expect(Timed("%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
               "(tensor<4096x8192xbf16>, tensor<8192x4096xbf16>) -> tensor<4096x4096xbf16>",
               "%a: tensor<4096x8192xbf16>, %b: tensor<8192x4096xbf16>", "tensor<4096x4096xbf16>"),
         {.matrix = 274877906944, .touched = {67108864, 67108864, 33554432}, .ps = 274878907, .bound = Bound::kMatrix});
}

TEST(OpTime, ABatchedDotCountsEachBatch) {
  // 2·(8·16)·64·64·32 = 33554432 in f32 at 500 a ps: 67109; 4·128·(64·32 + 32·64 + 64·64) = 4194304 bytes
  expect(Timed("%r = stablehlo.dot_general %a, %b, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : "
               "(tensor<8x16x64x32xf32>, tensor<8x16x32x64xf32>) -> tensor<8x16x64x64xf32>",
               "%a: tensor<8x16x64x32xf32>, %b: tensor<8x16x32x64xf32>", "tensor<8x16x64x64xf32>"),
         {.matrix = 33554432, .touched = {1048576, 1048576, 2097152}, .ps = 4195304});
}

TEST(OpTime, AComplexProductIsFourRealOnes) {
  // 8·16·16·16 = 32768; 8·16² = 2048 bytes each
  expect(Timed("%r = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : "
               "(tensor<16x16xcomplex<f32>>, tensor<16x16xcomplex<f32>>) -> tensor<16x16xcomplex<f32>>",
               "%a: tensor<16x16xcomplex<f32>>", "tensor<16x16xcomplex<f32>>"),
         {.matrix = 32768, .touched = {2048, 2048, 2048}, .ps = 7144});
}

constexpr const char* kWidened = R"(
  %x = stablehlo.convert %a : (tensor<1024x8192xbf16>) -> tensor<1024x8192xf32>
  %y = stablehlo.convert %b : (tensor<8192x4096xbf16>) -> tensor<8192x4096xf32>
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]PRECISION :
      (tensor<1024x8192xf32>, tensor<8192x4096xf32>) -> tensor<1024x4096xf32>)";

std::string widened_dot(const std::string& precision) {
  std::string body = kWidened;
  return body.replace(body.find("PRECISION"), 9, precision);
}

// As NumPy's `x @ w` of bfloat16 arrays is recorded.
TEST(OpTime, AProductOfWidenedOperandsIsThatOfTheirDtype) {
  const std::string arguments = "%a: tensor<1024x8192xbf16>, %b: tensor<8192x4096xbf16>";
  for (const char* precision : {"", ", precision = [HIGHEST, HIGHEST]"}) {
    const Timed op(widened_dot(precision), arguments, "tensor<1024x4096xf32>");
    // 2·1024·8192·4096 = 68719476736 in bf16 at 1000 a ps: 68719477
    EXPECT_EQ(op.time.unit_ps[0], 68719477);
    // 2·(1024·8192 + 8192·4096) as bf16, and 4·1024·4096 of the result: 100663296 bytes
    EXPECT_EQ(op.time.bytes, 100663296);
  }
}

TEST(OpTime, AProductWithOneNarrowOperandIsThatOfTheWideOne) {
  const Timed op(R"(
  %x = stablehlo.convert %a : (tensor<64x64xbf16>) -> tensor<64x64xf32>
  %r = stablehlo.dot_general %x, %b, contracting_dims = [1] x [0] :
      (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>)",
                 "%a: tensor<64x64xbf16>, %b: tensor<64x64xf32>", "tensor<64x64xf32>");
  // 2·64³ = 524288 in f32 at 500 a ps: 1049 (up); 2·64² + 4·64² + 4·64² = 40960 bytes
  EXPECT_EQ(op.time.unit_ps[0], 1049);
  EXPECT_EQ(op.time.bytes, 40960);
}

// Weights in integers: the product is that of floats, but the weights have their own bytes.
TEST(OpTime, IntegersAreWidenedWhereTheyAreRead) {
  const auto product = [](const std::string& from, const std::string& to) {
    return Timed("%w = stablehlo.convert %b : (tensor<64x64x" + from + ">) -> tensor<64x64x" + to + ">\n" +
                     "%r = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<64x64x" + to +
                     ">, tensor<64x64x" + to + ">) -> tensor<64x64x" + to + ">",
                 "%a: tensor<64x64x" + to + ">, %b: tensor<64x64x" + from + ">", "tensor<64x64x" + to + ">")
        .time;
  };
  // 2·64³ = 524288 at 1000 a ps in bf16, and at 500 in f32
  EXPECT_EQ(product("i8", "bf16").unit_ps[0], 525);
  EXPECT_EQ(product("i8", "f32").unit_ps[0], 1049);
  // 64² elements of each operand and of the result
  EXPECT_EQ(product("i8", "bf16").bytes, 4096 * (2 + 1 + 2));
  EXPECT_EQ(product("ui8", "bf16").bytes, 4096 * (2 + 1 + 2));
  EXPECT_EQ(product("i16", "f32").bytes, 4096 * (4 + 2 + 4));
  EXPECT_EQ(product("ui32", "f64").bytes, 4096 * (8 + 4 + 8));
  // A float that does not hold each of them rounds: the product reads what was rounded.
  EXPECT_EQ(product("i16", "bf16").bytes, 4096 * (2 + 2 + 2));
  EXPECT_EQ(product("i32", "f32").bytes, 4096 * (4 + 4 + 4));
  EXPECT_EQ(product("i64", "f64").bytes, 4096 * (8 + 8 + 8));
}

TEST(OpTime, DefaultPrecisionIsThatOfTheHardware) {
  const std::string arguments = "%a: tensor<64x64xf32>, %b: tensor<64x64xf32>";
  const auto text = [](const std::string& precision) {
    return "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]" + precision +
           " : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>";
  };
  Hardware hardware = round_hardware();
  hardware.default_dot = "bf16";
  const auto product_ps = [&](const std::string& precision) {
    const Timed op(text(precision), arguments, "tensor<64x64xf32>");
    return op_time(OpView(op.module, op.op), hardware).unit_ps[0];
  };
  EXPECT_EQ(product_ps(""), 525);                                   // 2·64³ = 524288 at 1000 a ps
  EXPECT_EQ(product_ps(", precision = [DEFAULT, DEFAULT]"), 525);   // the same
  EXPECT_EQ(product_ps(", precision = [HIGHEST, HIGHEST]"), 1049);  // at 500 a ps
  // bf16_bf16_f32_x3: three products of parts, 3·524288 at 1000 a ps
  EXPECT_EQ(product_ps(", algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, "
                       "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, "
                       "allow_imprecise_accumulation = false>"),
            1573);
}

TEST(OpTime, AGlobalOpHasTheCostOfItsLocalTypes) {
  Timed op(
      "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
      "(tensor<64x128xbf16>, tensor<128x256xbf16>) -> tensor<64x256xbf16>",
      "%a: tensor<64x128xbf16>, %b: tensor<128x256xbf16>", "tensor<64x256xbf16>");
  Context& context = op.module.context();
  const std::vector<TypeId> types{context.tensor(DType::kBF16, Dims{64, 32}),
                                  context.tensor(DType::kBF16, Dims{32, 86}),
                                  context.tensor(DType::kBF16, Dims{64, 86})};
  const OpTime time = op_time(OpView(op.module, op.op), types, round_hardware());
  EXPECT_EQ(time.flops, 352256);  // 2·64·32·86: a quarter of the rows, a third of the columns with padding
  EXPECT_EQ(time.bytes, 20608);   // 2·(64·32 + 32·86 + 64·86)
}

// ---- convolutions --------------------------------------------------------------------------------------------------

Timed convolution(const std::string& window, const std::string& groups, const std::string& input,
                  const std::string& kernel, const std::string& result) {
  return Timed("%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {" +
                   window + "} {" + groups + "} : (tensor<" + input + ">, tensor<" + kernel + ">) -> tensor<" + result +
                   ">",
               "%a: tensor<" + input + ">, %b: tensor<" + kernel + ">", "tensor<" + result + ">");
}

const std::string kOneGroup = "batch_group_count = 1 : i64, feature_group_count = 1 : i64";

TEST(OpTime, AConvolutionMultipliesEachTapOfEachFeature) {
  // 2·(8·32·32·64)·(3·3·16) = 150994944 in f32: 301990; 4·(8·34·34·16, 3·3·16·64, 8·32·32·64) bytes
  expect(convolution("", kOneGroup, "8x34x34x16xf32", "3x3x16x64xf32", "8x32x32x64xf32"),
         {.matrix = 150994944, .touched = {591872, 36864, 2097152}, .ps = 2726888});
  // strided: 2·(8·16·16·64)·(3·3·16) = 37748736; of 34 rows, 16 windows of 3 at distance 2 read 33
  expect(convolution("stride = [2, 2]", kOneGroup, "8x34x34x16xf32", "3x3x16x64xf32", "8x16x16x64xf32"),
         {.matrix = 37748736, .touched = {557568, 36864, 524288}, .ps = 1119720});
  // dilated taps: 2·(8·30·30·64)·(3·3·16) = 132710400
  expect(convolution("rhs_dilate = [2, 2]", kOneGroup, "8x34x34x16xf32", "3x3x16x64xf32", "8x30x30x64xf32"),
         {.matrix = 132710400, .touched = {591872, 36864, 1843200}, .ps = 2472936});
}

TEST(OpTime, AConvolutionOfGroupsMultipliesTheFeaturesOfOne) {
  // 2·(8·32·32·64)·(3·3·4): a group has 4 of the 16 features
  expect(convolution("", "batch_group_count = 1 : i64, feature_group_count = 4 : i64", "8x34x34x16xf32", "3x3x4x64xf32",
                     "8x32x32x64xf32"),
         {.matrix = 37748736, .touched = {591872, 9216, 2097152}, .ps = 2699240});
  // depthwise: 2·(8·32·32·16)·(3·3·1)
  expect(convolution("", "batch_group_count = 1 : i64, feature_group_count = 16 : i64", "8x34x34x16xf32",
                     "3x3x1x16xf32", "8x32x32x16xf32"),
         {.matrix = 2359296, .touched = {591872, 576, 524288}, .ps = 1117736});
}

// The gradient of the input of a strided convolution: three quarters of the taps meet holes.
TEST(OpTime, AConvolutionOfADilatedInputMultipliesNoHoles) {
  // 2·8·64·16·(ceil(32·3 / 2))² = 37748736; 4·(8·16·16·16, 3·3·16·64, 8·32·32·64) bytes
  expect(convolution("pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2]", kOneGroup, "8x16x16x16xf32", "3x3x16x64xf32",
                     "8x32x32x64xf32"),
         {.matrix = 37748736, .touched = {131072, 36864, 2097152}, .ps = 2266088});
}

TEST(OpTime, AConvolutionOfWidenedOperandsIsThatOfTheirDtype) {
  const Timed op(R"(
  %x = stablehlo.convert %a : (tensor<8x34x34x16xbf16>) -> tensor<8x34x34x16xf32>
  %y = stablehlo.convert %b : (tensor<3x3x16x64xbf16>) -> tensor<3x3x16x64xf32>
  %r = stablehlo.convolution(%x, %y) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} :
      (tensor<8x34x34x16xf32>, tensor<3x3x16x64xf32>) -> tensor<8x32x32x64xf32>)",
                 "%a: tensor<8x34x34x16xbf16>, %b: tensor<3x3x16x64xbf16>", "tensor<8x32x32x64xf32>");
  EXPECT_EQ(op.time.unit_ps[0], 150995);  // 150994944 at 1000 a ps
  EXPECT_EQ(op.time.bytes, 2411520);      // 295936 + 18432 of bf16, 2097152 of f32
}

// ---- elements ------------------------------------------------------------------------------------------------------

TEST(OpTime, AnElementwiseOpTakesOneOperationForEachElement) {
  expect(Timed("%r = stablehlo.add %a, %a : tensor<1000xf32>", "%a: tensor<1000xf32>", "tensor<1000xf32>"),
         {.vector = 1000, .touched = {4000, 4000, 4000}, .ps = 13000});
  expect(Timed("%r = stablehlo.compare LT, %a, %a : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xi1>",
               "%a: tensor<1000xf32>", "tensor<1000xi1>"),
         {.vector = 1000, .touched = {4000, 4000, 1000}, .ps = 10000});
  expect(Timed("%r = stablehlo.convert %a : (tensor<1000xf32>) -> tensor<1000xbf16>", "%a: tensor<1000xf32>",
               "tensor<1000xbf16>"),
         {.vector = 1000, .touched = {4000, 2000}, .ps = 7000});
  // a scalar predicate
  expect(Timed("%r = stablehlo.select %p, %a, %a : tensor<i1>, tensor<1000xf32>",
               "%p: tensor<i1>, %a: tensor<1000xf32>", "tensor<1000xf32>"),
         {.vector = 1000, .touched = {1, 4000, 4000, 4000}, .ps = 13001});
}

TEST(OpTime, FunctionsThatAreSeriesAreTranscendental) {
  for (const char* function : {"stablehlo.tanh", "stablehlo.exponential", "chlo.erf", "stablehlo.logistic"}) {
    const std::string text = std::string("%r = \"") + function + "\"(%a) : (tensor<64xf32>) -> tensor<64xf32>";
    // 64 at ten a ps: 7 (up); 512 bytes
    expect(Timed(text, "%a: tensor<64xf32>", "tensor<64xf32>"),
           {.transcendental = 64, .touched = {256, 256}, .ps = 1512});
  }
  // One of bf16 reads half: 6400000 functions at ten a ps take 640000, 4·6400000 bytes more
  expect(Timed("%r = stablehlo.power %a, %a : tensor<64xf32>", "%a: tensor<64xf32>", "tensor<64xf32>"),
         {.transcendental = 64, .touched = {256, 256, 256}, .ps = 1768});
  // of integers by squaring
  expect(Timed("%r = stablehlo.power %a, %a : tensor<64xi32>", "%a: tensor<64xi32>", "tensor<64xi32>"),
         {.vector = 64, .touched = {256, 256, 256}, .ps = 1768});
  expect(Timed("%r = stablehlo.sqrt %a : tensor<64xf32>", "%a: tensor<64xf32>", "tensor<64xf32>"),
         {.vector = 64, .touched = {256, 256}, .ps = 1512});
}

TEST(OpTime, ConstantsAreBytesAlone) {
  expect(Timed("%r = stablehlo.constant dense<1.0> : tensor<16xf32>", "", "tensor<16xf32>"),
         {.touched = {64}, .ps = 1064});
  expect(Timed("%r = stablehlo.iota dim = 0 : tensor<16xi32>", "", "tensor<16xi32>"),
         {.vector = 16, .touched = {64}, .ps = 1064});
}

// ---- movement ------------------------------------------------------------------------------------------------------

TEST(OpTime, AMovementTouchesWhatItReadsAndWrites) {
  // rows 1, 3, 5, 7 of 100: 4·64 floats in and out
  expect(Timed("%r = stablehlo.slice %a [1:9:2, 0:64] : (tensor<100x64xf32>) -> tensor<4x64xf32>",
               "%a: tensor<100x64xf32>", "tensor<4x64xf32>"),
         {.touched = {1024, 1024}, .ps = 3048});
  expect(Timed("%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
               "%r = stablehlo.pad %a, %z, low = [10], high = [10], interior = [0] : (tensor<80xf32>, tensor<f32>) -> "
               "tensor<100xf32>",
               "%a: tensor<80xf32>", "tensor<100xf32>"),
         {.touched = {320, 4, 400}, .ps = 1724});
  expect(Timed("%r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<10xf32>, tensor<30xf32>) -> tensor<40xf32>",
               "%a: tensor<10xf32>, %b: tensor<30xf32>", "tensor<40xf32>"),
         {.touched = {40, 120, 160}, .ps = 1320});
  expect(Timed("%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<10x20xf32>) -> tensor<20x10xf32>",
               "%a: tensor<10x20xf32>", "tensor<20x10xf32>"),
         {.touched = {800, 800}, .ps = 2600});
  expect(Timed("%r = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<20xf32>) -> tensor<10x20xf32>",
               "%a: tensor<20xf32>", "tensor<10x20xf32>"),
         {.touched = {80, 800}, .ps = 1880});
}

TEST(OpTime, SlicesAtComputedPlacesTouchTheSliceAlone) {
  // one layer of 36 stacked ones
  expect(
      Timed("%r = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 64] : (tensor<36x64xf32>, tensor<i32>, tensor<i32>)"
            " -> tensor<1x64xf32>",
            "%a: tensor<36x64xf32>, %i: tensor<i32>", "tensor<1x64xf32>"),
      {.touched = {256, 4, 4, 256}, .ps = 1520});
  // in place: the update is read and written
  expect(
      Timed("%r = stablehlo.dynamic_update_slice %a, %b, %i, %i : (tensor<36x64xf32>, tensor<1x64xf32>, tensor<i32>, "
            "tensor<i32>) -> tensor<36x64xf32>",
            "%a: tensor<36x64xf32>, %b: tensor<1x64xf32>, %i: tensor<i32>", "tensor<36x64xf32>"),
      {.touched = {0, 256, 4, 4, 256}, .ps = 1520});
}

TEST(OpTime, AGatherOfALargeTableTouchesTheRowsThatItTakes) {
  // 64 rows of 32 floats of a table of 50000 rows, at 64 places
  expect(Timed(R"(%r = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 32>}>
      : (tensor<50000x32xf32>, tensor<64x1xi32>) -> tensor<64x32xf32>)",
               "%a: tensor<50000x32xf32>, %i: tensor<64x1xi32>", "tensor<64x32xf32>"),
         {.touched = {8192, 256, 8192}, .ps = 17640});
}

Timed scatter(const std::string& combined) {
  return Timed(R"(%r = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return )" +
                   combined + R"( : tensor<f32>
    }) : (tensor<50000x32xf32>, tensor<64x1xi32>, tensor<64x32xf32>) -> tensor<50000x32xf32>)",
               "%a: tensor<50000x32xf32>, %i: tensor<64x1xi32>, %u: tensor<64x32xf32>", "tensor<50000x32xf32>");
}

TEST(OpTime, AScatterTouchesTheRowsOfItsUpdates) {
  // the rows are read, added to and written: 64·32 additions
  expect(scatter("%s"), {.vector = 2048, .touched = {8192, 256, 8192, 8192}, .ps = 25832});
  expect(scatter("%q"), {.touched = {0, 256, 8192, 8192}, .ps = 17640});
}

// ---- reductions, windows, sorts ------------------------------------------------------------------------------------

TEST(OpTime, AReductionTakesOneOperationForEachElement) {
  const std::string zero = "%z = stablehlo.constant dense<0.0> : tensor<f32>\n";
  expect(Timed(zero + "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : "
                      "(tensor<100x64xf32>, tensor<f32>) -> tensor<100xf32>",
               "%a: tensor<100x64xf32>", "tensor<100xf32>"),
         {.vector = 6400, .touched = {25600, 4, 400}, .ps = 27004});
}

Timed window(const std::string& attributes, const std::string& result) {
  return Timed("%z = stablehlo.constant dense<0.0> : tensor<f32>\n%r = \"stablehlo.reduce_window\"(%a, %z) <{" +
                   attributes + R"(}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<100x64xf32>, tensor<f32>) -> tensor<)" +
                   result + ">",
               "%a: tensor<100x64xf32>", "tensor<" + result + ">");
}

TEST(OpTime, AWindowIsReadOnceAndReducedForEachResult) {
  // windows of 2 rows, at distance 2: 50·64 results, two operations each
  expect(window("window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>", "50x64xf32"),
         {.vector = 6400, .touched = {25600, 4, 12800}, .ps = 39404});
  // a cumulative sum keeps the last one: one operation for each element
  expect(window("window_dimensions = array<i64: 100, 1>, padding = dense<[[99, 0], [0, 0]]> : tensor<2x2xi64>",
                "100x64xf32"),
         {.vector = 6400, .touched = {25600, 4, 25600}, .ps = 52204});
}

TEST(OpTime, ASelectAndScatterComparesTheElementsOfItsWindows) {
  const Timed op(R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
    %r = "stablehlo.select_and_scatter"(%a, %b, %z) <{window_dimensions = array<i64: 2, 2>,
        window_strides = array<i64: 2, 2>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %s : tensor<i1>
    }, {
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<32x32xf32>, tensor<16x16xf32>, tensor<f32>) -> tensor<32x32xf32>)",
                 "%a: tensor<32x32xf32>, %b: tensor<16x16xf32>", "tensor<32x32xf32>");
  EXPECT_EQ(op.cost.vector, 1280);  // 16·16 windows, 4 elements and an addition each
  EXPECT_EQ(op.cost.bytes(), 4 * (1024 + 256 + 1 + 1024));
}

TEST(OpTime, ASortComparesALogarithmOfItsRows) {
  // 8·1000·10 comparisons: 2^10 is the first power of two that is not below 1000
  expect(Timed(R"(%r = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %s : tensor<i1>
    }) : (tensor<8x1000xf32>) -> tensor<8x1000xf32>)",
               "%a: tensor<8x1000xf32>", "tensor<8x1000xf32>"),
         {.vector = 80000, .touched = {32000, 32000}, .ps = 65000});
  const Timed top(R"(%r, %i = chlo.top_k(%a, k = 8) : tensor<4x1000xf32> -> (tensor<4x8xf32>, tensor<4x8xi32>))",
                  "%a: tensor<4x1000xf32>", "tensor<4x8xf32>");
  EXPECT_EQ(top.cost.vector, 12000);  // each element against a heap of 8: 3 comparisons
}

// ---- transforms, linear algebra, random numbers --------------------------------------------------------------------

TEST(OpTime, AFourierTransformTakesFiveNLogN) {
  // 5·(4·1024)·10 operations on complex numbers of 8 bytes
  expect(Timed("%r = stablehlo.fft %a, type = FFT, length = [1024] : (tensor<4x1024xcomplex<f32>>) -> "
               "tensor<4x1024xcomplex<f32>>",
               "%a: tensor<4x1024xcomplex<f32>>", "tensor<4x1024xcomplex<f32>>"),
         {.vector = 204800, .touched = {32768, 32768}, .ps = 66536});
  // half of it for real ones, whose spectrum is half
  expect(
      Timed("%r = stablehlo.fft %a, type = RFFT, length = [1024] : (tensor<4x1024xf32>) -> tensor<4x513xcomplex<f32>>",
            "%a: tensor<4x1024xf32>", "tensor<4x513xcomplex<f32>>"),
      {.vector = 102400, .touched = {16384, 16416}, .ps = 33800});
}

TEST(OpTime, AFactorizationIsCubicInItsMatrix) {
  // 3 matrices, 64³ each
  expect(Timed("%r = stablehlo.cholesky %a, lower = true : tensor<3x64x64xf32>", "%a: tensor<3x64x64xf32>",
               "tensor<3x64x64xf32>"),
         {.vector = 786432, .touched = {49152, 49152}, .ps = 99304});
  // 64²·64
  EXPECT_EQ(Timed(R"(%r = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<64x64xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>)",
                  "%a: tensor<64x64xf32>, %b: tensor<64x8xf32>", "tensor<64x8xf32>")
                .cost.vector,
            262144);
}

TEST(OpTime, RandomBitsTakeTheRoundsOfTheirAlgorithm) {
  const Timed op(R"(%s, %r = "stablehlo.rng_bit_generator"(%a) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}>
      : (tensor<2xui64>) -> (tensor<2xui64>, tensor<1000xui32>))",
                 "%a: tensor<2xui64>", "tensor<1000xui32>");
  EXPECT_EQ(op.cost.vector, 37000);  // (20·3 + 5·3) / 2 for each word of four bytes, down
  EXPECT_EQ(op.cost.bytes(), 16 + 16 + 4000);
}

// ---- no time -------------------------------------------------------------------------------------------------------

TEST(OpTime, WhatRunsNothingTakesNoTime) {
  const Timed barrier("%r = stablehlo.optimization_barrier %a : tensor<64xf32>", "%a: tensor<64xf32>",
                      "tensor<64xf32>");
  EXPECT_EQ(barrier.time, OpTime{});
  EXPECT_EQ(barrier.time.bound(), Bound::kNothing);
  // its regions are counted op by op
  const Timed branches(R"(%r = "stablehlo.case"(%i) ({
      stablehlo.return %a : tensor<64xf32>
    }, {
      %n = stablehlo.negate %a : tensor<64xf32>
      stablehlo.return %n : tensor<64xf32>
    }) : (tensor<i32>) -> tensor<64xf32>)",
                       "%i: tensor<i32>, %a: tensor<64xf32>", "tensor<64xf32>");
  EXPECT_EQ(branches.time.ps(), 0);
}

}  // namespace
}  // namespace shardwise
