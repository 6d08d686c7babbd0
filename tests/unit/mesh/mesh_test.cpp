// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/mesh.h"

#include <functional>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

std::string mesh_error(const std::function<void()>& run) {
  try {
    run();
  } catch (const MeshError& error) {
    return error.message();
  }
  return "no error";
}

std::string error_of(std::vector<MeshAxis> axes, Dims ids = {}) {
  return mesh_error([&] { Mesh("m", std::move(axes), std::move(ids)); });
}

TEST(Mesh, NumbersDevicesRowMajor) {
  const Mesh mesh("m", {{"x", 2}, {"y", 3}}, {5, 4, 3, 2, 1, 0});
  EXPECT_EQ(mesh.ndim(), 2);
  EXPECT_EQ(mesh.device_count(), 6);
  EXPECT_EQ(mesh.axis_stride(0), 3);
  EXPECT_EQ(mesh.axis_stride(1), 1);
  EXPECT_EQ(mesh.device_at(1), 4);
  EXPECT_EQ(mesh.logical_index(4), 1);
  EXPECT_EQ(mesh.find_axis("y"), 1);
  EXPECT_EQ(mesh.find_axis("z"), std::nullopt);
  EXPECT_EQ(mesh.text(), R"(<["x"=2, "y"=3], device_ids=[5, 4, 3, 2, 1, 0]>)");
}

TEST(Mesh, DropsIotaIds) {
  const Mesh mesh("m", {{"a", 1}}, {0});
  EXPECT_TRUE(mesh.device_ids().empty());
  EXPECT_FALSE(mesh.is_maximal());
  EXPECT_EQ(mesh.text(), R"(<["a"=1]>)");
  EXPECT_EQ(Mesh("m", {{"x", 4}}, {0, 1, 2, 3}), Mesh("m", {{"x", 4}}));
}

TEST(Mesh, SharesItsIdsWithCopies) {
  const Mesh mesh("m", {{"x", 2}, {"y", 2}}, {3, 2, 1, 0}), copy = mesh;
  EXPECT_EQ(copy.shared_device_ids(), mesh.shared_device_ids());
  EXPECT_EQ(*copy.shared_device_ids(), (Dims{3, 2, 1, 0}));
  const Mesh again("m", {{"x", 2}, {"y", 2}}, {3, 2, 1, 0});
  EXPECT_NE(again.shared_device_ids(), mesh.shared_device_ids());
  EXPECT_EQ(again, mesh);
  EXPECT_EQ(Mesh("m", {{"x", 4}}).shared_device_ids(), nullptr);
}

TEST(Mesh, WithoutAxesIsEmptyOrMaximal) {
  const Mesh empty("e", {});
  EXPECT_TRUE(empty.is_empty());
  EXPECT_EQ(empty.text(), "<[]>");
  EXPECT_EQ(empty.device_at(0), 0);
  const Mesh maximal("m", {}, {3});
  EXPECT_TRUE(maximal.is_maximal());
  EXPECT_EQ(maximal.text(), "<[], device_ids=[3]>");
  EXPECT_EQ(maximal.device_at(0), 3);
  EXPECT_EQ(maximal.logical_index(3), 0);
  EXPECT_EQ(mesh_error([&] { maximal.logical_index(0); }), "mesh @m: the only device is 3, got 0");
  EXPECT_TRUE(Mesh("z", {}, {0}).is_maximal());
}

TEST(Mesh, ComparesNameDevicesAndAxes) {
  const Mesh a("a", {{"x", 4}});
  const Mesh renamed("b", {{"x", 4}});
  const Mesh reordered("a", {{"x", 4}}, {3, 2, 1, 0});
  EXPECT_NE(a, renamed);
  EXPECT_TRUE(a.same_devices(renamed));
  EXPECT_NE(a, reordered);
  EXPECT_FALSE(a.same_devices(reordered));
  EXPECT_TRUE(a.same_ignoring_order(reordered));
  EXPECT_FALSE(a.same_ignoring_order(Mesh("a", {{"x", 2}})));
  EXPECT_FALSE(Mesh("e", {}).same_ignoring_order(Mesh("m", {}, {3})));
  EXPECT_NE(a.hash(), reordered.hash());
  EXPECT_TRUE(equal(std::make_shared<const Mesh>(a), std::make_shared<const Mesh>(a)));
  EXPECT_FALSE(equal(std::make_shared<const Mesh>(a), nullptr));
}

TEST(Mesh, NamesAreQuotedWhereTextNeedsIt) {
  EXPECT_EQ(quote("a\"b\\c\n\xff"), R"("a\22b\\c\0A\FF")");
  EXPECT_EQ(symbol_text("mesh_1.x$"), "@mesh_1.x$");
  EXPECT_EQ(symbol_text("my mesh"), "@\"my mesh\"");
  EXPECT_EQ(Mesh("", {{"x", 2}}).reference(), R"(mesh<["x"=2]>)");
}

TEST(MeshError, NamesRuleValuesAndWayOut) {
  EXPECT_EQ(error_of({{"x", 0}}),
            R"(mesh: the size of an axis must be at least 1, got "x"=0; leave the axis out or give it size 1)");
  EXPECT_EQ(error_of({{"x", 2}}, {0, -1}), "mesh: device ids must not be negative, got -1");
  EXPECT_EQ(error_of({}, {0, 1}),
            "mesh: a mesh without axes must have at most one device id, got 2 ids; name the axis that holds them");
  EXPECT_EQ(error_of({{"x", 2}, {"x", 3}}),
            R"(mesh: axis names must differ, got "x" twice in ["x"=2, "x"=3]; rename one of them)");
  EXPECT_EQ(error_of({{"x", 2}, {"y", 2}}, {0, 1, 2}),
            "mesh: the number of device ids must be the product of the axis sizes, got 3 ids for the 4 devices of "
            R"(["x"=2, "y"=2]; give one id per device, or none for 0, 1, 2, …)");
  EXPECT_EQ(error_of({{"x", 2}}, {0, 2}), "mesh: device ids must be a permutation of 0 to 1, got 2");
  EXPECT_EQ(error_of({{"x", 2}}, {1, 1}), "mesh: device ids must be a permutation of 0 to 1, got 1 twice");
  EXPECT_EQ(
      error_of({{"x", int64_t{1} << 62}, {"y", 4}}),
      R"(mesh: the number of devices must fit in 63 bits, got ["x"=4611686018427387904, "y"=4]; use smaller axes)");
}

TEST(MeshError, RefusesDevicesThatAreNotThere) {
  const Mesh mesh("m", {{"x", 4}});
  EXPECT_EQ(mesh_error([&] { mesh.device_at(4); }), "mesh @m: a logical index must be from 0 to 3, got 4");
  EXPECT_EQ(mesh_error([&] { mesh.logical_index(-1); }), "mesh @m: a device id must be from 0 to 3, got -1");
}

}  // namespace
}  // namespace shardwise
