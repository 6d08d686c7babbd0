// SPDX-License-Identifier: Apache-2.0
//
// Elements that are moved and never computed with are told apart only by their size, whatever their dtype:
//
//   dispatch_moved(item_size(DType::kC128), [&]<class T>() { copy_all<T>(to, from); });      T has 16 bytes
#pragma once

#include <complex>
#include <cstdint>
#include <string>

#include "shardwise/base/error.h"

namespace shardwise {

template <class F>
decltype(auto) dispatch_moved(int64_t item_size, F&& f) {
  switch (item_size) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    case 8: return f.template operator()<uint64_t>();
    case 16: return f.template operator()<std::complex<double>>();  // a type that xtensor takes
    default:
      fail<InternalError>("dispatch_moved", "an item must have 1, 2, 4, 8 or 16 bytes", std::to_string(item_size));
  }
}

}  // namespace shardwise
