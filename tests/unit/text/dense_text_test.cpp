// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "shardwise/ir/attribute_printer.h"
#include "shardwise/ir/dense_printer.h"
#include "shardwise/text/attribute_parser.h"

namespace shardwise {
namespace {

NdArray parse_text(std::string_view text) {
  Module module(std::make_shared<Context>());
  TextReader reader(text, module);
  Attribute attribute = parse_attribute(reader);
  reader.expect_end();
  return std::get<DenseAttr>(attribute.base()).data;
}

std::string printed(const NdArray& data) {
  std::string out;
  print_dense(out, {data});
  return out;
}

// As jaxlib 0.10.2 prints them, but for the last digits of narrow floats.
TEST(DenseText, RoundTripsEveryForm) {
  for (std::string_view text : {
           "dense<1.500000e+00> : tensor<4x8xf32>",
           "dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>",
           "dense<[true, false]> : tensor<2xi1>",
           "dense<true> : tensor<4xi1>",
           "dense<> : tensor<0x4xf16>",
           "dense<> : tensor<2x0xf16>",
           "dense<18446744073709551615> : tensor<4xui64>",
           "dense<[-9223372036854775808, 9223372036854775807]> : tensor<2xi64>",
           "dense<-5> : tensor<i8>",
           "dense<[0x7FC00000, 0xFF800000, -0.000000e+00, 1.000000e+10]> : tensor<4xf32>",
           "dense<[0x7FC1, 0x7F80, 9.999221e+09, 9.183550e-41]> : tensor<4xbf16>",
           "dense<[9.997559e-02, 3.000488e-01, 0x7E00, 1.000000e+04]> : tensor<4xf16>",
           "dense<[0x7FF8000000000001, 1.000000e+300, 1.234560e+05]> : tensor<3xf64>",
       }) {
    EXPECT_EQ(printed(parse_text(text)), text);
  }
}

TEST(DenseText, ReadsOtherSpellings) {
  EXPECT_EQ(printed(parse_text("dense<[[], []]> : tensor<2x0xf16>")), "dense<> : tensor<2x0xf16>");
  EXPECT_EQ(printed(parse_text("dense<255> : tensor<2xi8>")), "dense<-1> : tensor<2xi8>");
  EXPECT_EQ(printed(parse_text("dense<0x1F> : tensor<2xi8>")), "dense<31> : tensor<2xi8>");
  EXPECT_EQ(printed(parse_text("dense<[0.333333343, 0x419D6F34]> : tensor<2xf32>")),
            "dense<[3.3333334e-01, 1.9679298e+01]> : tensor<2xf32>");
  EXPECT_EQ(printed(parse_text("dense<\"0x0100FF\"> : tensor<3xi1>")), "dense<[true, false, true]> : tensor<3xi1>");
  EXPECT_EQ(printed(parse_text("dense<\"0x0A000000\"> : tensor<3xi32>")), "dense<10> : tensor<3xi32>");
}

TEST(DenseText, ManyElementsAreRawBytes) {
  NdArray data = NdArray::empty(DType::kU16, {101});
  for (int64_t i = 0; i < 101; ++i)
    store(Scalar::of_uint(DType::kU16, static_cast<uint64_t>(300 * i)), data.data() + 2 * i);
  const std::string text = printed(data);
  EXPECT_EQ(text.substr(0, 20), "dense<\"0x00002C01580");
  EXPECT_EQ(printed(parse_text(text)), text);
  EXPECT_EQ(DenseAttr{parse_text(text)}, DenseAttr{data});
}

TEST(DenseText, StridedDataPrintsInItsOrder) {
  const NdArray rows = parse_text("dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>");
  const NdArray columns(DType::kI32, {2, 2}, {4, 8}, rows.data(), rows.owner());
  EXPECT_EQ(printed(columns), "dense<[[1, 3], [2, 4]]> : tensor<2x2xi32>");
}

TEST(DenseText, FloatsReadBackBitForBit) {
  std::mt19937_64 random(7);
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    for (int i = 0; i < 3000; ++i) {
      NdArray data = NdArray::empty(dtype, {2});
      for (int64_t k = 0; k < 2; ++k) {
        const uint64_t bits = random();
        std::memcpy(data.data() + k * item_size(dtype), &bits, static_cast<size_t>(item_size(dtype)));
      }
      ASSERT_EQ(DenseAttr{parse_text(printed(data))}, DenseAttr{data}) << printed(data);
    }
  }
}

TEST(AttributeText, FloatsKeepTheirType) {
  for (std::string_view text :
       {"1.500000e+00 : f32", "1.000000e-01 : f64", "0x7FC0 : bf16", "-0.000000e+00 : f16", "0xFF800000 : f32"}) {
    Module module(std::make_shared<Context>());
    TextReader reader(text, module);
    EXPECT_EQ(attribute_text(parse_attribute(reader)), text);
  }
}

}  // namespace
}  // namespace shardwise
