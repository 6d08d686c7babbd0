// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <utility>

#include "shardwise/emission/cause.h"
#include "shardwise/emission/ring_loop.h"
#include "shardwise/emission/windowed_dot.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/contraction/contraction_checks.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/ops/shared/reducers.h"

namespace shardwise {
namespace {

using WindowedProduct = WindowedDot::Product;

std::vector<RingStream> streams_of(const WindowedDot& dot, Ring ring) {
  // A gathered block comes from the next device, so that trip t has the block of t devices further on.
  const int64_t shift = dot.gathers ? -1 : 1;
  if (ring == Ring::kOneWay) return {{0, dot.block, shift}};
  const int64_t half = dot.block - dot.block / 2;
  return {{0, half, shift}, {half, dot.block - half, -shift}};
}

ValueId added(Builder& builder, ValueId sum, ValueId part) {
  const bool is_bool = builder.module().type(sum).dtype == DType::kBool;
  return builder.create(reducer_op_name(is_bool ? Reducer::kOr : Reducer::kSum), {sum, part});
}

// A window of one program, and the ring that it is written with in the same one or in another.
struct WindowWriter {
  const Module& local;
  const WindowedDot& dot;
  const std::vector<RingStream> streams;
  RingLoop ring;
  WindowOperands operands;

  OpView op_of(const WindowedProduct& product) const { return {local, product.op}; }

  ValueId partial(Builder& builder, const WindowedProduct& product, ValueId lhs, ValueId rhs, DType dtype) const {
    const OpView op = op_of(product);
    return build_dot(builder, lhs, rhs, dot_dims(op.attrs()), dtype, op.attrs());
  }

  ValueId sent(Builder& builder, ValueId block, int64_t shift) const {
    const ValueId moved = ring.shifted(builder, block, shift);
    const auto* cause = OpView(local, dot.collective).attrs().find<std::string>(kCauseAttr);
    if (cause != nullptr) set_cause(builder.module(), moved, *cause + ", windowed");
    return moved;
  }

  // A block as the ops between would leave it: all but its padding.
  ValueId moved(Builder& builder, ValueId block, size_t dim) const {
    for (const OpId id : dot.between) {
      const OpView op(local, id);
      const std::optional<size_t> after = dim_after(op, dim);
      if (!after) continue;
      TensorType type = op.result_type();
      type.shape[*after] = builder.module().type(block).shape[dim];
      const TypeId types[] = {builder.context().tensor(type.dtype, type.shape)};
      block = builder.create(op.def(), {&block, 1}, attrs_of(op), types);
      dim = *after;
    }
    return block;
  }
};

// Blocks of an operand travel.
class GatheringLoop {
 public:
  GatheringLoop(Builder& builder, WindowWriter writer) : builder_(builder), writer_(std::move(writer)) {}

  std::vector<ValueId> run() {
    std::vector<ValueId> carries;
    const ValueId shard = writer_.moved(builder_, writer_.operands.shard, dot().collective_dim);
    for (const RingStream& stream : writer_.streams) {
      carries.push_back(build_slice_along(builder_, shard, dot().dim, stream.offset, stream.offset + stream.rows));
    }
    for (size_t k = 0; k < dot().products.size(); ++k) carries.push_back(empty_result(k));
    carries =
        ring().run(builder_, std::move(carries), [&](Builder& inner, ValueId trip, std::span<const ValueId> values) {
          std::vector<ValueId> next;
          for (size_t s = 0; s < writer_.streams.size(); ++s) {
            next.push_back(writer_.sent(inner, values[s], writer_.streams[s].shift));
          }
          for (const ValueId result : with_blocks(inner, trip, values)) next.push_back(result);
          return next;
        });
    std::vector<ValueId> results = with_blocks(builder_, ring().number(builder_, ring().devices() - 1), carries);
    for (size_t k = 0; k < results.size(); ++k) results[k] = finished(dot().products[k], results[k]);
    return results;
  }

 private:
  const WindowedDot& dot() const { return writer_.dot; }
  const RingLoop& ring() const { return writer_.ring; }

  // The dim of the other operand, if that is read block by block.
  static std::optional<size_t> read_dim(const WindowedProduct& product) {
    return product.gathers_lhs ? product.dims.rhs : product.dims.lhs;
  }

  // Where parts are put, or the sum so far. The other operand gets rows for all blocks.
  ValueId empty_result(size_t k) {
    const WindowedProduct& product = dot().products[k];
    ValueId& other = writer_.operands.others[k];
    if (const auto dim = read_dim(product)) other = ring().filled_up(builder_, other, *dim);
    TensorType type = writer_.op_of(product).result_type();
    if (product.dims.result) {
      type.shape[*product.dims.result] = ring().rows();
    } else {
      type.dtype = dtype_of_sums(type.dtype);
    }
    return build_zeros(builder_, type);
  }

  // The results so far with the products of the blocks that are here in this trip.
  std::vector<ValueId> with_blocks(Builder& builder, ValueId trip, std::span<const ValueId> values) const {
    const size_t count = writer_.streams.size();
    const std::span<const ValueId> blocks = values.first(count), results = values.subspan(count);
    std::vector<ValueId> rows, next;
    for (const RingStream& stream : writer_.streams) rows.push_back(ring().first_row(builder, stream, trip));
    for (size_t k = 0; k < results.size(); ++k) {
      const bool is_sum = !dot().products[k].dims.result;
      next.push_back(is_sum ? with_sum(builder, k, results[k], blocks, rows)
                            : with_parts(builder, k, results[k], blocks, rows));
    }
    return next;
  }

  // Returns the rows of the other operand that are multiplied with a block.
  ValueId other_of(Builder& builder, size_t k, ValueId block, ValueId row) const {
    const ValueId other = writer_.operands.others[k];
    const std::optional<size_t> dim = read_dim(dot().products[k]);
    if (!dim) return other;
    return ring().rows_of(builder, other, *dim, row, builder.module().type(block).shape[dot().dim]);
  }

  ValueId product_of(Builder& builder, size_t k, ValueId block, ValueId other, DType dtype) const {
    const WindowedProduct& product = dot().products[k];
    return product.gathers_lhs ? writer_.partial(builder, product, block, other, dtype)
                               : writer_.partial(builder, product, other, block, dtype);
  }

  ValueId with_parts(Builder& builder, size_t k, ValueId result, std::span<const ValueId> blocks,
                     std::span<const ValueId> rows) const {
    const DType dtype = builder.module().type(result).dtype;
    for (size_t s = 0; s < blocks.size(); ++s) {
      const ValueId other = other_of(builder, k, blocks[s], rows[s]);
      const ValueId part = product_of(builder, k, blocks[s], other, dtype);
      result = ring().with_rows(builder, result, part, *dot().products[k].dims.result, rows[s]);
    }
    return result;
  }

  // One product of all blocks: adding it reads and writes as much as the whole result.
  ValueId with_sum(Builder& builder, size_t k, ValueId sum, std::span<const ValueId> blocks,
                   std::span<const ValueId> rows) const {
    const WindowedProduct& product = dot().products[k];
    // Sums would read the padding of the last block.
    const int64_t size = writer_.op_of(product).operand_type(product.gathers_lhs ? 0 : 1).shape[dot().dim];
    std::vector<ValueId> here, others;
    for (size_t s = 0; s < blocks.size(); ++s) {
      here.push_back(ring().masked(builder, blocks[s], dot().dim, rows[s], size));
      others.push_back(other_of(builder, k, blocks[s], rows[s]));
    }
    const ValueId block = build_concatenate(builder, here, static_cast<int64_t>(dot().dim));
    const ValueId other = build_concatenate(builder, others, static_cast<int64_t>(*read_dim(product)));
    return added(builder, sum, product_of(builder, k, block, other, builder.module().type(sum).dtype));
  }

  ValueId finished(const WindowedProduct& product, ValueId value) const {
    const TensorType type = writer_.op_of(product).result_type();
    if (!product.dims.result) return build_convert(builder_, value, type.dtype);
    const size_t dim = *product.dims.result;
    return build_slice_along(builder_, value, dim, 0, type.shape[dim]);
  }

  Builder& builder_;
  WindowWriter writer_;
};

// Sums of blocks of the result travel, and end at the devices whose blocks they are.
class ScatteringLoop {
 public:
  ScatteringLoop(Builder& builder, WindowWriter writer) : builder_(builder), writer_(std::move(writer)) {
    ValueId &lhs = writer_.operands.others[0], &rhs = writer_.operands.others[1];
    if (product().dims.lhs) lhs = ring().filled_up(builder, lhs, *product().dims.lhs);
    if (product().dims.rhs) rhs = ring().filled_up(builder, rhs, *product().dims.rhs);
  }

  ValueId run() const {
    const DType result = writer_.op_of(product()).result_type().dtype, dtype = dtype_of_sums(result);
    std::vector<ValueId> sums;
    for (const RingStream& stream : writer_.streams) {
      sums.push_back(part_of(builder_, stream, ring().number(builder_, 1), dtype));
    }
    sums = ring().run(builder_, std::move(sums), [&](Builder& inner, ValueId trip, std::span<const ValueId> values) {
      std::vector<ValueId> next;
      const ValueId places = inner.create("stablehlo.add", {trip, ring().number(inner, 2)});
      for (size_t s = 0; s < writer_.streams.size(); ++s) {
        const RingStream& stream = writer_.streams[s];
        const ValueId received = writer_.sent(inner, values[s], stream.shift);
        next.push_back(added(inner, received, part_of(inner, stream, places, dtype)));
      }
      return next;
    });
    for (ValueId& sum : sums) sum = build_convert(builder_, sum, result);
    const ValueId block = build_concatenate(builder_, sums, static_cast<int64_t>(writer_.dot.dim));
    const ValueId made = writer_.moved(builder_, block, writer_.dot.dim);
    // A carry holds the blocks of other devices before: it is not the value that takes the place of the collective's.
    const TypeId types[] = {builder_.module().value(made).type};
    return builder_.create("stablehlo.reshape", {&made, 1}, {}, types);
  }

 private:
  const RingLoop& ring() const { return writer_.ring; }
  const WindowedProduct& product() const { return writer_.dot.products[0]; }

  // This device's part of the block that a sum has here: in its first trip, one place further than where it ends, and in the
  // last one, `places` is all around the ring.
  ValueId part_of(Builder& builder, const RingStream& stream, ValueId places, DType dtype) const {
    const ValueId row = ring().first_row(builder, stream, places);
    ValueId lhs = writer_.operands.others[0], rhs = writer_.operands.others[1];
    if (product().dims.lhs) lhs = ring().rows_of(builder, lhs, *product().dims.lhs, row, stream.rows);
    if (product().dims.rhs) rhs = ring().rows_of(builder, rhs, *product().dims.rhs, row, stream.rows);
    return writer_.partial(builder, product(), lhs, rhs, dtype);
  }

  Builder& builder_;
  WindowWriter writer_;
};

}  // namespace

std::vector<ValueId> build_windowed_dot(Builder& builder, const Module& local, const WindowedDot& dot,
                                        const WindowOperands& operands, Ring ring) {
  WindowWriter writer{local, dot, streams_of(dot, ring), RingLoop(builder, *dot.mesh, dot.axes, dot.block), operands};
  if (dot.gathers) return GatheringLoop(builder, std::move(writer)).run();
  return {ScatteringLoop(builder, std::move(writer)).run()};
}

}  // namespace shardwise
