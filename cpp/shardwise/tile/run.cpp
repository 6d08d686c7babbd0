// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/moved_item.h"
#include "shardwise/base/thread_pool.h"
#include "shardwise/tile/isas.h"
#include "shardwise/tile/program.h"

namespace shardwise {
namespace {

Isa& current_isa() {
  static Isa isa = available_isas().back();
  return isa;
}

// Buffers of finished runners, one per thread, so that small kernels need no fresh pages.
struct Workspace {
  std::unique_ptr<std::byte[]> memory;
  size_t bytes = 0;
};
Workspace& spare_workspace() {
  thread_local Workspace workspace;
  return workspace;
}

constexpr int64_t kWorkspaceBytes = int64_t{1} << 15;  // of the first-level cache
int64_t round_up(int64_t lanes) { return ceil_div(lanes, kLaneBlock) * kLaneBlock; }

bool is_aligned(const void* pointer, int64_t item) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(item) == 0;
}

template <class T>
void copy_items(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride, int64_t count) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  if (to_stride == kItem && from_stride == -kItem) {  // strides that the compiler knows
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * kItem, from - i * kItem, sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * from_stride, sizeof(T));
    std::memcpy(to + i * to_stride, &value, sizeof(T));
  }
}

void copy_run(int64_t item, std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride,
              int64_t count) {
  if (to_stride == item && from_stride == item) {
    std::memcpy(to, from, static_cast<size_t>(count * item));
    return;
  }
  dispatch_moved(item, [&]<class T>() { copy_items<T>(to, to_stride, from, from_stride, count); });
}

void fill_run(int64_t item, std::byte* to, const std::byte* from, int64_t count) {
  dispatch_moved(item, [&]<class T>() {
    T value;
    std::memcpy(&value, from, sizeof(T));
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
  });
}

}  // namespace

const ParallelFor& serial_for() {
  static const ParallelFor serial = [](int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) {
    if (count > 0) body(0, count);
  };
  return serial;
}

const ParallelFor& pool_for() {
  static const ParallelFor kPool = [](int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
    parallel_for(count, grain, body);
  };
  return kPool;
}

const LineTable& line_kernels() { return current_isa().table->lines; }
const ReductionTable& reduction_kernels() { return *current_isa().reductions; }

std::vector<std::string_view> tile_isas() {
  std::vector<std::string_view> names;
  for (const Isa& isa : available_isas()) names.push_back(isa.name);
  return names;
}

void use_tile_isa(std::string_view name) {
  for (const Isa& isa : available_isas()) {
    if (isa.name == name) {
      current_isa() = isa;
      return;
    }
  }
  fail<InternalError>("use_tile_isa", "the instruction set must be one this machine has", name);
}

// ---- strided arrays ------------------------------------------------------------------------------------------------

// All arrays of a run, over one shape. Dims are ordered by the first output's strides, and merged when every array
// allows it, so contiguous operands have one dim.
struct TileRunner::Strided {
  struct Array {
    std::byte* data;
    int64_t item;
    Dims strides;
    bool linear;  // element i is at data + i * item
    bool splat;   // all strides 0
  };
  Dims shape;
  std::vector<Array> arrays;  // inputs, then outputs

  int64_t inner() const { return shape.back(); }
  // Calls f(pointer, stride, count) for each part of a row in elements [begin, begin + count).
  template <class F>
  void for_each_run(const Array& array, int64_t begin, int64_t count, F f) const;
};

template <class F>
void TileRunner::Strided::for_each_run(const Array& array, int64_t begin, int64_t count, F f) const {
  constexpr size_t kMostDims = 32;
  std::array<int64_t, kMostDims> index{};
  const size_t ndim = shape.size();
  const std::byte* row = array.data;
  int64_t rest = begin;
  // Element 7 of shape {3, 4} is [1][3], so that the first run has one element and the next ones four.
  for (size_t d = ndim; d-- > 0;) {
    index[d] = rest % shape[d];
    rest /= shape[d];
    row += index[d] * array.strides[d];
  }
  while (count > 0) {
    const int64_t run = std::min(count, inner() - index[ndim - 1]);
    f(const_cast<std::byte*>(row), array.strides[ndim - 1], run);
    count -= run;
    row -= index[ndim - 1] * array.strides[ndim - 1];
    index[ndim - 1] = 0;
    for (size_t d = ndim - 1; d-- > 0;) {
      row += array.strides[d];
      if (++index[d] < shape[d]) break;
      row -= shape[d] * array.strides[d];
      index[d] = 0;
    }
  }
}

namespace {

using Strided = TileRunner::Strided;

void merge_dims(Strided& strided) {
  size_t kept = 0;
  for (size_t d = 1; d < strided.shape.size(); ++d) {
    // One array that does not nest keeps the dim: all arrays walk the same index.
    const bool mergeable = std::ranges::all_of(strided.arrays, [&](const Strided::Array& array) {
      return array.strides[kept] == array.strides[d] * strided.shape[d];
    });
    if (mergeable) {
      strided.shape[kept] *= strided.shape[d];
    } else {
      strided.shape[++kept] = strided.shape[d];
    }
    for (Strided::Array& array : strided.arrays) array.strides[kept] = array.strides[d];
  }
  strided.shape.resize(kept + 1);
  for (Strided::Array& array : strided.arrays) array.strides.resize(kept + 1);
}

bool is_row_major(DimSpan shape, const Strided::Array& array) {
  int64_t stride = array.item;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    if (array.strides[d] != stride) return false;
  }
  return true;
}

Strided make_strided(std::span<const NdArray> inputs, std::span<const NdArray> outputs) {
  const Dims& shape = outputs[0].shape();
  std::vector<size_t> order;
  for (size_t d = 0; d < shape.size(); ++d) {
    // Strides of dims of size 1 may be anything, and would prevent merging.
    if (shape[d] != 1) order.push_back(d);
  }
  const Dims& leading = outputs[0].strides();
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::abs(leading[a]) > std::abs(leading[b]); });
  check_internal(order.size() <= 32, "tiles run over at most 32 dims");
  Strided strided;
  strided.arrays.reserve(inputs.size() + outputs.size());
  for (size_t d : order) strided.shape.push_back(shape[d]);
  if (order.empty()) strided.shape.push_back(1);
  const auto add = [&](const NdArray& array) {
    check_internal(array.shape() == shape, "operands of a tile program must have the shape of its outputs");
    Strided::Array entry{array.data(), item_size(array.dtype()), {}, false, false};
    entry.strides.reserve(order.size() + 1);
    for (size_t d : order) entry.strides.push_back(array.strides()[d]);
    if (order.empty()) entry.strides.push_back(entry.item);
    strided.arrays.push_back(std::move(entry));
  };
  for (const NdArray& array : inputs) add(array);
  for (const NdArray& array : outputs) add(array);
  merge_dims(strided);
  for (Strided::Array& array : strided.arrays) {
    // Kernels need addresses aligned to the item, which foreign NumPy memory does not promise.
    array.linear = is_row_major(strided.shape, array) && is_aligned(array.data, array.item);
    array.splat = std::all_of(array.strides.begin(), array.strides.end(), [](int64_t s) { return s == 0; });
  }
  return strided;
}

}  // namespace

// ---- the runner ----------------------------------------------------------------------------------------------------

TileRunner::TileRunner(const TileProgram& program, int64_t max_lanes)
    : program_(program), table_(*current_isa().table), max_lanes_(0) {
  const size_t scalar_begin = program.inputs_.size() + program.outputs_.size();
  const size_t slots = scalar_begin + program.scalars_.size() + program.temporary_bytes_.size();
  // First the size of an item of each slot. One allocation fewer counts, because many runs compute a few lanes only.
  pad_offset_.reserve(slots);
  slots_.reserve(slots);
  for (DType dtype : program.inputs_) pad_offset_.push_back(item_size(dtype));
  for (const TileProgram::Output& output : program.outputs_) pad_offset_.push_back(item_size(output.dtype));
  for (const Scalar& scalar : program.scalars_) pad_offset_.push_back(item_size(scalar.dtype));
  pad_offset_.insert(pad_offset_.end(), program.temporary_bytes_.begin(), program.temporary_bytes_.end());
  const int64_t lane_bytes = std::accumulate(pad_offset_.begin(), pad_offset_.end(), int64_t{0});
  // A long program gets shorter tiles, so that all its slots still fit: 16 bytes a lane give 2048 lanes, 32 give 1024.
  // Never fewer than four blocks, so that the calls of kernels stay cheap per lane.
  const int64_t fitting = std::max<int64_t>(kWorkspaceBytes / lane_bytes / kLaneBlock * kLaneBlock, 4 * kLaneBlock);
  max_lanes_ = std::min({round_up(std::max<int64_t>(max_lanes, 1)), fitting, kTileLanes});

  int64_t bytes = 0;
  for (int64_t& offset : pad_offset_) {
    const int64_t item = std::exchange(offset, bytes);
    bytes += max_lanes_ * item + 64;  // the gap keeps slots apart in the sets of the cache
  }
  bytes += 64;  // to align the first slot
  Workspace& spare = spare_workspace();
  if (spare.bytes >= static_cast<size_t>(bytes)) {
    memory_bytes_ = spare.bytes;
    memory_ = std::move(spare.memory);
    spare.bytes = 0;
  } else {
    memory_bytes_ = static_cast<size_t>(bytes);
    memory_ = std::make_unique<std::byte[]>(memory_bytes_);  // zeroed, because kernels read padding lanes
  }
  const auto address = reinterpret_cast<uintptr_t>(memory_.get());
  storage_ = memory_.get() + (64 - address % 64) % 64;
  for (size_t slot = 0; slot < slots; ++slot) slots_.push_back(pad(slot));
  for (size_t i = 0; i < program.scalars_.size(); ++i) {
    std::array<std::byte, 16> element{};
    store(program.scalars_[i], element.data());
    fill_run(item_size(program.scalars_[i].dtype), pad(scalar_begin + i), element.data(), max_lanes_);
  }
}

TileRunner::~TileRunner() {
  Workspace& spare = spare_workspace();
  if (memory_bytes_ > spare.bytes) spare = {std::move(memory_), memory_bytes_};
}

void TileRunner::execute(int64_t lanes) {
  for (const TileProgram::Instruction& instruction : program_.instructions_) {
    const TileKernel kernel = instruction.portable != nullptr ? instruction.portable
                              : instruction.code == TileCode::kConvert
                                  ? table_.convert[instruction.from][instruction.to]
                                  : table_.code[static_cast<size_t>(instruction.code)][instruction.from];
    kernel(slots_[instruction.out], slots_[instruction.a], slots_[instruction.b], slots_[instruction.c], lanes);
  }
}

// Whether an output must not be written to the memory of an input: a later instruction still reads it, or sizes differ.
bool TileRunner::is_clobbered(size_t output, const void* where, int64_t item) const {
  for (size_t i = 0; i < program_.inputs_.size(); ++i) {
    if (slots_[i] != where) continue;
    if (program_.input_last_use_[i] > program_.outputs_[output].written_at) return true;
    if (item_size(program_.inputs_[i]) != item) return true;
  }
  return false;
}

void TileRunner::run(std::span<const void* const> inputs, std::span<void* const> outputs, int64_t lanes) {
  const size_t input_count = program_.inputs_.size();
  for (int64_t begin = 0; begin < lanes;) {
    int64_t count = std::min(max_lanes_, lanes - begin);
    // Only the last piece has a partial block. It goes through the pads, because kernels write whole blocks.
    if (count > kLaneBlock) count -= count % kLaneBlock;
    const bool whole = count % kLaneBlock == 0;
    for (size_t i = 0; i < input_count; ++i) {
      const int64_t item = item_size(program_.inputs_[i]);
      const auto* from = static_cast<const std::byte*>(inputs[i]) + begin * item;
      slots_[i] = whole && is_aligned(from, item) ? const_cast<std::byte*>(from) : pad(i);
      if (slots_[i] == pad(i)) std::memcpy(pad(i), from, static_cast<size_t>(count * item));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int64_t item = item_size(program_.outputs_[i].dtype);
      std::byte* to = static_cast<std::byte*>(outputs[i]) + begin * item;
      const bool direct = whole && is_aligned(to, item) && !is_clobbered(i, to, item);
      slots_[input_count + i] = direct ? to : pad(input_count + i);
    }
    execute(round_up(count));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int64_t item = item_size(program_.outputs_[i].dtype);
      std::byte* to = static_cast<std::byte*>(outputs[i]) + begin * item;
      if (slots_[input_count + i] != to) std::memcpy(to, slots_[input_count + i], static_cast<size_t>(count * item));
    }
    begin += count;
  }
}

// One instruction on contiguous arrays needs no tiles. Returns how many elements it has computed.
int64_t TileRunner::run_linear(const Strided& strided, int64_t begin, int64_t end) {
  const size_t input_count = program_.inputs_.size();
  const bool is_one = program_.instructions_.size() == 1 && program_.scalars_.empty();
  const int64_t count = (end - begin) / kLaneBlock * kLaneBlock;
  if (!is_one || count == 0) return 0;
  for (size_t i = 0; i < strided.arrays.size(); ++i) {
    const Strided::Array& array = strided.arrays[i];
    slots_[i] = array.data + begin * array.item;
    // Inputs come first, so that the slots which is_clobbered compares with are already set.
    if (!array.linear || (i >= input_count && is_clobbered(i - input_count, slots_[i], array.item))) return 0;
  }
  execute(count);
  return count;
}

void TileRunner::run_strided(const Strided& strided, int64_t begin, int64_t end) {
  const size_t input_count = program_.inputs_.size();
  const size_t array_count = strided.arrays.size();
  begin += run_linear(strided, begin, end);
  for (size_t i = 0; i < input_count; ++i) {
    const Strided::Array& array = strided.arrays[i];
    // Once for all tiles of this range; the loop below leaves these pads alone.
    if (array.splat) fill_run(array.item, pad(i), array.data, std::min(max_lanes_, round_up(end - begin)));
  }
  // Tiles end at the end of a long row, so that unit-stride operands are used in place.
  const bool by_row = strided.inner() >= 8 * kLaneBlock;
  while (begin < end) {
    int64_t count = std::min(max_lanes_, end - begin);
    if (by_row) count = std::min(count, strided.inner() - begin % strided.inner());
    if (count > kLaneBlock) count -= count % kLaneBlock;
    const bool whole = count % kLaneBlock == 0;
    for (size_t i = 0; i < array_count; ++i) {
      const Strided::Array& array = strided.arrays[i];
      const bool is_input = i < input_count;
      std::byte* place = pad(i);
      if (is_input && array.splat) {
      } else if (whole && array.linear) {
        place = array.data + begin * array.item;
      } else if (whole && by_row && array.strides.back() == array.item) {
        // The tile is inside one row, so this is called once, with the address of the first element.
        strided.for_each_run(array, begin, count, [&](std::byte* from, int64_t, int64_t) {
          if (is_aligned(from, array.item)) place = from;
        });
      }
      if (is_input && !array.splat && place == pad(i)) {
        std::byte* to = place;
        strided.for_each_run(array, begin, count, [&](const std::byte* from, int64_t stride, int64_t run) {
          if (stride == 0)
            fill_run(array.item, to, from, run);
          else
            copy_run(array.item, to, array.item, from, stride, run);
          to += run * array.item;
        });
      }
      if (!is_input && is_clobbered(i - input_count, place, array.item)) place = pad(i);
      slots_[i] = place;
    }
    execute(round_up(count));
    for (size_t i = input_count; i < array_count; ++i) {
      const Strided::Array& array = strided.arrays[i];
      if (slots_[i] != pad(i)) continue;
      const std::byte* from = pad(i);
      strided.for_each_run(array, begin, count, [&](std::byte* to, int64_t stride, int64_t run) {
        copy_run(array.item, to, stride, from, array.item, run);
        from += run * array.item;
      });
    }
    begin += count;
  }
}

namespace {

// A large operand whose rows are strided in memory (a transpose) would cost one cache miss per element. Copying it in
// blocks first costs one per cache line.
constexpr int64_t kLarge = 1 << 15, kConflict = 1024;

bool is_across_memory(const NdArray& input, const NdArray& output) {
  if (input.ndim() < 2 || input.size() < kLarge || !output.is_contiguous()) return false;
  int64_t last = input.ndim() - 1;
  while (last > 0 && input.shape()[static_cast<size_t>(last)] == 1) --last;
  const int64_t step = input.strides()[static_cast<size_t>(last)];
  return step != 0 && step % kConflict == 0;
}

NdArray along_memory(const NdArray& input, const ParallelFor& parallel_for) {
  const NdArray dense = NdArray::empty(input.dtype(), input.shape());
  const int64_t rows = input.shape()[0];
  parallel_for(rows, std::max<int64_t>(64, ceil_div(kLarge * rows, input.size())), [&](int64_t begin, int64_t end) {
    dense.sliced(0, begin, end - begin).copy_from(input.sliced(0, begin, end - begin));
  });
  return dense;
}

}  // namespace

void run_tiles(const TileProgram& program, std::span<const NdArray> inputs, std::span<const NdArray> outputs,
               const ParallelFor& parallel_for) {
  check_internal(inputs.size() == program.input_count() && outputs.size() == program.output_count(),
                 "a tile program was given the wrong number of arrays");
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_internal(inputs[i].dtype() == program.input_dtype(i), "an input of a tile program has another dtype");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    check_internal(outputs[i].dtype() == program.output_dtype(i), "an output of a tile program has another dtype");
  }
  const int64_t size = outputs[0].size();
  if (size == 0) return;
  std::vector<NdArray> operands;  // only where one is copied: copies of views take a part of the time of short programs
  if (std::ranges::any_of(inputs, [&](const NdArray& input) { return is_across_memory(input, outputs[0]); })) {
    for (const NdArray& input : inputs) {
      operands.push_back(is_across_memory(input, outputs[0]) ? along_memory(input, parallel_for) : input);
    }
    inputs = operands;
  }
  const Strided strided = make_strided(inputs, outputs);
  // A chunk runs about 65536 lanes of instructions (at least four tiles), which outweighs waking a thread.
  const int64_t grain = std::max<int64_t>(4 * kTileLanes, 65536 / static_cast<int64_t>(program.instruction_count()));
  parallel_for(size, grain,
               [&](int64_t begin, int64_t end) { TileRunner(program, end - begin).run_strided(strided, begin, end); });
}

NdArray broadcast_scalar(const NdArray& scalar, DimSpan shape) {
  check_internal(scalar.size() == 1, "broadcast_scalar needs one element");
  return NdArray(scalar.dtype(), to_dims(shape), Dims(shape.size(), 0), scalar.data(), scalar.owner());
}

}  // namespace shardwise
