// SPDX-License-Identifier: Apache-2.0
//
// The C library's answer for every function that SLEEF computes, from the rows of functions.def:
//
//   math_reference(TileCode::kCbrt, 27.0, 0.0)      3.0, by std::cbrt: the stem of the row is its name there, too
#pragma once

#include <cmath>
#include <optional>

#include "shardwise/tile/table.h"

namespace shardwise {

#define REFERENCE_sleef(stem, ulp) return std::stem(x)
#define REFERENCE_sleef_large(Large, stem, ulp, helper) return std::stem(x)
#define REFERENCE_sleef_binary(stem, ulp) return std::stem(x, y)
#define REFERENCE_sleef_power(stem, ulp, of_two, Op) return std::stem(x, y)
#define REFERENCE_sleef_logistic(stem, ulp) return x >= 0 ? 1 / (1 + std::stem(-x)) : std::stem(x) / (1 + std::stem(x))
#define REFERENCE_floats(...) break
#define REFERENCE_integers(...) break
#define REFERENCE_numbers(...) break
#define REFERENCE_divides(Op) break
#define REFERENCE_complex_part(part) break
#define REFERENCE_complex_of_parts() break
#define REFERENCE_signed_numbers(...) break
#define REFERENCE_integers_and_bool(...) break
#define REFERENCE_numbers_and_bool(...) break
#define REFERENCE_numbers_and_parts(...) break
#define REFERENCE_numbers_and_bool_and_parts(...) break
#define REFERENCE_products(...) break

// Nothing for a function that loops compute.
template <class T>
std::optional<T> math_reference(TileCode code, T x, T y) {
  // clang-format off
  switch (code) {
#define FUNCTION(Code, operands, accepts, loops, ...) case TileCode::k##Code: REFERENCE_##loops;
#include "shardwise/tile/functions.def"
    default: break;
  }
  // clang-format on
  return std::nullopt;
}

}  // namespace shardwise
