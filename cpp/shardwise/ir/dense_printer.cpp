// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/dense_printer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "shardwise/base/float_bits.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

// MLIR's default: constants with more elements print as hex.
constexpr int64_t kMaxListed = 100;
constexpr std::string_view kHexDigits = "0123456789ABCDEF";

void print_bits(std::string& out, DType dtype, uint64_t bits) {
  out += "0x";
  // All digits of the type, leading zeros too, as MLIR prints them.
  for (int64_t digit = 2 * item_size(dtype) - 1; digit >= 0; --digit) out += kHexDigits[(bits >> (4 * digit)) & 15];
}

// Parses `text` as a float of `dtype`, to check that it round-trips.
double read_back(DType dtype, std::string_view text) {
  // Rounded as the parser rounds: an f32 at once, narrower types from the double.
  if (dtype == DType::kF32) return number_of<float>(text).value_or(0);
  const double value = number_of<double>(text).value_or(0);
  return nearest_float(dtype, value).value_or(value);
}

// i2 to ui4, in the low bits of a byte.
void print_narrow_integer(std::string& out, DType dtype, std::byte element) {
  const int width = bit_width(dtype);
  const auto value = static_cast<int64_t>(std::to_integer<unsigned>(element) & ((1U << width) - 1));
  const bool negative = is_signed_integer(dtype) && (value >> (width - 1)) != 0;
  append_integer(out, negative ? value - (int64_t{1} << width) : value);
}

void print_element(std::string& out, DType dtype, const std::byte* element) {
  if (is_complex(dtype)) {
    const DType part = part_of_complex(dtype);
    out += '(';
    print_element(out, part, element);
    out += ',';
    print_element(out, part, element + item_size(part));
    out += ')';
    return;
  }
  if (is_float(dtype)) {
    const double value = real_at(dtype, element);
    if (std::isfinite(value)) return print_float(out, dtype, value);
    uint64_t bits = 0;  // not through a double: a NaN keeps its payload
    std::memcpy(&bits, element, static_cast<size_t>(item_size(dtype)));
    return print_bits(out, dtype, bits);
  }
  if (bit_width(dtype) < 8 && dtype != DType::kBool) return print_narrow_integer(out, dtype, *element);
  const Scalar scalar = load(dtype, element);
  if (dtype == DType::kBool) {
    out += scalar.integer != 0 ? "true" : "false";
  } else if (is_unsigned_integer(dtype)) {
    append_integer(out, scalar.natural);
  } else {
    append_integer(out, scalar.integer);
  }
}

void print_nested(std::string& out, const NdArray& data, size_t dim, const std::byte*& next) {
  if (dim == data.shape().size()) {
    print_element(out, data.dtype(), next);
    next += item_size(data.dtype());
    return;
  }
  out += '[';
  for (int64_t i = 0; i < data.shape()[dim]; ++i) {
    if (i > 0) out += ", ";
    print_nested(out, data, dim + 1, next);
  }
  out += ']';
}

void print_raw(std::string& out, const NdArray& data) {
  out += "\"0x";
  for (int64_t i = 0; i < data.nbytes(); ++i) {
    const auto byte = std::to_integer<unsigned>(data.data()[i]);
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
  }
  out += '"';
}

}  // namespace

void print_float(std::string& out, DType dtype, double value) {
  if (!std::isfinite(value)) return print_bits(out, dtype, float_bits(dtype, value));
  std::array<char, 64> buffer;
  char* const begin = buffer.data();
  char* const limit = begin + buffer.size();
  // MLIR's format: six digits if they read back as the same value, else the fewest that do.
  auto result = std::to_chars(begin, limit, value, std::chars_format::scientific, 6);
  std::string_view digits(begin, static_cast<size_t>(result.ptr - begin));
  if (std::bit_cast<uint64_t>(read_back(dtype, digits)) != std::bit_cast<uint64_t>(value)) {
    // Narrow floats never get here: their six digits always suffice.
    result = dtype == DType::kF64
                 ? std::to_chars(begin, limit, value, std::chars_format::scientific)
                 // The shortest digits of the float. Those of the double would be
                 // longer, 0.1f as 1.0000000149011612e-01.
                 : std::to_chars(begin, limit, static_cast<float>(value), std::chars_format::scientific);
    digits = std::string_view(begin, static_cast<size_t>(result.ptr - begin));
  }
  // MLIR wants a point in every float.
  const size_t exponent = digits.find('e');
  out.append(digits.substr(0, exponent));
  if (digits.find('.') == std::string_view::npos) out += ".0";
  out.append(digits.substr(exponent));
}

void print_dense(std::string& out, const DenseAttr& attribute) {
  const NdArray& data = attribute.data;
  out += "dense<";
  if (data.size() > 0 && data.is_splat()) {
    print_element(out, data.dtype(), data.data());
  } else if (data.size() > kMaxListed) {
    print_raw(out, data.contiguous());
  } else if (data.size() > 0) {
    const NdArray rows = data.contiguous();
    const std::byte* next = rows.data();
    print_nested(out, rows, 0, next);
  }
  std::string type = TensorType{data.dtype(), data.shape()}.text();
  // The numbers are stored as i64: tensor<2xi64> becomes tensor<2xindex>.
  if (attribute.is_index) type.replace(type.rfind(mlir_name(data.dtype())), mlir_name(data.dtype()).size(), "index");
  out.append("> : ").append(type);
}

}  // namespace shardwise
