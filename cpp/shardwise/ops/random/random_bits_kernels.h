// SPDX-License-Identifier: Apache-2.0
//
// The generators of rng_bit_generator, with the bits of XLA's (tests/conformance/stablehlo/ops/control.py):
//
//   PHILOX, DEFAULT   Philox 4x32-10. Key: state[0]. Block b of four words has counter
//                     {state[1], state[2] or state[0]} + b; the elements take the words in row-major order,
//                     64-bit ones two each, the low one first.
//   THREE_FRY         Threefry 2x32-20. Key: state[0]. A 64-bit element is the block with counter state[1] + its index.
//                     Others are words of blocks of half the shape: the first even dim (else the largest one) is
//                     halved, and elements 2i and 2i + 1 along it are the two words of block i.
//
// Narrow elements are the low bits of 32. The last number of the state is advanced by the blocks, with carry.
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

enum class BitGenerator : uint8_t { kPhilox, kThreeFry };

// How many blocks the whole result takes.
int64_t block_count(BitGenerator generator, DimSpan shape, int64_t item_size);
// The part of a result of `shape` that begins at `start`; `state` has two or three numbers.
void generate_bits(KernelContext& context, BitGenerator generator, std::span<const uint64_t> state, const Dims& shape,
                   const Dims& start, const NdArray& to);

}  // namespace shardwise
