// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>

#include "shardwise/base/error.h"
#include "shardwise/tile/portable.h"
#include "shardwise/tile/program.h"

namespace shardwise {
namespace {

DType complex_of(DType part) { return part == DType::kF64 ? DType::kC128 : DType::kC64; }

}  // namespace

// The parts of an input, a scalar or a function's result, each created once.
TileBuilder::Parts TileBuilder::parts(uint32_t reg) {
  // A copy, because `append` and `scalar` below grow registers_ and would leave a reference dangling.
  const Register r = registers_[reg];
  if (r.parts[0] != 0) return {r.parts[0] - 1, r.parts[1] - 1};
  const DType part = part_of_complex(r.dtype);
  Parts found{};
  if (r.origin == Origin::kScalar) {
    const Scalar value = scalars_[r.index];
    found = {scalar(Scalar::of_float(part, value.real)), scalar(Scalar::of_float(part, value.imag))};
  } else {
    found.real = append(TileCode::kRealPart, r.dtype, std::array{reg}, part);
    found.imag = append(TileCode::kImagPart, r.dtype, std::array{reg}, part);
  }
  registers_[reg].parts[0] = found.real + 1;
  registers_[reg].parts[1] = found.imag + 1;
  return found;
}

uint32_t TileBuilder::pair(uint32_t real, uint32_t imag) {
  // No instruction: a chain of sums and products stays in real registers, and only `packed` joins them.
  registers_.push_back({complex_of(dtype(real)), Origin::kPair, 0, 0, {real + 1, imag + 1}});
  return static_cast<uint32_t>(registers_.size() - 1);
}

// A scalar is as good in two parts, so it decides nothing.
bool TileBuilder::is_packed(uint32_t reg) const {
  const Register& r = registers_[reg];
  return r.origin == Origin::kInput || r.origin == Origin::kResult || (r.origin == Origin::kPair && r.widened != 0);
}

uint32_t TileBuilder::packed(uint32_t reg) {
  const Register r = registers_[reg];
  if (r.origin != Origin::kPair) return reg;
  if (r.widened == 0) {
    const std::array both{r.parts[0] - 1, r.parts[1] - 1};
    const uint32_t joined = append(TileCode::kComplex, part_of_complex(r.dtype), both, r.dtype);
    registers_[joined].parts[0] = r.parts[0];
    registers_[joined].parts[1] = r.parts[1];
    registers_[reg].widened = joined + 1;
  }
  return registers_[reg].widened - 1;
}

// A real number is the real part; the imaginary part is dropped.
uint32_t TileBuilder::convert_complex(uint32_t reg, DType to) {
  const DType from = dtype(reg);
  if (!is_complex(from)) {
    const DType part = part_of_complex(to);
    return pair(convert(reg, part), scalar(Scalar::of_float(part, 0)));
  }
  const Parts x = parts(reg);
  if (is_complex(to)) {
    const uint32_t real = convert(x.real, part_of_complex(to));
    return pair(real, convert(x.imag, part_of_complex(to)));
  }
  // As in NumPy, a number is true if either part is not 0; all other dtypes drop the imaginary part.
  if (to != DType::kBool) return convert(x.real, to);
  return emit(TileCode::kOr, {convert(x.real, to), convert(x.imag, to)}, to);
}

uint32_t TileBuilder::complex_product(Parts a, Parts b) {
  const DType part = dtype(a.real);
  const auto times = [&](uint32_t x, uint32_t y) { return emit(TileCode::kMultiply, {x, y}, part); };
  // NumPy's product. The C library would also repair infinities (annex G), which NumPy does not.
  const uint32_t real = emit(TileCode::kSubtract, {times(a.real, b.real), times(a.imag, b.imag)}, part);
  return pair(real, emit(TileCode::kAdd, {times(a.real, b.imag), times(a.imag, b.real)}, part));
}

// The real part of a number and its negated imaginary part, as conj is decomposed, are the number with another sign.
std::optional<uint32_t> TileBuilder::conjugated(uint32_t real, uint32_t imag) {
  const Node *first = maker(real, TileCode::kRealPart), *negated = maker(imag, TileCode::kNegate);
  const Node* second = negated == nullptr ? nullptr : maker(negated->operands[0], TileCode::kImagPart);
  if (first == nullptr || second == nullptr || first->operands[0] != second->operands[0]) return std::nullopt;
  const uint32_t whole = first->operands[0];
  return append(TileCode::kConjugate, dtype(whole), std::array{whole}, dtype(whole));
}

// By the real parts; where these are equal, by the imaginary parts.
uint32_t TileBuilder::complex_comparison(TileCode code, Parts a, Parts b) {
  constexpr DType kBool = DType::kBool;
  const auto compare = [&](TileCode with, uint32_t x, uint32_t y) { return emit(with, {x, y}, kBool); };
  if (code == TileCode::kNotEqual) {
    // One different part is enough. A NaN part differs from itself, which complex_extremum relies on.
    return emit(TileCode::kOr, {compare(code, a.real, b.real), compare(code, a.imag, b.imag)}, kBool);
  }
  const uint32_t is_tie = compare(TileCode::kEqual, a.real, b.real);
  const uint32_t decided = emit(TileCode::kAnd, {is_tie, compare(code, a.imag, b.imag)}, kBool);
  if (code == TileCode::kEqual) return decided;
  const bool less = code == TileCode::kLess || code == TileCode::kLessEqual;
  // The real parts compare strictly also for <= and >=: 1 + 5i <= 1 + 2i must be left to the imaginary parts.
  const uint32_t before = compare(less ? TileCode::kLess : TileCode::kGreater, a.real, b.real);
  return emit(TileCode::kOr, {before, decided}, kBool);
}

// A number with a NaN wins, the first one before the second.
uint32_t TileBuilder::complex_extremum(TileCode code, uint32_t a, uint32_t b) {
  const Parts x = parts(a), y = parts(b);
  const auto is_nan = [&](Parts z) { return complex_comparison(TileCode::kNotEqual, z, z); };
  const TileCode order = code == TileCode::kMaximum ? TileCode::kGreaterEqual : TileCode::kLessEqual;
  const uint32_t first = emit(TileCode::kOr, {complex_comparison(order, x, y), is_nan(x)}, DType::kBool);
  return emit(TileCode::kSelect, {first, a, b}, dtype(a));
}

uint32_t TileBuilder::emit_complex(TileCode code, std::span<const uint32_t> operands, DType result) {
  if (code == TileCode::kComplex) {
    if (const auto whole = conjugated(operands[0], operands[1])) return *whole;
    return pair(operands[0], operands[1]);
  }
  // The last operand, because the first one of select is the predicate.
  const DType from = dtype(operands.back()), part = part_of_complex(from);
  const auto each_part = [&](TileCode with) {
    std::array<std::array<uint32_t, 2>, 2> list{};
    for (size_t i = 0; i < operands.size(); ++i) {
      const Parts x = parts(operands[i]);
      list[0][i] = x.real;
      list[1][i] = x.imag;
    }
    const uint32_t real = emit(with, std::span(list[0]).first(operands.size()), part);
    return pair(real, emit(with, std::span(list[1]).first(operands.size()), part));
  };
  // Splitting what lies packed in memory, and joining it again, would take longer than the sum.
  const auto packed_kernel = [&] {
    std::vector<uint32_t> whole;
    for (const uint32_t reg : operands) whole.push_back(packed(reg));
    return append(code, from, whole, result);
  };
  const bool any_packed = std::ranges::any_of(operands, [&](uint32_t reg) { return is_packed(reg); });
  switch (code) {
    case TileCode::kCopy:
    case TileCode::kBitcast: return operands[0];
    case TileCode::kRealPart: return parts(operands[0]).real;
    case TileCode::kImagPart: return parts(operands[0]).imag;
    case TileCode::kAbs: {
      const Parts x = parts(operands[0]);
      // The root of a sum of squares would overflow for 3e38 + 1i, whose absolute value is finite.
      return emit(TileCode::kHypot, {x.real, x.imag}, part);
    }
    case TileCode::kNegate:
    case TileCode::kAdd:
    case TileCode::kSubtract: return any_packed ? packed_kernel() : each_part(code);
    case TileCode::kMultiply:
      return any_packed ? packed_kernel() : complex_product(parts(operands[0]), parts(operands[1]));
    case TileCode::kEqual:
    case TileCode::kNotEqual:
    case TileCode::kLess:
    case TileCode::kLessEqual:
    case TileCode::kGreater:
    case TileCode::kGreaterEqual: return complex_comparison(code, parts(operands[0]), parts(operands[1]));
    case TileCode::kMaximum:
    case TileCode::kMinimum: return complex_extremum(code, operands[0], operands[1]);
    case TileCode::kSelect: {
      const Parts x = parts(operands[1]), y = parts(operands[2]);
      const uint32_t real = emit(code, {operands[0], x.real, y.real}, part);
      return pair(real, emit(code, {operands[0], x.imag, y.imag}, part));
    }
    case TileCode::kClamp: {
      // Operands are (min, x, max). x is the first number of the first step, because a tie or two NaNs keep the first.
      const uint32_t low = complex_extremum(TileCode::kMaximum, operands[1], operands[0]);
      return complex_extremum(TileCode::kMinimum, low, operands[2]);
    }
    default: break;
  }
  if (complex_kernel(code, from) == nullptr) {
    fail<DTypeError>("tile", "the function must be defined for complex numbers", mlir_name(from),
                     "compute with the real and imaginary parts");
  }
  return packed_kernel();
}

}  // namespace shardwise
