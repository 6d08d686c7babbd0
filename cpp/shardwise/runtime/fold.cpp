// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/fold.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/runtime/memory/allocation_log.h"
#include "shardwise/runtime/memory/buffer_pool.h"
#include "shardwise/tile/program.h"

namespace shardwise {
namespace {

// Members read in one pass over memory. More would exceed the registers and memory streams of a core.
constexpr size_t kMembersPerPass = 8;

TileCode combining_code(Reducer reducer, DType dtype) {
  const bool is_bool = dtype == DType::kBool;
  switch (reducer) {
    // StableHLO's add and max of booleans are `or`, its multiply and min are `and`.
    case Reducer::kSum: return is_bool ? TileCode::kOr : TileCode::kAdd;
    case Reducer::kProd: return is_bool ? TileCode::kAnd : TileCode::kMultiply;
    case Reducer::kMax: return is_bool ? TileCode::kOr : TileCode::kMaximum;
    case Reducer::kMin: return is_bool ? TileCode::kAnd : TileCode::kMinimum;
    case Reducer::kAnd: return TileCode::kAnd;
    case Reducer::kOr: return TileCode::kOr;
    case Reducer::kNone: break;
  }
  check_internal(false, "fold: a reducer");
  return TileCode::kCopy;
}

// inputs: [accumulator,] members; output: the accumulator, or the result in the last pass.
struct Pass {
  TileCode code;
  DType dtype, accumulator;
  size_t members;
  bool is_first, is_last;

  auto operator<=>(const Pass&) const = default;
};

TileProgram make_program(const Pass& pass) {
  const auto& [code, dtype, accumulator, members, is_first, is_last] = pass;
  TileBuilder tiles;
  std::vector<uint32_t> inputs;
  // The accumulator comes first, so that members are combined from the first device to the last in all passes.
  if (!is_first) inputs.push_back(tiles.input(accumulator));
  for (size_t i = 0; i < members; ++i) inputs.push_back(tiles.input(dtype));
  uint32_t sum = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    uint32_t member = inputs[i];
    if (tiles.dtype(member) != accumulator) member = tiles.emit(TileCode::kConvert, {member}, accumulator);
    sum = i == 0 ? member : tiles.emit(code, {sum, member}, accumulator);
  }
  if (is_last && accumulator != dtype) sum = tiles.emit(TileCode::kConvert, {sum}, dtype);
  tiles.output(sum);
  return std::move(tiles).build();
}

// Kept, because small operands are folded in less time than it takes to build a program. There are few: a pass has at
// most kMembersPerPass members.
const TileProgram& program_of(const Pass& pass) {
  thread_local std::map<Pass, TileProgram> known;
  const auto found = known.find(pass);
  return found != known.end() ? found->second : known.emplace(pass, make_program(pass)).first->second;
}

bool is_same_view(const NdArray& a, const NdArray& b) {
  return a.data() == b.data() && a.strides() == b.strides() && a.owner() == b.owner();
}

}  // namespace

NdArray fold(Reducer reducer, std::span<const NdArray> members) {
  const DType dtype = members.front().dtype();
  if (members.size() == 1) return members.front();
  // An operand that does not vary along the axes is one array, seen by each device.
  const bool is_one_copy = std::all_of(members.begin(), members.end(),
                                       [&](const NdArray& member) { return is_same_view(member, members.front()); });
  if (is_one_copy && (dtype == DType::kBool || is_idempotent(reducer))) {
    if (!is_inexact(dtype)) return members.front();
    members = members.first(2);  // still combined once, so that NaNs become canonical
  }
  const TileCode code = combining_code(reducer, dtype);
  const DType accumulator = computed_in(dtype);
  NdArray result = pooled_empty(dtype, members.front().shape());
  NdArray partial = result;
  // Partial results of several passes stay in the dtype of the arithmetic, so that narrow floats are rounded once at
  // the end.
  if (accumulator != dtype && members.size() > kMembersPerPass) partial = pooled_empty(accumulator, result.shape());
  if (leaves_out(result.nbytes())) return result;
  for (size_t done = 0; done < members.size();) {
    const size_t count = std::min(members.size() - done, kMembersPerPass);
    const bool is_first = done == 0;
    const bool is_last = done + count == members.size();
    const Pass pass{code, dtype, accumulator, count, is_first, is_last};
    const TileProgram& program = program_of(pass);
    std::vector<NdArray> inputs;
    if (!is_first) inputs.push_back(partial);
    inputs.insert(inputs.end(), members.begin() + static_cast<std::ptrdiff_t>(done),
                  members.begin() + static_cast<std::ptrdiff_t>(done + count));
    run_tiles(program, inputs, std::array{is_last ? result : partial}, pool_for());
    done += count;
  }
  return result;
}

}  // namespace shardwise
