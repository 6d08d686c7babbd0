// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/tile/program.h"
#include "tile/tile_runs.h"

namespace shardwise {
namespace {

constexpr int64_t kElements = 1003;

using Registers = std::vector<uint32_t>;
using Emit = std::function<uint32_t(TileBuilder&, const Registers&)>;

// Any bits: of integers the extremes too, of floats NaN and infinities too.
NdArray random_bits(DType dtype, uint32_t seed) {
  std::mt19937_64 random(seed);
  const NdArray array = NdArray::empty(dtype, {kElements});
  for (int64_t i = 0; i < array.nbytes(); ++i) array.data()[i] = static_cast<std::byte>(random());
  if (is_signed_integer(dtype)) store(Scalar::of_int(dtype, -1), array.data());
#ifndef __SANITIZE_ADDRESS__
  // Two NaN meet, and their payloads tell which one has won. At the -O1 of sanitizers, GCC swaps the factors of some
  // products and not of others, which changes nothing but this payload.
  const uint32_t single = 0x7FC00000 + seed;
  const uint64_t twice = 0x7FF8000000000000 + seed;
  if (dtype == DType::kF32) std::memcpy(array.data() + 8 * sizeof single, &single, sizeof single);
  if (dtype == DType::kF64) std::memcpy(array.data() + 8 * sizeof twice, &twice, sizeof twice);
#endif
  return array;
}

TileProgram program_of(DType dtype, size_t inputs, const Emit& emit) {
  TileBuilder tiles;
  Registers registers;
  for (size_t i = 0; i < inputs; ++i) registers.push_back(tiles.input(dtype));
  tiles.output(emit(tiles, registers));
  return std::move(tiles).build();
}

class FusePairs : public testing::Test {
 protected:
  void TearDown() override { use_tile_isa(tile_isas().back()); }

  // The chain is one instruction, and has the bits of its parts: `first` gives what `second` reads after the inputs.
  void expect_one(DType dtype, size_t inputs, const Emit& first, const Emit& second) {
    std::vector<NdArray> arrays;
    for (size_t i = 0; i < inputs; ++i) arrays.push_back(random_bits(dtype, static_cast<uint32_t>(i)));
    const TileProgram fused = program_of(dtype, inputs, [&](TileBuilder& tiles, Registers registers) {
      registers.push_back(first(tiles, registers));
      return second(tiles, registers);
    });
    EXPECT_EQ(fused.instruction_count(), 1U) << mlir_name(dtype);
    for (const std::string_view isa : tile_isas()) {
      use_tile_isa(isa);
      std::vector<NdArray> all = arrays;
      all.push_back(run(program_of(dtype, inputs, first), arrays));
      EXPECT_EQ(bytes_of(run(fused, arrays)), bytes_of(run(program_of(dtype, inputs + 1, second), all)))
          << isa << " " << mlir_name(dtype);
    }
  }
};

Emit binary(TileCode code, DType dtype, size_t a, size_t b) {
  return [=](TileBuilder& tiles, const Registers& r) { return tiles.emit(code, {r[a], r[b]}, dtype); };
}

constexpr DType kIntegers[] = {DType::kI8, DType::kI16, DType::kI32, DType::kI64,
                               DType::kU8, DType::kU16, DType::kU32, DType::kU64};

TEST_F(FusePairs, AProductAndAnAddendAreOneInstruction) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const bool is_first : {false, true}) {
      expect_one(dtype, 2, binary(TileCode::kMultiply, dtype, 0, 1), [=](TileBuilder& tiles, const Registers& r) {
        const uint32_t c = tiles.scalar(Scalar::of_float(dtype, 0.7));
        return tiles.emit(TileCode::kAdd, {is_first ? c : r[2], is_first ? r[2] : c}, dtype);
      });
    }
  }
  for (const DType dtype : kIntegers) {
    expect_one(dtype, 3, binary(TileCode::kMultiply, dtype, 0, 1), binary(TileCode::kAdd, dtype, 2, 3));
  }
}

TEST_F(FusePairs, SumsOfThreeIntegersAreOneInstruction) {
  for (const DType dtype : kIntegers) {
    expect_one(dtype, 3, binary(TileCode::kAdd, dtype, 0, 1), binary(TileCode::kAdd, dtype, 2, 3));
    expect_one(dtype, 3, binary(TileCode::kAdd, dtype, 0, 1), binary(TileCode::kAdd, dtype, 3, 2));
  }
}

// The first NaN wins in a sum, so that the order of floats must stay.
TEST_F(FusePairs, FloatsThatMayBeNaNStayApart) {
  const auto count = [](const Emit& emit) { return program_of(DType::kF32, 3, emit).instruction_count(); };
  const auto chain = [](TileCode inner, auto addend) {
    return [=](TileBuilder& tiles, const Registers& r) {
      const uint32_t first = tiles.emit(inner, {r[0], r[1]}, DType::kF32);
      return tiles.emit(TileCode::kAdd, {first, addend(tiles, r)}, DType::kF32);
    };
  };
  const auto third = [](TileBuilder&, const Registers& r) { return r[2]; };
  const auto nan = [](TileBuilder& tiles, const Registers&) {
    return tiles.scalar(Scalar::of_float(DType::kF32, std::nan("")));
  };
  EXPECT_EQ(count(chain(TileCode::kMultiply, third)), 2U);
  EXPECT_EQ(count(chain(TileCode::kMultiply, nan)), 2U);
  EXPECT_EQ(count(chain(TileCode::kAdd, third)), 2U);
}

TEST_F(FusePairs, AProductWithAnotherReaderStays) {
  TileBuilder tiles;
  const uint32_t x = tiles.input(DType::kI32), square = tiles.emit(TileCode::kMultiply, {x, x}, DType::kI32);
  tiles.output(square);
  tiles.output(tiles.emit(TileCode::kAdd, {square, x}, DType::kI32));
  EXPECT_EQ(std::move(tiles).build().instruction_count(), 2U);
}

TEST_F(FusePairs, ARoundOfAGeneratorIsOneInstruction) {
  for (const DType dtype : {DType::kU32, DType::kU64}) {
    const Emit rotated = [=](TileBuilder& tiles, const Registers& r) {
      const auto by = [&](uint64_t count) { return tiles.scalar(Scalar::of_uint(dtype, count)); };
      const uint32_t left = tiles.emit(TileCode::kShiftLeft, {r[0], by(13)}, dtype);
      const auto rest = static_cast<uint64_t>(bit_width(dtype)) - 13;
      const uint32_t right = tiles.emit(TileCode::kShiftRightLogical, {r[0], by(rest)}, dtype);
      return tiles.emit(TileCode::kOr, {left, right}, dtype);
    };
    expect_one(dtype, 2, rotated, binary(TileCode::kXor, dtype, 1, 2));
    expect_one(dtype, 2, rotated, binary(TileCode::kXor, dtype, 2, 1));
  }
}

TEST_F(FusePairs, WrappedIndicesAreOneInstruction) {
  for (const DType dtype : {DType::kI8, DType::kI16, DType::kI32, DType::kI64}) {
    for (const bool is_first : {false, true}) {
      const auto size = [=](TileBuilder& tiles) { return tiles.scalar(Scalar::of_int(dtype, 100)); };
      const Emit sum = [=](TileBuilder& tiles, const Registers& r) {
        const uint32_t n = size(tiles);
        return tiles.emit(TileCode::kAdd, {is_first ? n : r[0], is_first ? r[0] : n}, dtype);
      };
      expect_one(dtype, 1, sum, [=](TileBuilder& tiles, const Registers& r) {
        const uint32_t zero = tiles.scalar(Scalar::of_int(dtype, 0));
        const uint32_t is_negative = tiles.emit(TileCode::kLess, {r[0], zero}, DType::kBool);
        return tiles.emit(TileCode::kSelect, {is_negative, r[1], r[0]}, dtype);
      });
    }
  }
}

TEST_F(FusePairs, ComparisonsWithOtherNumbersDoNotWrap) {
  const TileProgram program = program_of(DType::kI32, 1, [](TileBuilder& tiles, const Registers& r) {
    const uint32_t one = tiles.scalar(Scalar::of_int(DType::kI32, 1));
    const uint32_t is_less = tiles.emit(TileCode::kLess, {r[0], one}, DType::kBool);
    return tiles.emit(TileCode::kSelect, {is_less, tiles.emit(TileCode::kAdd, {r[0], one}, DType::kI32), r[0]},
                      DType::kI32);
  });
  EXPECT_EQ(program.instruction_count(), 3U);
}

TEST_F(FusePairs, BitsAreReadWithoutACopy) {
  const auto as_float = [](TileBuilder& tiles, const Registers& r) {
    return tiles.emit(TileCode::kBitcast, {r[0]}, DType::kF32);
  };
  const NdArray bits = random_bits(DType::kU32, 7);
  const TileProgram program = program_of(DType::kU32, 1, [&](TileBuilder& tiles, const Registers& r) {
    return tiles.emit(TileCode::kAbs, {as_float(tiles, r)}, DType::kF32);
  });
  EXPECT_EQ(program.instruction_count(), 1U);
  const NdArray floats = run(program_of(DType::kU32, 1, as_float), {bits});
  const TileProgram size = program_of(DType::kF32, 1, [](TileBuilder& tiles, const Registers& r) {
    return tiles.emit(TileCode::kAbs, {r[0]}, DType::kF32);
  });
  EXPECT_EQ(bytes_of(run(program, {bits})), bytes_of(run(size, {floats})));
}

}  // namespace
}  // namespace shardwise
