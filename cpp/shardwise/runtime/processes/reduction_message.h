// SPDX-License-Identifier: Apache-2.0
//
// The message of a reduction among processes. Operands of one dtype and reducer form a pack: their elements, one
// operand after the other, travel and are folded as one array. A message has rows of equal size, and a row has a part
// of each pack.
//
//   packs of 7 f32 and 1 i32        rows = 1     the 7 elements, padding to 16 bytes, the 1
//                                   rows = 2     row 0: elements 0 to 3, and the 1
//                                                row 1: elements 4 to 6, a zero; a zero
#pragma once

#include <span>
#include <vector>

#include "shardwise/mesh/sharding.h"
#include "shardwise/runtime/shards.h"

namespace shardwise {

struct Pack {
  DType dtype;
  Reducer reducer;
  AxisList axes;  // of all of them
  std::vector<size_t> members = {};
  int64_t elements = 0;  // of one device
  int64_t length = 0;    // of these, in one row of a message
  int64_t begin = 0;     // in bytes, in a row

  int64_t nbytes() const { return product(axes) * length * item_size(dtype); }  // in a row
};

std::vector<Pack> packed(std::span<const Shards> operands, std::span<const Reducer> reducers);
std::vector<Pack> packs_of_one(std::span<const Shards> operands);  // each operand alone, to travel only

class ReductionMessage {
 public:
  // Sets where the packs are in the rows.
  ReductionMessage(std::vector<Pack>& packs, int64_t rows);
  // As many rows of the same form in new memory.
  ReductionMessage of_rows(int64_t rows) const;

  int64_t row_bytes() const { return row_bytes_; }
  const NdArray& memory() const { return memory_; }

  void fill(const std::vector<Pack>& packs, std::span<const Shards> operands);
  // The elements of a pack in all rows: [leading dims, which multiply to the number of rows; own devices; elements].
  NdArray part(const Pack& pack, DimSpan leading) const;

 private:
  bool is_operand(const std::vector<Pack>& packs) const;
  void write(const Pack& pack, std::span<const Shards> operands) const;
  void write(const Pack& pack, int64_t begin, const NdArray& array) const;

  int64_t rows_;
  int64_t row_bytes_ = 0;
  NdArray memory_;
};

// Cuts the elements of a pack into the operands again. `results` has a place for each operand.
void unpack(const Pack& pack, const Shards& sums, std::span<const Shards> operands, std::vector<Shards>& results);

}  // namespace shardwise
