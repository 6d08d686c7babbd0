// SPDX-License-Identifier: Apache-2.0
#include "shardwise/tile/program.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>

#include "shardwise/base/error.h"
#include "shardwise/tile/portable.h"

namespace shardwise {
namespace {

static_assert(kTileDTypeCount == static_cast<int>(DType::kC128) + 1);

// The dtypes that a code accepts.
enum class Accepts : uint8_t { kAll, kReals, kFloats, kSigned, kIntegers, kNumbers, kIntegersAndBool };

struct AcceptedDTypes {
  std::string_view text;
  bool (*contain)(DType dtype);
};

// StableHLO's float ops accept complex numbers, except those that order or round.
constexpr std::array<AcceptedDTypes, 7> kAccepted{{
    {"of any dtype", [](DType) { return true; }},
    {"floats", [](DType dtype) { return is_float(dtype); }},
    {"floats", [](DType dtype) { return is_inexact(dtype); }},
    {"signed integers or floats", [](DType dtype) { return is_signed_integer(dtype) || is_inexact(dtype); }},
    {"integers", [](DType dtype) { return is_integer(dtype); }},
    {"integers or floats", [](DType dtype) { return dtype != DType::kBool; }},
    {"booleans or integers", [](DType dtype) { return is_integer(dtype) || dtype == DType::kBool; }},
}};
static_assert(static_cast<size_t>(Accepts::kIntegersAndBool) + 1 == kAccepted.size());

struct CodeInfo {
  std::string_view name;
  uint8_t operands;
  Accepts accepts;
};

constexpr std::array<CodeInfo, kTileCodeCount> kCodes{{
#define FUNCTION(Code, operands, accepts, ...) {#Code, operands, Accepts::accepts},
#define TILE_ONLY(Code, operands, accepts, ...) {#Code, operands, Accepts::accepts},
#include "shardwise/tile/functions.def"
}};

const CodeInfo& info(TileCode code) { return kCodes[static_cast<size_t>(code)]; }
const AcceptedDTypes& accepted(TileCode code) { return kAccepted[static_cast<size_t>(info(code).accepts)]; }
std::string subject(TileCode code) { return "tile." + std::string(info(code).name); }
bool is_narrow(DType dtype) { return computed_in(dtype) != dtype; }
// Codes that move bits without arithmetic, so that nothing needs widening.
bool moves_bits(TileCode code) {
  return code == TileCode::kCopy || code == TileCode::kBitcast || code == TileCode::kSelect;
}

// The result dtype of a code; none when the caller chooses it.
std::optional<DType> result_dtype(TileCode code, DType dtype) {
  if (code >= TileCode::kEqual && code <= TileCode::kGreaterEqual) return DType::kBool;
  if (code == TileCode::kIsFinite) return DType::kBool;
  // Keys are as wide as the dtype of the arithmetic: f16 and narrower floats are widened to f32 first.
  if (code == TileCode::kTotalOrderKey) return dtype == DType::kF64 ? DType::kI64 : DType::kI32;
  if (code == TileCode::kConvert || code == TileCode::kBitcast) return std::nullopt;
  const bool is_real = code == TileCode::kAbs || code == TileCode::kRealPart || code == TileCode::kImagPart;
  if (is_complex(dtype) && is_real) return part_of_complex(dtype);
  if (code == TileCode::kComplex) return dtype == DType::kF64 ? DType::kC128 : DType::kC64;
  return dtype;
}

}  // namespace

int operand_count(TileCode code) { return info(code).operands; }

bool accepts(TileCode code, DType dtype) { return accepted(code).contain(dtype); }
std::string_view accepted_dtypes(TileCode code) { return accepted(code).text; }

uint32_t TileBuilder::input(DType dtype) {
  registers_.push_back({dtype, Origin::kInput, static_cast<uint32_t>(inputs_.size())});
  inputs_.push_back(dtype);
  return static_cast<uint32_t>(registers_.size() - 1);
}

uint32_t TileBuilder::scalar(Scalar value) {
  registers_.push_back({value.dtype, Origin::kScalar, static_cast<uint32_t>(scalars_.size())});
  scalars_.push_back(value);
  return static_cast<uint32_t>(registers_.size() - 1);
}

void TileBuilder::output(uint32_t reg) { outputs_.push_back(is_complex(dtype(reg)) ? packed(reg) : reg); }

uint32_t TileBuilder::append(TileCode code, DType from, std::span<const uint32_t> operands, DType result) {
  Node node{code, from, result, static_cast<uint32_t>(registers_.size()), {}, static_cast<uint8_t>(operands.size())};
  std::copy(operands.begin(), operands.end(), node.operands);
  registers_.push_back({result, Origin::kResult, static_cast<uint32_t>(nodes_.size())});
  nodes_.push_back(node);
  return node.result;
}

const TileBuilder::Node* TileBuilder::maker(uint32_t reg, TileCode code) const {
  const Register& r = registers_[reg];
  return r.origin == Origin::kResult && nodes_[r.index].code == code ? &nodes_[r.index] : nullptr;
}

const Scalar* TileBuilder::scalar_of(uint32_t reg) const {
  return registers_[reg].origin == Origin::kScalar ? &scalars_[registers_[reg].index] : nullptr;
}

// The value of a narrow number in the dtype of its arithmetic, created once per register.
uint32_t TileBuilder::widen(uint32_t reg) {
  if (!is_narrow(dtype(reg))) return reg;
  if (registers_[reg].widened == 0) {
    const uint32_t wide = append(TileCode::kConvert, dtype(reg), std::array{reg}, computed_in(dtype(reg)));
    registers_[reg].widened = wide + 1;
  }
  return registers_[reg].widened - 1;
}

// A float as a narrow integer in the dtype of its arithmetic, with the largest and smallest value of the narrow one.
uint32_t TileBuilder::saturated(uint32_t reg, DType to) {
  const DType wide = computed_in(to);
  const uint32_t whole = append(TileCode::kConvert, dtype(reg), std::array{reg}, wide);
  const int64_t count = int64_t{1} << bit_width(to), low = is_signed_integer(to) ? -count / 2 : 0;
  const std::array bounded{scalar(Scalar::of_int(wide, low)), whole, scalar(Scalar::of_int(wide, low + count - 1))};
  return append(TileCode::kClamp, wide, bounded, wide);
}

uint32_t TileBuilder::convert(uint32_t reg, DType to) {
  if (dtype(reg) == to) return reg;
  if (is_complex(dtype(reg)) || is_complex(to)) return convert_complex(reg, to);
  uint32_t from = widen(reg);
  if (is_narrow(to)) {
    // Only floats have conversion kernels to narrow floats. Integers go through float32, as in NumPy.
    if (is_float(to) && !is_float(dtype(from))) from = convert(from, DType::kF32);
    if (!is_float(to)) from = is_float(dtype(from)) ? saturated(from, to) : convert(from, computed_in(to));
  }
  return dtype(from) == to ? from : append(TileCode::kConvert, dtype(from), std::array{from}, to);
}

// Integers of less than 8 bits in ops that count bits or look at the highest one: as unsigned bytes.
uint32_t TileBuilder::emit_bits(TileCode code, std::span<const uint32_t> operands, DType dtype) {
  constexpr DType kByte = DType::kU8;
  if (code == TileCode::kShiftRightArithmetic) {  // the sign bit, also of an unsigned integer, is repeated
    const DType signed_dtype = dtype == DType::kU2 ? DType::kI2 : DType::kI4;
    const uint32_t x = emit(TileCode::kBitcast, {operands[0]}, signed_dtype);
    const uint32_t shifted = emit(code, {x, emit(TileCode::kBitcast, {operands[1]}, signed_dtype)}, signed_dtype);
    return emit(TileCode::kBitcast, {shifted}, dtype);
  }
  // -1 of i4 is 0x0F as an unsigned byte, with four ones. Widened to i8 it would be 0xFF, with eight.
  const DType unsigned_dtype = bit_width(dtype) == 2 ? DType::kU2 : DType::kU4;
  std::vector<uint32_t> bytes;
  for (const uint32_t reg : operands) {
    bytes.push_back(widen(dtype == unsigned_dtype ? reg : emit(TileCode::kBitcast, {reg}, unsigned_dtype)));
  }
  uint32_t result = append(code, kByte, bytes, kByte);
  if (code == TileCode::kCountLeadingZeros) {
    const uint32_t unused = scalar(Scalar::of_int(kByte, 8 - bit_width(dtype)));
    result = append(TileCode::kSubtract, kByte, std::array{result, unused}, kByte);
  }
  return convert(result, dtype);
}

// An or of one number shifted to the left and to the right by constants that add up to its width, as random generators
// write it. One instruction does the work of three.
std::optional<uint32_t> TileBuilder::rotation(std::span<const uint32_t> operands, DType dtype) {
  if (dtype != DType::kU32 && dtype != DType::kU64) return std::nullopt;
  // A shift by a constant, which is a scalar register; remove_dead drops the two shifts unless something else reads
  // them.
  const auto shifted = [&](uint32_t reg, TileCode code) -> const Node* {
    const Node* shift = maker(reg, code);
    return shift != nullptr && scalar_of(shift->operands[1]) != nullptr ? shift : nullptr;
  };
  for (const size_t first : {0, 1}) {
    const Node* left = shifted(operands[first], TileCode::kShiftLeft);
    const Node* right = shifted(operands[1 - first], TileCode::kShiftRightLogical);
    if (left == nullptr || right == nullptr || left->operands[0] != right->operands[0]) continue;
    const auto count = [&](const Node& node) { return scalar_of(node.operands[1])->natural; };
    const auto width = static_cast<uint64_t>(bit_width(dtype));
    if (count(*left) == 0 || count(*left) >= width || count(*left) + count(*right) != width) continue;
    return append(TileCode::kRotateLeft, dtype, std::array{left->operands[0], left->operands[1]}, dtype);
  }
  return std::nullopt;
}

// The sign of a float of 16 bits is its first bit, which needs no float32.
std::optional<uint32_t> TileBuilder::sign_of_half(TileCode code, std::span<const uint32_t> operands, DType dtype) {
  if (dtype != DType::kF16 && dtype != DType::kBF16) return std::nullopt;
  constexpr DType kBits = DType::kU16;
  if (code == TileCode::kNegate) {
    return append(TileCode::kXor, kBits, std::array{operands[0], scalar(Scalar::of_int(kBits, 0x8000))}, dtype);
  }
  if (code != TileCode::kAbs) return std::nullopt;
  return append(TileCode::kAnd, kBits, std::array{operands[0], scalar(Scalar::of_int(kBits, 0x7FFF))}, dtype);
}

uint32_t TileBuilder::emit(TileCode code, std::span<const uint32_t> operands, DType result) {
  check_internal(operands.size() == info(code).operands, "a tile instruction has the wrong number of operands");
  for (uint32_t reg : operands) check_internal(reg < registers_.size(), "a tile operand is no register");
  const bool is_select = code == TileCode::kSelect;
  const DType from = dtype(operands.back());
  if (!accepts(code, from)) {
    fail<DTypeError>(subject(code), "operands must be " + std::string(accepted_dtypes(code)), mlir_name(from));
  }
  for (size_t i = is_select ? 1 : 0; i < operands.size(); ++i) {
    if (dtype(operands[i]) != from) {
      fail<DTypeError>(subject(code), "operands must have one dtype",
                       std::string(mlir_name(dtype(operands[i]))) + " and " + std::string(mlir_name(from)));
    }
  }
  if (is_select && dtype(operands[0]) != DType::kBool) {
    fail<DTypeError>(subject(code), "the predicate must be i1", mlir_name(dtype(operands[0])));
  }
  check_internal(result_dtype(code, from).value_or(result) == result, "a tile instruction's result has another dtype");
  if (code == TileCode::kBitcast) check_internal(bit_width(from) == bit_width(result), "a bitcast keeps the width");
  if (code == TileCode::kConvert) return convert(operands[0], result);
  if (is_complex(from) || is_complex(result)) return emit_complex(code, operands, result);
  if (code == TileCode::kRealPart) return operands[0];
  if (code == TileCode::kImagPart) return scalar(Scalar::of_float(result, 0));
  if (code == TileCode::kOr) {
    if (const auto rotated = rotation(operands, from)) return *rotated;
  }
  if (const auto sign = sign_of_half(code, operands, from)) return *sign;
  // The smaller one of a bound and of the larger one of two: one instruction instead of two, with the same bits.
  for (size_t i = 0; code == TileCode::kMinimum && !is_narrow(from) && i < 2; ++i) {
    const Node* maximum = maker(operands[i], TileCode::kMaximum);
    if (maximum == nullptr) continue;
    const std::array bounded{maximum->operands[1], maximum->operands[0], operands[1 - i]};
    return append(TileCode::kClamp, from, bounded, result);
  }
  if (!is_narrow(from) || moves_bits(code)) return append(code, from, operands, result);
  const bool looks_at_bits = code == TileCode::kPopcnt || code == TileCode::kCountLeadingZeros ||
                             code == TileCode::kShiftRightLogical ||
                             (code == TileCode::kShiftRightArithmetic && is_unsigned_integer(from));
  if (looks_at_bits) return emit_bits(code, operands, from);

  // Computed in f32, i8 or ui8 and narrowed at once, also inside a longer chain, so that fusion changes no bit.
  std::array<uint32_t, 3> wide{};
  for (size_t i = 0; i < operands.size(); ++i) wide[i] = widen(operands[i]);
  const DType wide_result = result == from ? computed_in(from) : result;
  const uint32_t value = append(code, computed_in(from), std::span(wide).first(operands.size()), wide_result);
  return convert(value, result);
}

namespace {

constexpr uint32_t kNoSlot = UINT32_MAX;

// The column of the table with kernels for a dtype; of dtypes without a column, the one that moves items of their size.
uint8_t column_of(DType dtype) {
  if (dtype <= DType::kC128) return static_cast<uint8_t>(dtype);
  return static_cast<uint8_t>(item_size(dtype) == 1 ? DType::kU8 : DType::kU64);
}

// Physical slots of the temporaries. A slot is free again after the last read of its register.
class SlotAllocator {
 public:
  explicit SlotAllocator(size_t first) : first_(first) {}
  uint16_t take(int64_t bytes) {
    // By item size, because a slot has room for one tile of items of that size.
    std::vector<uint16_t>& free = free_[bytes];
    if (!free.empty()) {
      const uint16_t slot = free.back();
      free.pop_back();
      return slot;
    }
    sizes_.push_back(bytes);
    return static_cast<uint16_t>(first_ + sizes_.size() - 1);
  }
  void give(uint16_t slot) { free_[sizes_[slot - first_]].push_back(slot); }
  bool owns(uint16_t slot) const { return slot >= first_; }
  int64_t bytes(uint16_t slot) const { return sizes_[slot - first_]; }
  std::vector<int64_t> sizes() && { return std::move(sizes_); }

 private:
  size_t first_;
  std::vector<int64_t> sizes_;
  std::map<int64_t, std::vector<uint16_t>> free_;
};

}  // namespace

// Drops instructions that no output needs.
void TileBuilder::remove_dead() {
  std::vector<bool> live(registers_.size(), false);
  for (uint32_t reg : outputs_) live[reg] = true;
  // One pass from the end suffices, because operands are older than their instruction.
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (!live[nodes_[i].result]) continue;
    for (size_t k = 0; k < nodes_[i].operand_count; ++k) live[nodes_[i].operands[k]] = true;
  }
  std::erase_if(nodes_, [&](const Node& node) { return !live[node.result]; });
}

// Slots that are fixed before temporaries are allocated. A result is computed directly into its first output.
std::vector<uint32_t> TileBuilder::fixed_slots() const {
  std::vector<uint32_t> slots(registers_.size(), kNoSlot);
  const size_t scalar_begin = inputs_.size() + outputs_.size();
  for (size_t reg = 0; reg < registers_.size(); ++reg) {
    const Register& r = registers_[reg];
    if (r.origin == Origin::kInput) slots[reg] = r.index;
    if (r.origin == Origin::kScalar) slots[reg] = static_cast<uint32_t>(scalar_begin) + r.index;
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (slots[outputs_[i]] == kNoSlot) slots[outputs_[i]] = static_cast<uint32_t>(inputs_.size() + i);
  }
  return slots;
}

// Gives every other register a temporary slot until its last read, and lists the instructions.
void TileBuilder::schedule(TileProgram& program, std::vector<uint32_t>& slots) const {
  std::vector<size_t> last_use(registers_.size(), 0);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (size_t k = 0; k < nodes_[i].operand_count; ++k) last_use[nodes_[i].operands[k]] = i;
  }
  SlotAllocator temporaries(inputs_.size() + outputs_.size() + scalars_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const auto release = [&](bool same_size) {
      for (size_t k = 0; k < node.operand_count; ++k) {
        const uint32_t reg = node.operands[k];
        const auto slot = static_cast<uint16_t>(slots[reg]);
        if (!temporaries.owns(slot) || last_use[reg] != i) continue;
        if ((temporaries.bytes(slot) == item_size(node.to)) != same_size) continue;
        // x * x names its operand twice, and the slot must enter the free list once.
        if (std::find(node.operands, node.operands + k, reg) == node.operands + k) temporaries.give(slot);
      }
    };
    // A kernel may overwrite an operand of the same item size, but no other one.
    release(true);
    if (slots[node.result] == kNoSlot) slots[node.result] = temporaries.take(item_size(node.to));
    release(false);
    const auto out = static_cast<uint16_t>(slots[node.result]);
    // Kernels get three addresses; those that the code does not use must still be slots that exist.
    std::array<uint16_t, 3> operands{out, out, out};
    for (size_t k = 0; k < node.operand_count; ++k) {
      operands[k] = static_cast<uint16_t>(slots[node.operands[k]]);
      const Register& r = registers_[node.operands[k]];
      if (r.origin == Origin::kInput) program.input_last_use_[r.index] = static_cast<uint32_t>(i);
    }
    program.instructions_.push_back({node.code, column_of(node.from), column_of(node.to), out, operands[0], operands[1],
                                     operands[2], portable_kernel(node.code, node.from, node.to)});
  }
  program.temporary_bytes_ = std::move(temporaries).sizes();
}

// An output that is also an input, a scalar, or another output needs a copy.
void TileBuilder::bind_outputs(TileProgram& program, const std::vector<uint32_t>& slots) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const uint32_t reg = outputs_[i];
    const auto own = static_cast<uint16_t>(inputs_.size() + i);
    const uint8_t column = column_of(dtype(reg));
    auto written_at = static_cast<uint32_t>(program.instructions_.size());
    if (slots[reg] == own) {
      const auto writes = [&](const TileProgram::Instruction& instruction) { return instruction.out == own; };
      const auto it = std::find_if(program.instructions_.begin(), program.instructions_.end(), writes);
      written_at = static_cast<uint32_t>(it - program.instructions_.begin());
    } else {
      const Register& r = registers_[reg];
      if (r.origin == Origin::kInput) program.input_last_use_[r.index] = written_at;
      const auto from = static_cast<uint16_t>(slots[reg]);
      program.instructions_.push_back({TileCode::kCopy, column, column, own, from, own, own,
                                       portable_kernel(TileCode::kCopy, dtype(reg), dtype(reg))});
    }
    program.outputs_.push_back({dtype(reg), written_at});
  }
}

TileProgram TileBuilder::build() && {
  check_internal(!outputs_.empty(), "a tile program needs an output");
  // Slots are numbered in 16 bits, and there are at most as many as registers and outputs.
  check_internal(registers_.size() + outputs_.size() < UINT16_MAX, "a tile program is too long");
  remove_dead();
  fuse_pairs();
  remove_dead();
  TileProgram program;
  program.input_last_use_.assign(inputs_.size(), 0);
  std::vector<uint32_t> slots = fixed_slots();
  schedule(program, slots);
  bind_outputs(program, slots);
  program.inputs_ = std::move(inputs_);
  program.scalars_ = std::move(scalars_);
  return program;
}

}  // namespace shardwise
