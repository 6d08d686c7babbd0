// SPDX-License-Identifier: Apache-2.0
//
// Windowed products (GShard, figure 4c): a product beside the collective that brings its operand or takes its result, as one
// counted loop. Each trip multiplies one block while the next one is on its way.
//
//   %w = all_gather %0 {dim 1 over "x"=4}                     %0: 64x16
//   %1 = dot_general %a, %w                                   64x64
//   ->
//   %i = axis_index {"x"}
//   %1 = while(%t = 0, %block = %0, %sum = zeros) cond { %t < 3 } do {
//     %next = collective_permute %block {shift = -1}          from the next device of the ring
//     %j = (%i + %t) mod 4                                    whose block this is
//     %part = dot_general %a, %block
//     return %t + 1, %next, dynamic_update_slice %sum, %part at column 16 %j
//   }
//   …                                                         the last block, which nobody waits for
//
// No device holds the whole operand. The window runs along the dim that is gathered; where that dim is one of
//
//   the result          each part is a block of it          free dims and batching dims of the operand
//   the other operand   a block of it is read               contracting dims, whose parts are added up, and batching dims
//
// In front of a reduce_scatter the sums travel: a device adds its part of a block to what the device before it has of that
// block, and the sum ends at the device whose block it is. Sums of floats of less than 32 bits are float32 on their way.
//
// Ring::kBothWays cuts each block in two halves, which travel in opposite directions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/mesh/mesh.h"

namespace shardwise {

enum class Ring : uint8_t { kOneWay, kBothWays };

// The dim of each tensor of a product along which a window runs, if the tensor has it.
struct WindowedDims {
  std::optional<size_t> lhs, rhs, result;
};

// A collective along one dim, and its products: those that read what an all_gather makes, or an exchange that is one, or the one whose result a
// reduce_scatter takes. All of them are ops of one region.
struct WindowedDot {
  struct Product {
    OpId op;
    WindowedDims dims;
    bool gathers_lhs = false;  // of an all_gather: the operand that is gathered, or else the rhs
  };
  OpId collective;
  // From the collective to the products or the reverse: what cuts off or adds padding, and reshapes and transposes that keep the
  // dim whole, such as one that drops the dim of a scan's rows.
  std::vector<OpId> between = {};
  std::vector<Product> products = {};  // the loop takes the place of the first one, or of the reduce_scatter
  bool gathers = true;
  MeshPtr mesh = nullptr;
  AxisList axes = {};  // of the ring
  size_t dim = 0;      // of what the products read or make
  size_t collective_dim = 0;
  int64_t block = 0;  // rows of a device along it
};

// All of a local program; a product may be in two of them. A gather whose readers cannot stand in one loop is in one window for
// each of them if `splits`: then it is sent once for each.
std::vector<WindowedDot> windowed_dots(Module& local, bool splits);

// The dim of the result that dim `dim` of the operand becomes, if the op is a reshape or a transpose that keeps it whole.
std::optional<size_t> dim_after(const OpView& op, size_t dim);

// Whether a block has enough rows to travel by this ring.
bool has_ring(const WindowedDot& dot, Ring ring);

// The values from around a window: what travels first, which is none of a reduction, and for each product what it reads besides.
struct WindowOperands {
  ValueId shard;
  std::vector<ValueId> others;  // of a reduction: lhs and rhs
};
WindowOperands window_operands(const Module& local, const WindowedDot& dot);

// Appends the loop: the results of the products, or that of the reduce_scatter. The operands may be values of another module than
// the window is of, with the same context.
std::vector<ValueId> build_windowed_dot(Builder& builder, const Module& local, const WindowedDot& dot,
                                        const WindowOperands& operands, Ring ring);

}  // namespace shardwise
