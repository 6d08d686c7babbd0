// SPDX-License-Identifier: Apache-2.0
#include "shardwise/tile/program.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

static_assert(kTileDTypeCount == kDTypeCount);

// The dtypes that a code accepts.
enum class Accepts : uint8_t { kAll, kReals, kFloats, kSigned, kIntegers, kNumbers, kIntegersAndBool };

struct CodeInfo {
  std::string_view name;
  uint8_t operands;
  Accepts accepts;
};

// In the order of TileCode.
constexpr std::array<CodeInfo, kTileCodeCount> kCodes{{
    {"copy", 1, Accepts::kAll},
    {"abs", 1, Accepts::kSigned},
    {"negate", 1, Accepts::kNumbers},
    {"sign", 1, Accepts::kSigned},
    {"not", 1, Accepts::kIntegersAndBool},
    {"popcnt", 1, Accepts::kIntegers},
    {"count_leading_zeros", 1, Accepts::kIntegers},
    {"ceil", 1, Accepts::kReals},
    {"floor", 1, Accepts::kReals},
    {"round_nearest_afz", 1, Accepts::kReals},
    {"round_nearest_even", 1, Accepts::kReals},
    {"is_finite", 1, Accepts::kReals},
    {"sqrt", 1, Accepts::kFloats},
    {"rsqrt", 1, Accepts::kFloats},
    {"cbrt", 1, Accepts::kFloats},
    {"exponential", 1, Accepts::kFloats},
    {"exponential_minus_one", 1, Accepts::kFloats},
    {"log", 1, Accepts::kFloats},
    {"log_plus_one", 1, Accepts::kFloats},
    {"logistic", 1, Accepts::kFloats},
    {"sine", 1, Accepts::kFloats},
    {"cosine", 1, Accepts::kFloats},
    {"tan", 1, Accepts::kFloats},
    {"tanh", 1, Accepts::kFloats},
    {"sinh", 1, Accepts::kFloats},
    {"cosh", 1, Accepts::kFloats},
    {"asin", 1, Accepts::kFloats},
    {"acos", 1, Accepts::kFloats},
    {"atan", 1, Accepts::kFloats},
    {"asinh", 1, Accepts::kFloats},
    {"acosh", 1, Accepts::kFloats},
    {"atanh", 1, Accepts::kFloats},
    {"erf", 1, Accepts::kReals},
    {"erfc", 1, Accepts::kReals},
    {"total_order_key", 1, Accepts::kReals},
    {"bitcast", 1, Accepts::kAll},
    {"convert", 1, Accepts::kAll},
    {"add", 2, Accepts::kAll},
    {"subtract", 2, Accepts::kNumbers},
    {"multiply", 2, Accepts::kAll},
    {"divide", 2, Accepts::kNumbers},
    {"remainder", 2, Accepts::kNumbers},
    {"power", 2, Accepts::kNumbers},
    {"atan2", 2, Accepts::kFloats},
    {"maximum", 2, Accepts::kAll},
    {"minimum", 2, Accepts::kAll},
    {"and", 2, Accepts::kIntegersAndBool},
    {"or", 2, Accepts::kIntegersAndBool},
    {"xor", 2, Accepts::kIntegersAndBool},
    {"shift_left", 2, Accepts::kIntegers},
    {"shift_right_arithmetic", 2, Accepts::kIntegers},
    {"shift_right_logical", 2, Accepts::kIntegers},
    {"equal", 2, Accepts::kAll},
    {"not_equal", 2, Accepts::kAll},
    {"less", 2, Accepts::kAll},
    {"less_equal", 2, Accepts::kAll},
    {"greater", 2, Accepts::kAll},
    {"greater_equal", 2, Accepts::kAll},
    {"select", 3, Accepts::kAll},
    {"clamp", 3, Accepts::kAll},
}};

const CodeInfo& info(TileCode code) { return kCodes[static_cast<size_t>(code)]; }
std::string subject(TileCode code) { return "tile." + std::string(info(code).name); }
bool is_small_float(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }
// Codes that move bits without arithmetic, so 16-bit floats need no widening.
bool moves_bits(TileCode code) {
  return code == TileCode::kCopy || code == TileCode::kBitcast || code == TileCode::kSelect;
}

// The result dtype of a code; none when the caller chooses it.
std::optional<DType> result_dtype(TileCode code, DType dtype) {
  if (code >= TileCode::kEqual && code <= TileCode::kGreaterEqual) return DType::kBool;
  if (code == TileCode::kIsFinite) return DType::kBool;
  if (code == TileCode::kTotalOrderKey) return dtype == DType::kF64 ? DType::kI64 : DType::kI32;
  if (code == TileCode::kConvert || code == TileCode::kBitcast) return std::nullopt;
  return dtype;
}

}  // namespace

int operand_count(TileCode code) { return info(code).operands; }

// StableHLO's float ops accept complex numbers, except those that order or round.
bool accepts(TileCode code, DType dtype) {
  switch (info(code).accepts) {
    case Accepts::kAll: return true;
    case Accepts::kReals: return is_float(dtype);
    case Accepts::kFloats: return is_float(dtype) || is_complex(dtype);
    case Accepts::kIntegers: return is_integer(dtype);
    case Accepts::kSigned: return is_signed_integer(dtype) || is_float(dtype) || is_complex(dtype);
    case Accepts::kNumbers: return dtype != DType::kBool;
    case Accepts::kIntegersAndBool: break;
  }
  return is_integer(dtype) || dtype == DType::kBool;
}

std::string_view accepted_dtypes(TileCode code) {
  switch (info(code).accepts) {
    case Accepts::kAll: return "of any dtype";
    case Accepts::kReals:
    case Accepts::kFloats: return "floats";
    case Accepts::kIntegers: return "integers";
    case Accepts::kSigned: return "signed integers or floats";
    case Accepts::kNumbers: return "integers or floats";
    case Accepts::kIntegersAndBool: break;
  }
  return "booleans or integers";
}

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

void TileBuilder::output(uint32_t reg) { outputs_.push_back(reg); }

uint32_t TileBuilder::append(TileCode code, DType from, std::span<const uint32_t> operands, DType result) {
  Node node{code, from, result, static_cast<uint32_t>(registers_.size()), {}, static_cast<uint8_t>(operands.size())};
  std::copy(operands.begin(), operands.end(), node.operands);
  registers_.push_back({result, Origin::kResult, static_cast<uint32_t>(nodes_.size())});
  nodes_.push_back(node);
  return node.result;
}

// The float32 value of a 16-bit float, created once per register.
uint32_t TileBuilder::widen(uint32_t reg) {
  if (!is_small_float(dtype(reg))) return reg;
  if (registers_[reg].widened == 0) {
    const uint32_t wide = append(TileCode::kConvert, dtype(reg), std::array{reg}, DType::kF32);
    registers_[reg].widened = wide + 1;
  }
  return registers_[reg].widened - 1;
}

uint32_t TileBuilder::convert(uint32_t reg, DType to) {
  if (dtype(reg) == to) return reg;
  uint32_t from = widen(reg);
  // Only floats have conversion kernels to 16 bits. Integers go through float32, as in NumPy.
  if (is_small_float(to) && !is_float(dtype(from))) from = convert(from, DType::kF32);
  return dtype(from) == to ? from : append(TileCode::kConvert, dtype(from), std::array{from}, to);
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
  if (code == TileCode::kBitcast) check_internal(item_size(from) == item_size(result), "a bitcast keeps the width");
  if (code == TileCode::kConvert) return convert(operands[0], result);
  if (!is_small_float(from) || moves_bits(code)) return append(code, from, operands, result);

  std::array<uint32_t, 3> wide{};
  for (size_t i = 0; i < operands.size(); ++i) wide[i] = widen(operands[i]);
  const DType wide_result = is_small_float(result) ? DType::kF32 : result;
  const uint32_t value = append(code, DType::kF32, std::span(wide).first(operands.size()), wide_result);
  return convert(value, result);
}

namespace {

constexpr uint32_t kNoSlot = UINT32_MAX;

// Physical slots of the temporaries. A slot is free again after the last read of its register.
class SlotAllocator {
 public:
  explicit SlotAllocator(size_t first) : first_(first) {}
  uint16_t take(int64_t bytes) {
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
        if (std::find(node.operands, node.operands + k, reg) == node.operands + k) temporaries.give(slot);
      }
    };
    // A kernel may overwrite an operand of the same item size, but no other one.
    release(true);
    if (slots[node.result] == kNoSlot) slots[node.result] = temporaries.take(item_size(node.to));
    release(false);
    const auto out = static_cast<uint16_t>(slots[node.result]);
    std::array<uint16_t, 3> operands{out, out, out};
    for (size_t k = 0; k < node.operand_count; ++k) {
      operands[k] = static_cast<uint16_t>(slots[node.operands[k]]);
      const Register& r = registers_[node.operands[k]];
      if (r.origin == Origin::kInput) program.input_last_use_[r.index] = static_cast<uint32_t>(i);
    }
    program.instructions_.push_back({node.code, static_cast<uint8_t>(node.from), static_cast<uint8_t>(node.to), out,
                                     operands[0], operands[1], operands[2]});
  }
  program.temporary_bytes_ = std::move(temporaries).sizes();
}

// An output that is also an input, a scalar, or another output needs a copy.
void TileBuilder::bind_outputs(TileProgram& program, const std::vector<uint32_t>& slots) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const uint32_t reg = outputs_[i];
    const auto own = static_cast<uint16_t>(inputs_.size() + i);
    const auto column = static_cast<uint8_t>(dtype(reg));
    auto written_at = static_cast<uint32_t>(program.instructions_.size());
    if (slots[reg] == own) {
      const auto writes = [&](const TileProgram::Instruction& instruction) { return instruction.out == own; };
      const auto it = std::find_if(program.instructions_.begin(), program.instructions_.end(), writes);
      written_at = static_cast<uint32_t>(it - program.instructions_.begin());
    } else {
      const Register& r = registers_[reg];
      if (r.origin == Origin::kInput) program.input_last_use_[r.index] = written_at;
      const auto from = static_cast<uint16_t>(slots[reg]);
      program.instructions_.push_back({TileCode::kCopy, column, column, own, from, own, own});
    }
    program.outputs_.push_back({dtype(reg), written_at});
  }
}

TileProgram TileBuilder::build() && {
  check_internal(!outputs_.empty(), "a tile program needs an output");
  check_internal(registers_.size() + outputs_.size() < UINT16_MAX, "a tile program is too long");
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
