// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/sharding.h"

#include <functional>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

// Axes by number: 0 = x (12), 1 = y (4), 2 = z (2).
MeshPtr xyz() {
  static const MeshPtr mesh = std::make_shared<const Mesh>("m", std::vector<MeshAxis>{{"x", 12}, {"y", 4}, {"z", 2}});
  return mesh;
}
const AxisRef kX{0, 1, 12};
const AxisRef kY{1, 1, 4};
const AxisRef kZ{2, 1, 2};

TensorSharding of_dims(std::vector<DimSharding> dims, AxisList replicated = {}, AxisList unreduced = {}) {
  return {xyz(), std::move(dims), std::move(replicated), std::move(unreduced), Reducer::kNone};
}

std::string sharding_error(const std::function<void()>& run) {
  try {
    run();
  } catch (const ShardingError& error) {
    return error.message();
  }
  return "no error";
}

std::string verify_error(const TensorSharding& sharding, Dims shape) {
  return sharding_error([&] { verify(sharding, shape); });
}

// The sharding has one dim.
std::string axes_error(AxisList axes) { return verify_error(of_dims({{std::move(axes), false, {}}}), {8}); }

TEST(TensorSharding, AnswersWhatItIs) {
  const auto replicated = TensorSharding::fully_replicated(xyz(), 2);
  EXPECT_TRUE(replicated.is_fully_replicated());
  EXPECT_FALSE(replicated.dims[0].open);
  EXPECT_TRUE(TensorSharding::open(xyz(), 2).dims[1].open);
  EXPECT_EQ(TensorSharding::open(xyz(), 2).closed(), replicated);

  const auto sharding = of_dims({{{{0, 2, 6}, kZ}, true, 3}, {{}, true, 1}}, {{0, 1, 2}}, {kY});
  EXPECT_FALSE(sharding.is_fully_replicated());
  EXPECT_EQ(sharding.shard_count(0), 12);
  EXPECT_EQ(sharding.shard_count(1), 1);
  EXPECT_EQ(sharding.axes_used(), (AxisList{kX, kY, kZ}));
  EXPECT_EQ(sharding.axes_sharding(), (AxisList{{0, 2, 6}, kZ}));
  EXPECT_EQ(sharding.without_priorities().dims[0].priority, std::nullopt);
  EXPECT_EQ(sharding.closed().dims[0].priority, 3);
  EXPECT_EQ(sharding.closed().dims[1].priority, std::nullopt);
  EXPECT_EQ(verify_error(sharding.closed(), {5, 7}), "no error");
  EXPECT_FALSE(of_dims({{}}, {}, {kY}).is_fully_replicated());
}

TEST(TensorSharding, DefaultReducerIsSum) {
  auto annotated = of_dims({{}}, {}, {kY});
  auto defaulted = annotated;
  annotated.reducer = Reducer::kSum;
  EXPECT_EQ(annotated, defaulted);
  EXPECT_EQ(hash_value(annotated), hash_value(defaulted));
  annotated.reducer = Reducer::kMax;
  EXPECT_NE(annotated, defaulted);
  annotated.unreduced.clear();
  EXPECT_EQ(annotated.pending_reducer(), Reducer::kNone);
}

TEST(TensorSharding, ComparesMeshesByValue) {
  const auto other = std::make_shared<const Mesh>("m", xyz()->axes());
  EXPECT_EQ(TensorSharding::open(xyz(), 1), TensorSharding::open(other, 1));
  EXPECT_EQ(hash_value(TensorSharding::open(xyz(), 1)), hash_value(TensorSharding::open(other, 1)));
  EXPECT_NE(TensorSharding::open(xyz(), 1), TensorSharding::open(std::make_shared<const Mesh>("n", xyz()->axes()), 1));
}

TEST(Reducer, HasNames) {
  for (Reducer reducer : {Reducer::kSum, Reducer::kProd, Reducer::kMax, Reducer::kMin, Reducer::kAnd, Reducer::kOr}) {
    EXPECT_EQ(reducer_from_name(name(reducer)), reducer);
  }
  EXPECT_EQ(reducer_from_name("none"), std::nullopt);
  EXPECT_EQ(reducer_from_name("mean"), std::nullopt);
}

TEST(Verify, AcceptsWellFormedShardings) {
  EXPECT_EQ(verify_error(of_dims({{{{0, 2, 3}, kZ}, true, 0}, {{{0, 1, 2}}, false, 2}}, {{0, 6, 2}}, {kY}), {7, 0}),
            "no error");
  const TensorSharding maximal{std::make_shared<const Mesh>("d", std::vector<MeshAxis>{}, Dims{3}), {}, {}, {}, {}};
  EXPECT_EQ(verify_error(maximal, {4, 4}), "no error");
}

TEST(Verify, MeshAndNdim) {
  EXPECT_EQ(verify_error({}, {}), "sharding: it must have a mesh, got none");
  auto maximal = TensorSharding::open(std::make_shared<const Mesh>("d", std::vector<MeshAxis>{}, Dims{3}), 2);
  EXPECT_EQ(verify_error(maximal, {4, 4}),
            "sharding: on the single device of mesh @d no dim or axis can be named, got 2 dims, 0 replicated and 0 "
            "unreduced axes; write <@d, []>");
  EXPECT_EQ(
      verify_error(of_dims({{}}), {4, 6}),
      "sharding: it must have one entry per dim of the tensor, got 1 for shape [4, 6]; write {} for a dim that is "
      "not sharded");
}

TEST(Verify, Priorities) {
  EXPECT_EQ(verify_error(of_dims({{}, {{}, true, -1}}), {4, 4}),
            "sharding: the priority of dim 1 must not be negative, got -1; p0 is the strongest");
  EXPECT_EQ(verify_error(of_dims({{{}, false, 2}}), {4}),
            "sharding: dim 0 is closed and without axes, so it must have no priority, got {}p2; drop the priority, or "
            "open the dim: {?}");
}

TEST(Verify, AxesOfLists) {
  EXPECT_EQ(axes_error({{3, 1, 2}}), "sharding: axes must be of mesh @m, which has 3, got axis number 3");
  EXPECT_EQ(axes_error({{-1, 1, 2}}), "sharding: axes must be of mesh @m, which has 3, got axis number -1");
  EXPECT_EQ(verify_error(of_dims({{{kZ}, false, {}}, {{kY, kZ}, false, {}}}), {4, 4}),
            R"(sharding: an axis must be used once, got "z" again in dim 1; use another axis, or split this one into )"
            "sub-axes");
  EXPECT_EQ(verify_error(of_dims({{{kZ}, false, {}}}, {kZ}), {4}),
            R"(sharding: an axis must be used once, got "z" again in replicated; use another axis, or split this one )"
            "into sub-axes");
  EXPECT_EQ(
      axes_error({kZ, {0, 1, 2}, {0, 2, 3}}),
      R"(sharding: sub-axes of dim 0 that follow each other must be merged, got {"z", "x":(1)2, "x":(2)3}; write )"
      R"({"z", "x":(1)6})");
  EXPECT_EQ(axes_error({{0, 2, 3}, {0, 1, 2}}), "no error");
}

TEST(Verify, SortedLists) {
  EXPECT_EQ(verify_error(of_dims({}, {kY, kX}), {}),
            R"(sharding: replicated axes must be in the order of mesh @m, got {"y", "x"}; write {"x", "y"})");
  EXPECT_EQ(verify_error(of_dims({}, {}, {{0, 2, 2}, {0, 1, 2}}), {}),
            R"(sharding: unreduced axes must be in the order of mesh @m, got {"x":(2)2, "x":(1)2}; write )"
            R"({"x":(1)2, "x":(2)2})");
}

TEST(Verify, Digits) {
  EXPECT_EQ(
      verify_error(of_dims({{{kY}, false, {}}}, {{1, 2, 2}}), {4}),
      R"(sharding: an axis and a sub-axis of it must not both be used, got "y" and "y":(2)2; split the whole axis )"
      "into sub-axes too");
  EXPECT_EQ(
      verify_error(of_dims({{{kY}, false, {}}}, {{1, 1, 2}}), {4}),
      R"(sharding: an axis and a sub-axis of it must not both be used, got "y":(1)2 and "y"; split the whole axis )"
      "into sub-axes too");
  EXPECT_EQ(axes_error({{0, 0, 2}}),
            R"(sharding: the pre-size of a sub-axis must be at least 1, got "x":(0)2 of size 12)");
  EXPECT_EQ(axes_error({{0, 2, 1}}),
            R"(sharding: the size of a sub-axis must be greater than 1, got "x":(2)1 of size 12)");
  EXPECT_EQ(axes_error({{0, 1, 5}}),
            R"(sharding: pre-size times size of a sub-axis must divide the size of its axis, got "x":(1)5 of size 12)");
  EXPECT_EQ(
      axes_error({{0, 2, 3}, {0, 1, 4}}),
      R"(sharding: sub-axes of one axis must not overlap, got "x":(1)4 and "x":(2)3; use disjoint digits of the axis)");
  EXPECT_EQ(
      axes_error({{0, 1, 2}, {0, 3, 2}}),
      R"(sharding: sub-axes of one axis must be digits of one split of it, got "x":(1)2 and "x":(3)2 of size 12; )"
      "let the pre-size of the later be a multiple of 2");
}

TEST(Verify, ChecksInShardysOrder) {
  // The first of several errors is the one of the earlier rule: a dim's priority before its axes, those before
  // replicated.
  EXPECT_NE(verify_error(of_dims({{{kZ, kZ}, false, -1}}), {4}).find("priority"), std::string::npos);
  EXPECT_NE(verify_error(of_dims({{{kZ, kZ}, false, {}}}, {kY, kX}), {4}).find("used once"), std::string::npos);
  EXPECT_NE(verify_error(of_dims({{{{0, 1, 5}}, false, {}}}, {kY, kY}), {4}).find("used once"), std::string::npos);
}

TEST(VerifyDivisible, NamesDimShardsAndSize) {
  const auto sharding = of_dims({{}, {{kY, kZ}, false, {}}});
  EXPECT_EQ(sharding_error([&] { verify_divisible(sharding, Dims{3, 16}); }), "no error");
  EXPECT_EQ(
      sharding_error([&] { verify_divisible(sharding, Dims{3, 17}); }),
      R"(sharding: the size of dim 1 must be a multiple of its 8 shards along {"y", "z"}, got 17; pad it to 24, or )"
      "use fewer axes");
  EXPECT_EQ(
      sharding_error([&] { verify_divisible(sharding, Dims{3}); }),
      "sharding: it must have one entry per dim of the tensor, got 2 for shape [3]; write {} for a dim that is not "
      "sharded");
}

}  // namespace
}  // namespace shardwise
