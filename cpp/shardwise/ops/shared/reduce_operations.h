// SPDX-License-Identifier: Apache-2.0
//
// The combinations in reduce's loops: an item type, the value it is loaded as, and the operation.
//
// max and min are those of IEEE 754-2019: NaN wins (as the canonical NaN), and +0 > -0. Floats are loaded as integers
// with this order, so the combination is an integer comparison, which is exact in any order:
//
//   -0.0f → 0x80000000 → -1      +0.0f → 0      NaN → the largest key (of max), the smallest (of min)
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "shardwise/base/dtype.h"
#include "shardwise/base/error.h"
#include "shardwise/mesh/sharding.h"
#include "shardwise/tile/lines.h"

namespace shardwise::reduce_loops {

// The column of T in a LineTable.
template <class T>
constexpr int line_column() {
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? 11 : 12;
  return (std::is_signed_v<T> ? 1 : 5) + std::countr_zero(sizeof(T));
}

template <class T>
struct Plain {
  using Item = T;
  using Value = T;
  static Value load(Item item) { return item; }
  static Item store(Value value) { return value; }
};

template <class T>
struct Sum : Plain<T> {
  static constexpr FoldCode kFold = kFoldSum;
  static T identity() { return std::is_floating_point_v<T> ? static_cast<T>(-0.0) : T{}; }
  static T combine(T a, T b) { return static_cast<T>(a + b); }
};

// Unsigned items narrower than int are multiplied as unsigned, because int would overflow.
template <class T>
struct Product : Plain<T> {
  static constexpr FoldCode kFold = kFoldProduct;
  static T identity() { return T{1}; }
  static T combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a * b;
    } else {
      return static_cast<T>(uint64_t{a} * b);
    }
  }
};

template <class T>
struct And : Plain<T> {
  static constexpr FoldCode kFold = kFoldAnd;
  static T identity() { return static_cast<T>(~T{}); }
  static T combine(T a, T b) { return static_cast<T>(a & b); }
};

template <class T>
struct Or : Plain<T> {
  static constexpr FoldCode kFold = kFoldOr;
  static T identity() { return T{}; }
  static T combine(T a, T b) { return static_cast<T>(a | b); }
};

template <class T, bool kMax>
struct Extremum : Plain<T> {
  static constexpr FoldCode kFold = kMax ? kFoldMax : kFoldMin;
  static T identity() { return kMax ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max(); }
  static T combine(T a, T b) { return kMax ? std::max(a, b) : std::min(a, b); }
};

template <class T, bool kMax>
struct FloatExtremum {
  static constexpr FoldCode kFold = kMax ? kFoldMax : kFoldMin;
  using Item = T;
  using Value = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  static constexpr Value kNaN = kMax ? std::numeric_limits<Value>::max() : std::numeric_limits<Value>::min();

  static Value order(Value bits) { return bits ^ ((bits >> (8 * sizeof(T) - 1)) & std::numeric_limits<Value>::max()); }
  static Value load(Item item) { return item != item ? kNaN : order(std::bit_cast<Value>(item)); }
  static Item store(Value value) {
    return value == kNaN ? std::numeric_limits<T>::quiet_NaN() : std::bit_cast<Item>(order(value));
  }
  static Value identity() {
    return load(kMax ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity());
  }
  static Value combine(Value a, Value b) { return kMax ? std::max(a, b) : std::min(a, b); }
};

// Calls f.template operator()<Op>() with the combination of float32 or float64. Errors name `op`.
template <class F>
decltype(auto) dispatch_floats(std::string_view op, DType dtype, Reducer reducer, F&& f) {
  const auto call = [&]<class T>() -> decltype(auto) {
    switch (reducer) {
      case Reducer::kSum: return f.template operator()<Sum<T>>();
      case Reducer::kProd: return f.template operator()<Product<T>>();
      case Reducer::kMax: return f.template operator()<FloatExtremum<T, true>>();
      case Reducer::kMin: return f.template operator()<FloatExtremum<T, false>>();
      default: fail<DTypeError>(op, "and, or take integers or booleans", "floats", "compare first");
    }
  };
  return dtype == DType::kF32 ? call.template operator()<float>() : call.template operator()<double>();
}

// The same for integers and booleans. Sums, products and bits are those of unsigned items, as signed ones would
// overflow; booleans are bytes of 0 and 1, and the identity of `and`, all bits, leaves 1 as it is.
template <class F>
decltype(auto) dispatch_integers(std::string_view op, DType dtype, Reducer reducer, F&& f) {
  if (reducer == Reducer::kMax || reducer == Reducer::kMin) {
    return dispatch(dtype, [&]<class T>() -> decltype(f.template operator()<Sum<uint8_t>>()) {
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        if (reducer == Reducer::kMax) return f.template operator()<Extremum<T, true>>();
        return f.template operator()<Extremum<T, false>>();
      } else {
        fail<InternalError>(op, "the dtype must be an integer");
      }
    });
  }
  const auto call = [&]<class T>() -> decltype(auto) {
    switch (reducer) {
      case Reducer::kSum: return f.template operator()<Sum<T>>();
      case Reducer::kProd: return f.template operator()<Product<T>>();
      case Reducer::kAnd: return f.template operator()<And<T>>();
      case Reducer::kOr: return f.template operator()<Or<T>>();
      default: fail<InternalError>(op, "the reducer must be one of bits");
    }
  };
  switch (item_size(dtype)) {
    case 1: return call.template operator()<uint8_t>();
    case 2: return call.template operator()<uint16_t>();
    case 4: return call.template operator()<uint32_t>();
    default: return call.template operator()<uint64_t>();
  }
}

}  // namespace shardwise::reduce_loops
