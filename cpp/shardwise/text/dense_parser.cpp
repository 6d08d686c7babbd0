// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/dense_parser.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "shardwise/base/float_bits.h"
#include "shardwise/base/narrow_float.h"

namespace shardwise {
namespace {

// The elements of one `dense<...>`, in row-major order; the type follows them, so it is read first.
class DenseParser {
 public:
  DenseParser(TextReader& reader, const TensorType& type) : reader_(reader), type_(type) {}

  NdArray run(size_t body_end) {
    // MLIR prints a large constant as one string of bytes, and a splat as one element without brackets: dense<0.0>.
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
    // All strides are 0: a splat of any shape takes the memory of one element.
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
    reader_.expect(")", "after the imaginary part of a complex number");
  }

  void number_of(DType dtype) {
    const size_t start = reader_.token_start();
    if (dtype == DType::kBool && reader_.take_keyword("true")) return put(dtype, 1);
    if (dtype == DType::kBool && reader_.take_keyword("false")) return put(dtype, 0);
    const bool negative = reader_.take("-");
    const std::string_view text = reader_.take_number();
    if (text.empty()) reader_.fail_here(str("expected an element of type ", mlir_name(dtype)));
    const bool is_hex = text.starts_with("0x");
    // Decimal digits of a float are its value; hex digits are its bits, the only form that a NaN has.
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
      // Two's complement: the low bytes of 2^64 - value are those of -value at every width.
      put(dtype, negative ? uint64_t{0} - value : value);
    }
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
    // An f32 is read as a float at once: through a double it would be rounded twice. MLIR rounds all narrower types
    // from the double.
    const bool is_wide = dtype != DType::kF32;
    const auto result = is_wide ? std::from_chars(text.data(), end, value) : std::from_chars(text.data(), end, narrow);
    const bool is_in_range = dtype == DType::kF32 || nearest_float(dtype, value).has_value();
    if (result.ec != std::errc{} || result.ptr != end || !is_in_range) {
      reader_.fail_at(start, str("an element must be a number that fits ", mlir_name(dtype)), text);
    }
    if (is_narrow_float(dtype)) return put(dtype, narrow_float_bits(dtype, value).value_or(0));
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
      // A bool is 0 or 1 in memory, but MLIR's splat of true is the byte 0xFF.
      if (type_.dtype == DType::kBool) value = value != 0 ? 1 : 0;
      bytes[i] = static_cast<std::byte>(value & mask);
    }
    // The bytes of one element are a splat, as in MLIR.
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

// tensor<2xindex>, or nothing: a layout has a number per dim, of which there are at most 256.
std::optional<TensorType> parse_index_type(TextReader& reader) {
  const size_t start = reader.pos;
  std::optional<TensorType> type;
  if (reader.take_keyword("tensor") && reader.take("<")) {
    TensorType found{DType::kI64, {}};
    bool fits = true;
    if (reader.at_digit()) {
      const auto size = number_of<int64_t>(reader.take_digits());
      fits = size && *size <= 256;
      found.shape.push_back(size.value_or(0));
      reader.take("x");
    }
    if (fits && reader.take_keyword("index") && reader.take(">")) type = found;
  }
  if (!type) reader.pos = start;
  return type;
}

}  // namespace

DenseAttr parse_dense(TextReader& reader) {
  reader.expect("<", "after 'dense'");
  const size_t body = reader.pos;
  const size_t body_end = reader.text.find('>', body);  // no element contains one
  if (body_end == std::string_view::npos) reader.fail_here("expected '>' at the end of the elements");
  reader.pos = body_end + 1;
  reader.expect(":", "before the type of the elements");
  // Layouts of custom calls are tensor<Nxindex>. No value has such a type, so there is no DType for it: the numbers are
  // i64, and DenseAttr remembers the word.
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
