// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/memory/buffer_pool.h"

#include <thread>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

class BufferPool : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = buffer_pool_capacity();
    set_buffer_pool_capacity(0);
  }
  void TearDown() override { set_buffer_pool_capacity(before_); }

 private:
  int64_t before_ = 0;
};

TEST_F(BufferPool, GivesMemoryAgain) {
  set_buffer_pool_capacity(int64_t{1} << 20);
  NdArray a = pooled_empty(DType::kF32, {100, 100});
  const std::byte* memory = a.data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0U);
  a = {};
  EXPECT_GE(buffer_pool_bytes(), 40000);
  const NdArray b = pooled_empty(DType::kF64, {50, 99});
  EXPECT_EQ(b.data(), memory);
  EXPECT_EQ(buffer_pool_bytes(), 0);
}

TEST_F(BufferPool, KeepsNoMoreThanItsCapacity) {
  set_buffer_pool_capacity(1000);
  pooled_empty(DType::kF32, {1000});
  EXPECT_EQ(buffer_pool_bytes(), 0);
  pooled_empty(DType::kF32, {100});
  EXPECT_GT(buffer_pool_bytes(), 0);
  set_buffer_pool_capacity(0);
  EXPECT_EQ(buffer_pool_bytes(), 0);
}

TEST_F(BufferPool, CountsWhatIsAlive) {
  const int64_t before = live_buffer_bytes();
  NdArray a = pooled_empty(DType::kI8, {0, 5});
  NdArray b = pooled_empty(DType::kI8, {4096});
  EXPECT_EQ(live_buffer_bytes() - before, 4096);
  a = {};
  b = {};
  EXPECT_EQ(live_buffer_bytes(), before);
}

TEST_F(BufferPool, CountsThePeakSinceTheLastQuestion) {
  restart_peak_buffer_bytes();
  const int64_t before = live_buffer_bytes();
  pooled_empty(DType::kI8, {4096});
  const NdArray b = pooled_empty(DType::kI8, {100});
  EXPECT_EQ(restart_peak_buffer_bytes() - before, 4096);
  EXPECT_EQ(restart_peak_buffer_bytes() - before, 100);
}

TEST_F(BufferPool, RefusesSizesBeyond63Bits) {
  EXPECT_THROW(pooled_empty(DType::kF32, {int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
}

TEST_F(BufferPool, ServesSeveralThreads) {
  const int64_t capacity = int64_t{1} << 20, before = live_buffer_bytes();
  set_buffer_pool_capacity(capacity);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int64_t i = 0; i < 2000; ++i) {
        const NdArray array = pooled_empty(DType::kI8, {1 + i % 300});
        *array.data() = static_cast<std::byte>(t);
        const NdArray other = pooled_empty(DType::kI8, {1 + i % 300});
        *other.data() = std::byte{9};
        EXPECT_EQ(*array.data(), static_cast<std::byte>(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(live_buffer_bytes(), before);
  EXPECT_LE(buffer_pool_bytes(), capacity);
}

}  // namespace
}  // namespace shardwise
