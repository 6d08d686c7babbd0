// SPDX-License-Identifier: Apache-2.0
//
// Collectives done device by device, as a cluster would: the truth that the communicators are compared with.
//
//   std::vector<NdArray> held = on_devices(mesh, shards);      // one array per device, by logical index
//   simulate_all_reduce(mesh, held, axes, Reducer::kSum)       // the same, afterwards
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "shardwise/mesh/tiling.h"
#include "shardwise/runtime/sharded_array.h"

namespace shardwise::testing {

using Held = std::vector<NdArray>;

inline Held on_devices(const Mesh& mesh, const Shards& shards) {
  Held held;
  for (int64_t d = 0; d < mesh.device_count(); ++d) held.push_back(shards[shard_index(mesh, shards.axes(), d)]);
  return held;
}

inline bool same_elements(const NdArray& a, const NdArray& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const NdArray left = a.contiguous();
  const NdArray right = b.contiguous();
  return a.size() == 0 || std::memcmp(left.data(), right.data(), static_cast<size_t>(left.nbytes())) == 0;
}

// Whether all devices that should hold the same elements do: a faithful run computes each device separately.
inline bool replicas_agree(const ShardedArray& array) {
  const Mesh& mesh = array.mesh();
  const AxisList varying = varying_axes(array.placement());
  std::map<int64_t, NdArray> first;  // by position along `varying`: the shard of the first device there
  for (int64_t index = 0; index < mesh.device_count(); ++index) {
    const NdArray shard = array.shard(mesh.device_at(index));
    const auto [found, is_first] = first.try_emplace(shard_index(mesh, varying, index), shard);
    if (!is_first && !same_elements(found->second, shard)) return false;
  }
  return true;
}

inline void expect_held(const Mesh& mesh, const Shards& actual, const Held& expected) {
  const Held held = on_devices(mesh, actual);
  for (size_t d = 0; d < held.size(); ++d) {
    ASSERT_EQ(held[d].shape(), expected[d].shape()) << "device " << d;
    ASSERT_TRUE(same_elements(held[d], expected[d])) << "device " << d;
  }
}

// Devices of the group of `device` along `axes`, in row-major order of these axes.
inline std::vector<int64_t> group_of(const Mesh& mesh, AxisSpan axes, int64_t device) {
  std::vector<int64_t> members(static_cast<size_t>(product(axes)), -1);
  for (int64_t other = 0; other < mesh.device_count(); ++other) {
    bool same_elsewhere = true;
    for (int axis = 0; axis < mesh.ndim(); ++axis) {
      const AxisList rest = difference(AxisList{full_axis(mesh, axis)}, axes);
      same_elsewhere = same_elsewhere && shard_index(mesh, rest, other) == shard_index(mesh, rest, device);
    }
    if (same_elsewhere) members[static_cast<size_t>(shard_index(mesh, axes, other))] = other;
  }
  return members;
}

template <class T>
T combine(Reducer reducer, T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    const bool is_or = reducer == Reducer::kSum || reducer == Reducer::kMax || reducer == Reducer::kOr;
    return is_or ? a || b : a && b;
  } else {
    const auto wrap = [](auto value) { return static_cast<T>(value); };
    if (reducer == Reducer::kSum && std::is_integral_v<T>)
      return wrap(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    if (reducer == Reducer::kProd && std::is_integral_v<T>)
      return wrap(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    if (reducer == Reducer::kSum) return wrap(a + b);
    if (reducer == Reducer::kProd) return wrap(a * b);
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
      if (a == 0 && b == 0) return (reducer == Reducer::kMax) == std::signbit(a) ? b : a;
    }
    if (reducer == Reducer::kMax) return a > b ? a : b;
    if (reducer == Reducer::kMin) return a < b ? a : b;
    if constexpr (std::is_integral_v<T>) return reducer == Reducer::kAnd ? wrap(a & b) : wrap(a | b);
    return a;
  }
}

// One element of every member, from the first to the last; 16-bit floats in float32.
inline Scalar combine_elements(Reducer reducer, const std::vector<Scalar>& terms) {
  return dispatch(terms.front().dtype, [&]<class T>() {
    constexpr bool kNarrow = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
    using Wide = std::conditional_t<kNarrow, float, T>;
    const auto value_of = [](const Scalar& scalar) {
      if (is_float(scalar.dtype)) return static_cast<Wide>(scalar.real);
      return is_unsigned_integer(scalar.dtype) ? static_cast<Wide>(scalar.natural) : static_cast<Wide>(scalar.integer);
    };
    Wide sum = value_of(terms.front());
    for (size_t i = 1; i < terms.size(); ++i) sum = combine<Wide>(reducer, sum, value_of(terms[i]));
    const DType dtype = terms.front().dtype;
    if constexpr (std::is_floating_point_v<Wide>) return Scalar::of_float(dtype, static_cast<double>(sum));
    if constexpr (std::is_unsigned_v<Wide> && !std::is_same_v<Wide, bool>) return Scalar::of_uint(dtype, sum);
    return Scalar::of_int(dtype, static_cast<int64_t>(sum));
  });
}

inline void store_at(const NdArray& array, int64_t index, Scalar value) {
  store(value, array.data() + index * item_size(array.dtype()));  // row-major arrays only
}

inline Held simulate_all_reduce(const Mesh& mesh, const Held& held, AxisSpan axes, Reducer reducer) {
  Held after;
  for (int64_t d = 0; d < mesh.device_count(); ++d) {
    NdArray result = NdArray::empty(held[0].dtype(), held[0].shape());
    const auto members = group_of(mesh, axes, d);
    for (int64_t i = 0; i < result.size(); ++i) {
      std::vector<Scalar> terms;
      for (int64_t member : members) terms.push_back(held[static_cast<size_t>(member)].scalar_at(i));
      store_at(result, i, terms.size() == 1 ? terms[0] : combine_elements(reducer, terms));
    }
    after.push_back(result);
  }
  return after;
}

inline NdArray concatenate(const std::vector<NdArray>& parts, int64_t dim) {
  Dims shape = parts[0].shape();
  const int64_t size = shape[static_cast<size_t>(dim)];
  shape[static_cast<size_t>(dim)] *= static_cast<int64_t>(parts.size());
  const NdArray whole = NdArray::empty(parts[0].dtype(), shape);
  for (size_t i = 0; i < parts.size(); ++i) {
    whole.sliced(dim, static_cast<int64_t>(i) * size, size).copy_from(parts[i]);
  }
  return whole;
}

// Gathers dim `dim` along `axes`; a gather of several dims is one after another.
inline Held simulate_gather(const Mesh& mesh, const Held& held, AxisSpan axes, int64_t dim) {
  Held after;
  for (int64_t d = 0; d < mesh.device_count(); ++d) {
    std::vector<NdArray> parts;
    for (int64_t member : group_of(mesh, axes, d)) parts.push_back(held[static_cast<size_t>(member)]);
    after.push_back(concatenate(parts, dim));
  }
  return after;
}

inline Held simulate_slice(const Mesh& mesh, const Held& held, AxisSpan axes, int64_t dim) {
  Held after;
  for (int64_t d = 0; d < mesh.device_count(); ++d) {
    const NdArray& array = held[static_cast<size_t>(d)];
    const int64_t size = array.shape()[static_cast<size_t>(dim)] / product(axes);
    after.push_back(array.sliced(dim, shard_index(mesh, axes, d) * size, size));
  }
  return after;
}

inline Held simulate_shift(const Mesh& mesh, const Held& held, AxisSpan axes, int64_t offset, bool wrap) {
  Held after;
  const int64_t count = product(axes);
  for (int64_t d = 0; d < mesh.device_count(); ++d) {
    const auto members = group_of(mesh, axes, d);
    int64_t source = shard_index(mesh, axes, d) - offset;
    if (wrap) source = (source % count + count) % count;
    const DType dtype = held[0].dtype();
    after.push_back(source >= 0 && source < count ? held[static_cast<size_t>(members[static_cast<size_t>(source)])]
                                                  : NdArray::full(dtype, held[0].shape(), Scalar::of_int(dtype, 0)));
  }
  return after;
}

// ---- random meshes, axes and arrays --------------------------------------------------------------------------------

using Random = std::mt19937_64;

inline int64_t below(Random& random, int64_t end) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(end));
}

inline MeshPtr random_mesh(Random& random) {
  const std::vector<std::vector<MeshAxis>> choices = {{{"x", 4}, {"y", 2}},
                                                      {{"x", 8}, {"y", 3}},
                                                      {{"x", 6}, {"y", 4}},
                                                      {{"x", 2}, {"y", 2}, {"z", 3}},
                                                      {{"x", 1}, {"y", 12}}};
  const auto& axes = choices[static_cast<size_t>(below(random, static_cast<int64_t>(choices.size())))];
  int64_t devices = 1;
  for (const MeshAxis& axis : axes) devices *= axis.size;
  Dims ids;
  if (below(random, 2) == 0) {
    for (int64_t i = 0; i < devices; ++i) ids.push_back(i);
    std::shuffle(ids.begin(), ids.end(), random);
  }
  return std::make_shared<const Mesh>("mesh", axes, ids);
}

// The axes of a mesh, each cut into prime digits in a random order, or left whole.
inline AxisList random_digits(Random& random, const Mesh& mesh) {
  AxisList digits;
  for (int axis = 0; axis < mesh.ndim(); ++axis) {
    int64_t left = mesh.axis_size(axis);
    int64_t pre = 1;
    while (left > 1) {
      std::vector<int64_t> sizes;
      for (int64_t size = 2; size <= left; ++size) {
        if (left % size == 0) sizes.push_back(size);
      }
      const int64_t size = sizes[static_cast<size_t>(below(random, static_cast<int64_t>(sizes.size())))];
      digits.push_back({axis, pre, size});
      pre *= size;
      left /= size;
    }
  }
  return digits;
}

// Some of `digits`, in a random order.
inline AxisList some_of(Random& random, AxisList digits) {
  std::shuffle(digits.begin(), digits.end(), random);
  digits.resize(static_cast<size_t>(below(random, static_cast<int64_t>(digits.size()) + 1)));
  return digits;
}

inline NdArray random_array(Random& random, DType dtype, Dims shape) {
  NdArray array = NdArray::empty(dtype, std::move(shape));
  for (int64_t i = 0; i < array.size(); ++i) {
    const int64_t value = below(random, 2001) - 1000;
    if (is_float(dtype)) {
      const int64_t special = below(random, 40);
      const double real = special == 0   ? std::numeric_limits<double>::quiet_NaN()
                          : special == 1 ? -0.0
                          : special == 2 ? 0.0
                                         : static_cast<double>(value) / 300.0;
      store_at(array, i, Scalar::of_float(dtype, real));
    } else {
      store_at(array, i,
               is_unsigned_integer(dtype) ? Scalar::of_uint(dtype, static_cast<uint64_t>(value))
                                          : Scalar::of_int(dtype, dtype == DType::kBool ? value & 1 : value));
    }
  }
  return array;
}

// Random shards along `axes`: a stack, a stack with another order of memory, or a list.
inline Shards random_shards(Random& random, DType dtype, const AxisList& sorted_axes, const Dims& local) {
  Dims shape;
  for (const AxisRef& axis : sorted_axes) shape.push_back(axis.size);
  shape.insert(shape.end(), local.begin(), local.end());
  if (below(random, 3) != 0) return {sorted_axes, random_array(random, dtype, shape)};
  std::vector<NdArray> list;
  for (int64_t i = 0; i < product(sorted_axes); ++i) list.push_back(random_array(random, dtype, local));
  return {sorted_axes, std::move(list)};
}

inline AxisList sorted(AxisList axes) {
  std::sort(axes.begin(), axes.end());
  return axes;
}

}  // namespace shardwise::testing
