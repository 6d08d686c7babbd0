// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/dense_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "shardwise/base/narrow_float.h"

namespace shardwise {
namespace {

constexpr int64_t kMaxListed = 100;
constexpr std::string_view kHexDigits = "0123456789ABCDEF";

// ---- printing ------------------------------------------------------------------------------------------------------

uint64_t bits_of(DType dtype, double value) {
  if (is_narrow_float(dtype)) return narrow_float_bits(dtype, value).value_or(0);
  std::array<std::byte, 8> bytes{};
  store(Scalar::of_float(dtype, value), bytes.data());
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return bits;
}

void print_bits(std::string& out, DType dtype, uint64_t bits) {
  out += "0x";
  for (int64_t digit = 2 * item_size(dtype) - 1; digit >= 0; --digit) out += kHexDigits[(bits >> (4 * digit)) & 15];
}

// What `text` reads back as, in `dtype`.
double read_back(DType dtype, std::string_view text) {
  double value = 0;
  if (dtype == DType::kF64) {
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  float narrow = 0;
  std::from_chars(text.data(), text.data() + text.size(), narrow);
  if (is_narrow_float(dtype)) return narrow_float_value(dtype, narrow_float_bits(dtype, narrow).value_or(0));
  if (dtype == DType::kF16) return static_cast<float>(Float16(narrow));
  if (dtype == DType::kBF16) return static_cast<float>(BFloat16(narrow));
  return narrow;
}

double real_at(DType dtype, const std::byte* element) {
  if (is_narrow_float(dtype)) return narrow_float_value(dtype, std::to_integer<uint8_t>(*element));
  return load(dtype, element).real;
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

// ---- parsing -------------------------------------------------------------------------------------------------------

// The elements of one `dense<...>`, in row-major order; the type stands behind them, so it is read first.
class DenseParser {
 public:
  DenseParser(TextReader& reader, const TensorType& type) : reader_(reader), type_(type) {}

  NdArray run(size_t body_end) {
    if (reader_.peek("\"")) return raw();
    if (reader_.peek(">")) {
      if (type_.size() != 0) reader_.fail_here(str("expected elements for ", type_.text()));
      return NdArray::empty(type_.dtype, type_.shape);
    }
    if (!reader_.peek("[")) return splat();
    // Every element takes at least one character of the text, so a huge shape cannot make us allocate.
    if (type_.size() > static_cast<int64_t>(body_end - reader_.pos)) wrong_shape();
    NdArray data = NdArray::empty(type_.dtype, type_.shape);
    next_ = data.data();
    list(0);
    return data;
  }

 private:
  [[noreturn]] void wrong_shape() { reader_.fail_here(str("the elements must have the shape of ", type_.text())); }

  NdArray splat() {
    std::array<std::byte, 16> bytes{};
    next_ = bytes.data();
    element();
    return splat_of(bytes.data());
  }

  NdArray splat_of(const std::byte* bytes) const {
    NdArray one = NdArray::empty(type_.dtype, {1});
    std::memcpy(one.data(), bytes, static_cast<size_t>(item_size(type_.dtype)));
    if (type_.size() == 0) return NdArray::empty(type_.dtype, type_.shape);
    return NdArray(type_.dtype, type_.shape, Dims(type_.shape.size(), 0), one.data(), one.owner());
  }

  void list(size_t dim) {
    if (dim == type_.shape.size()) return element();
    reader_.expect("[", str("before the ", type_.shape[dim], " elements of dim ", dim));
    for (int64_t i = 0; i < type_.shape[dim]; ++i) {
      if (i > 0 && !reader_.take(",")) wrong_shape();
      list(dim + 1);
    }
    if (!reader_.take("]")) wrong_shape();
  }

  void element() {
    if (!is_complex(type_.dtype)) return number_of(type_.dtype);
    reader_.expect("(", "before the real part of a complex number");
    number_of(part_of_complex(type_.dtype));
    reader_.expect(",", "between the parts of a complex number");
    number_of(part_of_complex(type_.dtype));
    reader_.expect(")", "behind the imaginary part of a complex number");
  }

  void number_of(DType dtype) {
    reader_.skip_space();
    const size_t start = reader_.pos;
    if (dtype == DType::kBool && reader_.take_keyword("true")) return put(dtype, 1);
    if (dtype == DType::kBool && reader_.take_keyword("false")) return put(dtype, 0);
    const bool negative = reader_.take("-");
    const std::string_view text = number();
    if (text.empty()) reader_.fail_here(str("expected an element of type ", mlir_name(dtype)));
    const bool is_hex = text.starts_with("0x");
    if (is_float(dtype) && !is_hex) {
      real(dtype, start, reader_.text.substr(start, reader_.pos - start));
    } else {
      uint64_t value = 0;
      const char* end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data() + (is_hex ? 2 : 0), end, value, is_hex ? 16 : 10);
      if (error != std::errc{} || stop != end || !fits(dtype, value, negative)) {
        reader_.fail_at(start, str("an element must be a number that fits ", mlir_name(dtype)),
                        reader_.text.substr(start, reader_.pos - start));
      }
      put(dtype, negative ? uint64_t{0} - value : value);
    }
  }

  std::string_view number() {
    const std::string_view& text = reader_.text;
    const size_t start = reader_.pos;
    auto is_number_char = [&](size_t i) {
      const char c = text[i];
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.') return true;
      return (c == '+' || c == '-') && i > start && (text[i - 1] == 'e' || text[i - 1] == 'E');
    };
    if (start < text.size() && text[start] >= '0' && text[start] <= '9') {
      while (reader_.pos < text.size() && is_number_char(reader_.pos)) ++reader_.pos;
    }
    return text.substr(start, reader_.pos - start);
  }

  // As in MLIR: any value that the width holds, signed or not; bits of a float must be given without a sign.
  static bool fits(DType dtype, uint64_t value, bool negative) {
    const int width = bit_width(dtype);
    const uint64_t largest = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    if (!negative) return value <= largest;
    return is_signed_integer(dtype) && value <= (uint64_t{1} << (width - 1));
  }

  void real(DType dtype, size_t start, std::string_view text) {
    const char* end = text.data() + text.size();
    double value = 0;
    float narrow = 0;
    const bool is_wide = dtype == DType::kF64 || is_narrow_float(dtype);
    const auto result = is_wide ? std::from_chars(text.data(), end, value) : std::from_chars(text.data(), end, narrow);
    const std::optional<uint8_t> bits =
        is_narrow_float(dtype) ? narrow_float_bits(dtype, value) : std::optional<uint8_t>(uint8_t{0});
    if (result.ec != std::errc{} || result.ptr != end || !bits) {
      reader_.fail_at(start, str("an element must be a number that fits ", mlir_name(dtype)), text);
    }
    if (is_narrow_float(dtype)) return put(dtype, *bits);
    store(Scalar::of_float(dtype, is_wide ? value : narrow), next_);
    next_ += item_size(dtype);
  }

  // Little-endian hosts only, as base/ has it; an element of less than a byte stands in the low bits of one.
  void put(DType dtype, uint64_t bits) {
    if (bit_width(dtype) < 8) bits &= (uint64_t{1} << bit_width(dtype)) - 1;
    std::memcpy(next_, &bits, static_cast<size_t>(item_size(dtype)));
    next_ += item_size(dtype);
  }

  NdArray raw() {
    const size_t start = reader_.pos;
    const std::string text = reader_.take_string();
    if (!text.starts_with("0x") || text.size() % 2 != 0)
      reader_.fail_at(start, "raw bytes must be \"0x\" and hex digits");
    std::vector<std::byte> bytes(text.size() / 2 - 1);
    const int width = bit_width(type_.dtype);
    const unsigned mask = width < 8 ? (1U << width) - 1 : 0xFFU;
    for (size_t i = 0; i < bytes.size(); ++i) {
      unsigned value = 0;
      const char* digits = text.data() + 2 * i + 2;
      const auto result = std::from_chars(digits, digits + 2, value, 16);
      if (result.ptr != digits + 2) reader_.fail_at(start, "raw bytes must be \"0x\" and hex digits");
      if (type_.dtype == DType::kBool) value = value != 0 ? 1 : 0;
      bytes[i] = static_cast<std::byte>(value & mask);
    }
    if (bytes.size() == static_cast<size_t>(item_size(type_.dtype)) && type_.size() != 1) return splat_of(bytes.data());
    if (bytes.size() != static_cast<size_t>(type_.nbytes())) {
      reader_.fail_at(start, str("raw bytes must be those of ", type_.text()), str(bytes.size(), " bytes"));
    }
    NdArray data = NdArray::empty(type_.dtype, type_.shape);
    if (!bytes.empty()) std::memcpy(data.data(), bytes.data(), bytes.size());
    return data;
  }

  TextReader& reader_;
  const TensorType& type_;
  std::byte* next_ = nullptr;
};

}  // namespace

double float_of_bits(DType dtype, uint64_t bits) {
  std::array<std::byte, 8> bytes{};
  std::memcpy(bytes.data(), &bits, bytes.size());
  return real_at(dtype, bytes.data());
}

std::optional<double> nearest_float(DType dtype, double value) {
  if (!is_narrow_float(dtype)) return float_of_bits(dtype, bits_of(dtype, value));
  const std::optional<uint8_t> bits = narrow_float_bits(dtype, value);
  return bits ? std::optional(narrow_float_value(dtype, *bits)) : std::nullopt;
}

void print_float(std::string& out, DType dtype, double value) {
  if (!std::isfinite(value)) return print_bits(out, dtype, bits_of(dtype, value));
  std::array<char, 64> buffer;
  char* const begin = buffer.data();
  char* const limit = begin + buffer.size();
  auto result = std::to_chars(begin, limit, value, std::chars_format::scientific, 6);
  std::string_view digits(begin, static_cast<size_t>(result.ptr - begin));
  if (std::bit_cast<uint64_t>(read_back(dtype, digits)) != std::bit_cast<uint64_t>(value)) {
    // Narrow floats never get here: their six digits always suffice.
    result = dtype == DType::kF64
                 ? std::to_chars(begin, limit, value, std::chars_format::scientific)
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
  if (attribute.is_index) type.replace(type.rfind(mlir_name(data.dtype())), mlir_name(data.dtype()).size(), "index");
  out.append("> : ").append(type);
}

namespace {

// tensor<2xindex>, or nothing: a layout has a number per dim, of which there are at most 256.
std::optional<TensorType> parse_index_type(TextReader& reader) {
  const size_t start = reader.pos;
  std::optional<TensorType> type;
  if (reader.take_keyword("tensor") && reader.take("<")) {
    TensorType found{DType::kI64, {}};
    bool fits = true;
    if (reader.at_digit()) {
      int64_t size = 0;
      const std::string_view digits = reader.take_digits();
      fits = std::from_chars(digits.data(), digits.data() + digits.size(), size).ec == std::errc{} && size <= 256;
      found.shape.push_back(size);
      reader.take("x");
    }
    if (fits && reader.take_keyword("index") && reader.take(">")) type = found;
  }
  if (!type) reader.pos = start;
  return type;
}

}  // namespace

DenseAttr parse_dense(TextReader& reader) {
  reader.expect("<", "behind 'dense'");
  const size_t body = reader.pos;
  const size_t body_end = reader.text.find('>', body);  // no element contains one
  if (body_end == std::string_view::npos) reader.fail_here("expected '>' at the end of the elements");
  reader.pos = body_end + 1;
  reader.expect(":", "before the type of the elements");
  const std::optional<TensorType> index_type = parse_index_type(reader);
  const TensorType& type = index_type ? *index_type : reader.context().type(reader.parse_type());
  if (type.dtype == DType::kToken) reader.fail_here("the elements of a constant must be numbers");
  const size_t end = reader.pos;
  reader.pos = body;
  NdArray data = DenseParser(reader, type).run(body_end);
  reader.expect(">", "at the end of the elements");
  reader.pos = end;
  return {std::move(data), index_type.has_value()};
}

}  // namespace shardwise
