// SPDX-License-Identifier: Apache-2.0
//
// The tile evaluator runs elementwise programs, a few thousand lanes at a time. A program is a list of SSA
// instructions. Each runs vectorized over one tile before the next one starts, so that intermediates never leave the
// cache.
//
//   TileBuilder tiles;                                             // gelu-like: x * logistic(1.5 * x)
//   uint32_t x = tiles.input(DType::kF32);
//   uint32_t c = tiles.scalar(Scalar::of_float(DType::kF32, 1.5));
//   uint32_t y = tiles.emit(TileCode::kMultiply, {c, x}, DType::kF32);
//   uint32_t z = tiles.emit(TileCode::kLogistic, {y}, DType::kF32);
//   tiles.output(tiles.emit(TileCode::kMultiply, {x, z}, DType::kF32));
//   TileProgram program = std::move(tiles).build();
//   run_tiles(program, std::array{in}, std::array{out}, parallel_for);   // whole arrays, any strides
//   TileRunner(program).run(pointers_in, pointers_out, lanes);           // contiguous slabs: reductions, scans, sorts
//
// The bits of a result depend only on the bits of its operands, never on position, length, strides, shard or thread:
// the same vector code computes every lane, including tails (which are padded). Floats of 16 bits or less compute in
// float32, integers of less than 8 bits in 8 bits; they are rounded (wrapped) once per instruction, so a fused chain
// equals its separate ops. A complex register is packed, or a pair of real ones. Integers wrap around; x / 0 is -1 (all
// ones), x % 0 is x; shifts by the width or more give 0 (or the sign). maximum/minimum are those of IEEE 754-2019: NaN
// wins (as the canonical NaN), and +0 > -0; complex numbers are ordered by their real parts, then by their imaginary
// parts.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "shardwise/base/dtype.h"
#include "shardwise/base/ndarray.h"
#include "shardwise/tile/table.h"

namespace shardwise {

inline constexpr int64_t kTileLanes = 2048;

// Runs body(begin, end) over [0, count) in pieces of at least `grain`, as KernelContext::parallel_for does.
using ParallelFor =
    std::function<void(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body)>;
const ParallelFor& serial_for();  // body(0, count) on the calling thread
const ParallelFor& pool_for();    // on the threads of the process

class TileProgram {
 public:
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  DType input_dtype(size_t i) const { return inputs_[i]; }
  DType output_dtype(size_t i) const { return outputs_[i].dtype; }
  size_t instruction_count() const { return instructions_.size(); }

 private:
  friend class TileBuilder;
  friend class TileRunner;
  // Operands and results are slots: inputs, then outputs, then scalars, then temporaries.
  struct Instruction {
    TileCode code;
    uint8_t from, to;  // kernel column; for kConvert also the target
    uint16_t out, a, b, c;
    TileKernel portable;  // of portable.h; null: the table's
  };
  struct Output {
    DType dtype;
    uint32_t written_at;  // index of the instruction that writes it
  };
  std::vector<DType> inputs_;
  std::vector<uint32_t> input_last_use_;  // index of the last instruction that reads it
  std::vector<Output> outputs_;
  std::vector<Scalar> scalars_;
  std::vector<int64_t> temporary_bytes_;  // item size of each temporary slot
  std::vector<Instruction> instructions_;
};

class TileBuilder {
 public:
  uint32_t input(DType dtype);
  uint32_t scalar(Scalar value);
  // Appends an instruction. `result` must be the code's result dtype (checked); for kConvert and kBitcast, it is the
  // target dtype. Throws DTypeError for an operand dtype that the code does not accept.
  uint32_t emit(TileCode code, std::span<const uint32_t> operands, DType result);
  uint32_t emit(TileCode code, std::initializer_list<uint32_t> operands, DType result) {
    return emit(code, std::span<const uint32_t>(operands.begin(), operands.size()), result);
  }
  void output(uint32_t reg);  // any register, also an input or a scalar, also twice
  DType dtype(uint32_t reg) const { return registers_[reg].dtype; }
  TileProgram build() &&;

 private:
  enum class Origin : uint8_t { kInput, kScalar, kResult, kPair };
  struct Register {
    DType dtype;
    Origin origin;
    uint32_t index;           // input, scalar or instruction number
    uint32_t widened = 0;     // of a narrow number: its wide register + 1; of a pair: the register with both parts + 1
    uint32_t parts[2] = {0};  // of a complex number: the registers of its parts + 1
  };
  struct Node {
    TileCode code;
    DType from, to;
    uint32_t result;
    uint32_t operands[3];
    uint8_t operand_count;
  };
  uint32_t append(TileCode code, DType from, std::span<const uint32_t> operands, DType result);
  // The instruction that makes a register, if it has this code. It is valid until the next one is appended.
  const Node* maker(uint32_t reg, TileCode code) const;
  const Scalar* scalar_of(uint32_t reg) const;  // null: not a scalar
  uint32_t convert(uint32_t reg, DType to);
  uint32_t widen(uint32_t reg);
  uint32_t saturated(uint32_t reg, DType to);
  std::optional<uint32_t> rotation(std::span<const uint32_t> operands, DType dtype);
  std::optional<uint32_t> sign_of_half(TileCode code, std::span<const uint32_t> operands, DType dtype);
  uint32_t emit_bits(TileCode code, std::span<const uint32_t> operands, DType dtype);

  // complex.cpp
  struct Parts {
    uint32_t real, imag;
  };
  Parts parts(uint32_t reg);
  uint32_t pair(uint32_t real, uint32_t imag);
  uint32_t packed(uint32_t reg);  // one register with both parts side by side
  bool is_packed(uint32_t reg) const;
  std::optional<uint32_t> conjugated(uint32_t real, uint32_t imag);
  uint32_t convert_complex(uint32_t reg, DType to);
  uint32_t emit_complex(TileCode code, std::span<const uint32_t> operands, DType result);
  uint32_t complex_product(Parts a, Parts b);
  uint32_t complex_comparison(TileCode code, Parts a, Parts b);
  uint32_t complex_extremum(TileCode code, uint32_t a, uint32_t b);

  class PairFuser;  // fuse_pairs.cpp
  void fuse_pairs();
  void remove_dead();
  std::vector<uint32_t> fixed_slots() const;
  void schedule(TileProgram& program, std::vector<uint32_t>& slots) const;
  void bind_outputs(TileProgram& program, const std::vector<uint32_t>& slots) const;

  std::vector<Register> registers_;
  std::vector<DType> inputs_;
  std::vector<Scalar> scalars_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> outputs_;
};

// Whether an instruction accepts operands of this dtype.
bool accepts(TileCode code, DType dtype);
std::string_view accepted_dtypes(TileCode code);  // "floats", for messages
int operand_count(TileCode code);

// One thread's workspace for a program, which must outlive the workspace.
class TileRunner {
 public:
  explicit TileRunner(const TileProgram& program, int64_t max_lanes = kTileLanes);
  ~TileRunner();
  TileRunner(const TileRunner&) = delete;
  TileRunner& operator=(const TileRunner&) = delete;

  // Contiguous operands, any number of lanes. An output may be exactly one of the inputs, but must not overlap one
  // otherwise.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, int64_t lanes);

  // The same over elements [begin, end), in row-major order, of strided arrays that all have the same shape.
  struct Strided;  // dims and strides shared by all pieces of one run (run.cpp)
  void run_strided(const Strided& arrays, int64_t begin, int64_t end);

 private:
  void execute(int64_t lanes);
  int64_t run_linear(const Strided& arrays, int64_t begin, int64_t end);
  std::byte* pad(size_t slot) { return storage_ + pad_offset_[slot]; }

  const TileProgram& program_;
  const TileTable& table_;
  int64_t max_lanes_;
  bool is_clobbered(size_t output, const void* where, int64_t item) const;
  std::unique_ptr<std::byte[]> memory_;
  size_t memory_bytes_ = 0;
  std::byte* storage_ = nullptr;
  std::vector<int64_t> pad_offset_;  // of each slot's own buffer
  std::vector<void*> slots_;         // the address of each slot for the current tile
};

// outputs[i] = program(inputs…)[i]. All arrays have one shape (a broadcast input has strides 0) and any strides. The
// caller allocates outputs. An output may be exactly one of the inputs (same data and strides), but must not overlap
// one otherwise.
void run_tiles(const TileProgram& program, std::span<const NdArray> inputs, std::span<const NdArray> outputs,
               const ParallelFor& parallel_for);

// A view of a one-element array with another shape, all strides 0.
NdArray broadcast_scalar(const NdArray& scalar, DimSpan shape);

// Instruction sets that this machine supports, best last: "baseline", "scalar_fma", "avx2", "avx512"; on ARM
// "scalar_fma", "neon". The best one is used. `use_tile_isa` selects another one for tests (not while tiles run). All
// but "baseline" give the same bits.
std::vector<std::string_view> tile_isas();
void use_tile_isa(std::string_view name);

}  // namespace shardwise
