// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/hardware.h"

#include <random>
#include <span>

#include <gtest/gtest.h>

#include "shardwise/cost/price.h"

namespace shardwise {
namespace {

constexpr int64_t kGiga = 1'000'000'000;

TEST(Hardware, ExampleOfTheHeader) {
  const Hardware& h100 = *builtin_hardware("h100_sxm");
  EXPECT_EQ(h100.peak(ComputeUnit::kMatrix, DType::kBF16).flops, 989'170'291'507'200);
  EXPECT_EQ(h100.compute_time(ComputeUnit::kMatrix, DType::kBF16, kGiga), 1'010'949);
  EXPECT_EQ(h100.memory_time(1 << 20), 312'792);
  EXPECT_EQ(h100.tiers[0].name, "nvlink");
}

TEST(Peak, OfADTypeWithoutARowIsThatOfOneAsWide) {
  const Hardware& h100 = *builtin_hardware("h100_sxm");
  const auto row = [&](ComputeUnit unit, DType dtype) { return h100.peak(unit, dtype).row; };
  EXPECT_EQ(row(ComputeUnit::kMatrix, DType::kF8E4M3FN), "f8E4M3FN");
  EXPECT_EQ(row(ComputeUnit::kMatrix, DType::kF8E4M3), "f8E4M3FN");  // another float of 8 bits
  EXPECT_EQ(row(ComputeUnit::kMatrix, DType::kU8), "i8");
  EXPECT_EQ(row(ComputeUnit::kMatrix, DType::kI4), "i8");  // the next wider integer
  EXPECT_EQ(row(ComputeUnit::kVector, DType::kI16), "i32");
  EXPECT_EQ(row(ComputeUnit::kVector, DType::kC64), "f32");
  EXPECT_EQ(row(ComputeUnit::kVector, DType::kBool), "i32");
  const Hardware& a100 = *builtin_hardware("a100_80");
  EXPECT_EQ(a100.peak(ComputeUnit::kMatrix, DType::kF8E5M2).flops, 312'000 * kGiga);
}

TEST(Peak, OfAWiderDTypeThanAllRowsIsLower) {
  const Hardware& v4 = *builtin_hardware("tpu_v4");
  const Peak f32 = v4.peak(ComputeUnit::kVector, DType::kF32), f64 = v4.peak(ComputeUnit::kVector, DType::kF64);
  EXPECT_EQ(f64.row, "f32");
  EXPECT_EQ(f64.flops, f32.flops / 2);
}

// A float of 64 bits is no hint at integers.
TEST(Peak, OfAnIntegerFollowsFromIntegers) {
  const Hardware& h100 = *builtin_hardware("h100_sxm");
  const Peak i32 = h100.peak(ComputeUnit::kVector, DType::kI32), i64 = h100.peak(ComputeUnit::kVector, DType::kI64);
  EXPECT_EQ(i64.row, "i32");
  EXPECT_EQ(i64.flops, i32.flops / 2);
  // No unit of products takes integers of 32 bits: the vector unit does, at less than a quarter of the rate of i8.
  EXPECT_EQ(h100.peak(ComputeUnit::kMatrix, DType::kI32).flops, i32.flops);
  EXPECT_EQ(h100.peak(ComputeUnit::kMatrix, DType::kU64).flops, i64.flops);
  const Hardware& v3 = *builtin_hardware("tpu_v3");  // lists no integers
  EXPECT_EQ(v3.peak(ComputeUnit::kMatrix, DType::kI8).row, "bf16");
  EXPECT_EQ(v3.peak(ComputeUnit::kVector, DType::kI64).flops, v3.peak(ComputeUnit::kVector, DType::kF64).flops);
}

TEST(Peak, IsFoundByTheNameOfItsRow) {
  const Hardware& h100 = *builtin_hardware("h100_sxm");
  const auto row = [&](ComputeUnit unit, std::string_view name) {
    const auto peak = h100.peak_named(unit, name);
    return peak ? peak->row : "none";
  };
  EXPECT_EQ(row(ComputeUnit::kMatrix, "tf32"), "tf32");
  EXPECT_EQ(row(ComputeUnit::kVector, "tf32"), "none");
  EXPECT_EQ(row(ComputeUnit::kMatrix, "bf16"), "bf16");
  EXPECT_EQ(row(ComputeUnit::kVector, "i8"), "i32");
  EXPECT_EQ(row(ComputeUnit::kMatrix, "float32"), "none");
  EXPECT_EQ(row(ComputeUnit::kMatrix, ""), "none");
}

TEST(Peak, OfAComplexDTypeIsThatOfItsParts) {
  const Hardware& h100 = *builtin_hardware("h100_sxm");
  for (const ComputeUnit unit : {ComputeUnit::kMatrix, ComputeUnit::kVector, ComputeUnit::kTranscendental}) {
    EXPECT_EQ(h100.peak(unit, DType::kC64).flops, h100.peak(unit, DType::kF32).flops);
    EXPECT_EQ(h100.peak(unit, DType::kC128).flops, h100.peak(unit, DType::kF64).flops);
  }
}

TEST(Peak, OfAWiderDTypeOfAKindIsNeverHigher) {
  constexpr DType kFloats[] = {DType::kF4E2M1FN, DType::kF8E4M3FN, DType::kF8E5M2, DType::kF16,
                               DType::kBF16,     DType::kF32,      DType::kF64};
  constexpr DType kSigned[] = {DType::kI4, DType::kI8, DType::kI16, DType::kI32, DType::kI64};
  constexpr DType kUnsigned[] = {DType::kU4, DType::kU8, DType::kU16, DType::kU32, DType::kU64};
  constexpr DType kComplex[] = {DType::kC64, DType::kC128};
  for (const std::string& name : builtin_hardware_names()) {
    const Hardware& hardware = *builtin_hardware(name);
    for (const ComputeUnit unit : {ComputeUnit::kMatrix, ComputeUnit::kVector, ComputeUnit::kTranscendental}) {
      for (const std::span<const DType> kind : {std::span<const DType>(kFloats), {kSigned}, {kUnsigned}, {kComplex}}) {
        for (const DType narrow : kind) {
          for (const DType wide : kind) {
            if (bit_width(narrow) >= bit_width(wide)) continue;
            EXPECT_GE(hardware.peak(unit, narrow).flops, hardware.peak(unit, wide).flops)
                << name << " " << shardwise::name(unit) << " " << mlir_name(narrow) << " " << mlir_name(wide);
          }
        }
      }
    }
  }
}

TEST(Peak, OfAUnitWithoutRowsIsThatOfVectors) {
  const Hardware& v4 = *builtin_hardware("tpu_v4");
  EXPECT_EQ(v4.peak(ComputeUnit::kTranscendental, DType::kF32).flops, v4.peak(ComputeUnit::kVector, DType::kF32).flops);
}

TEST(Peak, OfAProductOfDefaultPrecisionIsInTheFile) {
  const Hardware& h100 = *builtin_hardware("h100_sxm");
  EXPECT_EQ(h100.dot_peak(DType::kF32, true).row, "tf32");
  EXPECT_EQ(h100.dot_peak(DType::kF32, false).row, "f32");
  EXPECT_EQ(h100.dot_peak(DType::kC64, true).row, "tf32");
  EXPECT_EQ(h100.dot_peak(DType::kBF16, true).row, "bf16");
  EXPECT_EQ(builtin_hardware("tpu_v5e")->dot_peak(DType::kF32, true).row, "bf16");
}

TEST(Efficiency, WithoutPointsIsTheRoofline) { EXPECT_EQ(Efficiency{}.time(3, 1'000'000'000'000), 3); }

// At 1 TB/s a byte takes 1 ps.
constexpr int64_t kByteRate = 1'000'000'000'000;

TEST(Efficiency, StepsHoldFromTheirSizeOn) {
  const Efficiency steps{.points = {{100, 250'000}, {1'000, 500'000}, {100'000, 1'000'000}}};
  EXPECT_EQ(steps.time(10, kByteRate), 40);  // the first share holds below, too
  EXPECT_EQ(steps.time(100, kByteRate), 400);
  EXPECT_EQ(steps.time(1'000, kByteRate), 2'000);
  EXPECT_EQ(steps.time(10'000, kByteRate), 20'000);
  EXPECT_EQ(steps.time(1'000'000, kByteRate), 1'000'000);
}

TEST(Efficiency, LessWorkTakesNoMoreTimeThanTheNextStep) {
  const Efficiency steps{.points = {{1, 250'000}, {1'000, 500'000}}};
  EXPECT_EQ(steps.time(400, kByteRate), 1'600);
  EXPECT_EQ(steps.time(600, kByteRate), 2'000);  // as 1000, instead of 2400
}

TEST(Efficiency, TimesBetweenPointsAreLinear) {
  const Efficiency line{.is_linear = true, .points = {{100, 100'000}, {1'000, 500'000}}};
  EXPECT_EQ(line.time(50, kByteRate), 500);
  EXPECT_EQ(line.time(100, kByteRate), 1'000);
  EXPECT_EQ(line.time(550, kByteRate), 1'500);
  EXPECT_EQ(line.time(1'000, kByteRate), 2'000);
  EXPECT_EQ(line.time(2'000, kByteRate), 4'000);
}

TEST(Efficiency, TimesAreMonotoneAndSaturate) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 2'000; ++round) {
    Efficiency table{.is_linear = round % 2 == 0};
    int64_t size = 0, share = 1'000;
    for (int i = 0; i < 5; ++i) {
      const int64_t before = size;
      size += 1 + static_cast<int64_t>(random() >> (2 + random() % 60)) / 8;
      // A share that grows as the size at most.
      const int64_t most = before == 0 ? 1'000'000 : saturated(widened(share) * widened(size) / widened(before));
      share = std::min<int64_t>({1'000'000, most, share + static_cast<int64_t>(random() % 300'000)});
      table.points.push_back({size, share});
    }
    const int64_t a = static_cast<int64_t>(random() >> (1 + random() % 63)),
                  rate = 1 + static_cast<int64_t>(random() >> 30);
    const int64_t b = saturated_sum(a, static_cast<int64_t>(random() >> (1 + random() % 63)));
    ASSERT_LE(table.time(a, rate), table.time(b, rate)) << round;
    ASSERT_GE(table.time(a, rate), table.time(a, saturated_sum(rate, 17))) << round;
    if (table.time(size, rate) < kSaturated) {
      ASSERT_GE(table.time(a, rate), Efficiency{}.time(a, rate)) << round;
    }
  }
  EXPECT_EQ((Efficiency{.points = {{1, 1}}}.time(kSaturated, 1)), kSaturated);
  EXPECT_EQ(Efficiency{}.time(0, 1), 0);
}

TEST(Tier, RingsOfATorusCloseByItsRule) {
  const Tier v4 = builtin_hardware("tpu_v4")->tiers[0], v5e = builtin_hardware("tpu_v5e")->tiers[0];
  EXPECT_TRUE(v4.closes(4) && v4.closes(12) && !v4.closes(2) && !v4.closes(6));
  EXPECT_TRUE(v4.closes(4, {4, 4, 4}) && v4.closes(8, {8, 4, 4}));
  EXPECT_FALSE(v4.closes(4, {4, 2, 2}) || v4.closes(4, {4, 4, 1}));
  EXPECT_TRUE(v5e.closes(16, {16, 8}) && !v5e.closes(8, {16, 8}));
  EXPECT_TRUE(v5e.closes(16) && !v5e.closes(8) && !v5e.closes(32));
  const Tier never{.topology = Topology::kTorus, .wrap_multiple = 0};
  EXPECT_FALSE(never.closes(16));
  const Tier ring{.topology = Topology::kRing, .size = 8};
  EXPECT_TRUE(ring.closes(8) && !ring.closes(4));
}

}  // namespace
}  // namespace shardwise
