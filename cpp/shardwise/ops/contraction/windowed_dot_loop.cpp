// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/ops/contraction/contraction_checks.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/ops/contraction/windowed_dot.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// The rows of a block that travel one way around the ring.
struct Stream {
  int64_t offset = 0, rows = 0;
  int64_t shift = 0;  // the device receives from the one so many places before it
};

std::vector<Stream> streams_of(const WindowedDot& dot, Ring ring) {
  // A gathered block comes from the next device, so that trip t has the block of t devices further on.
  const int64_t shift = dot.gathers ? -1 : 1;
  if (ring == Ring::kOneWay) return {{0, dot.block, shift}};
  const int64_t half = dot.block - dot.block / 2;
  return {{0, half, shift}, {half, dot.block - half, -shift}};
}

std::string_view adding_op(DType dtype) {
  return reducer_op_name(dtype == DType::kBool ? Reducer::kOr : Reducer::kSum);
}

class WindowedLoop {
 public:
  WindowedLoop(Builder& builder, const Module& local, const WindowedDot& dot, const WindowOperands& operands, Ring ring)
      : builder_(builder),
        module_(builder.module()),
        local_(local),
        dot_(dot),
        devices_(product(dot.axes)),
        streams_(streams_of(dot, ring)),
        operands_(operands) {
    own_ = create_axis_index(builder, *dot.mesh, dot.axes);
    const bool is_long = dot.block > (int64_t{1} << 30) / devices_;
    index_dtype_ = is_long ? DType::kI64 : module_.type(own_).dtype;
  }

  std::vector<ValueId> run() { return dot_.gathers ? gathered() : reduced(); }

 private:
  using Product = WindowedDot::Product;

  // ---- both --------------------------------------------------------------------------------------------------------

  OpView op_of(const Product& product) const { return {local_, product.op}; }

  ValueId number(Builder& builder, int64_t value) const {
    return build_scalar(builder, scalar_of(module_.type(own_).dtype, value));
  }

  // The first row of a stream's part of the block of the device `ahead` places further along the ring. `ahead` is a scalar of
  // 0 or more, or -that where `is_behind`.
  ValueId first_row(Builder& builder, const Stream& stream, ValueId ahead, bool is_behind) const {
    ValueId at = builder.create("stablehlo.add", {own_, is_behind ? number(builder, devices_) : ahead});
    if (is_behind) at = builder.create("stablehlo.subtract", {at, ahead});
    const ValueId device = builder.create("stablehlo.remainder", {at, number(builder, devices_)});
    const ValueId row = builder.create("stablehlo.multiply", {build_convert(builder, device, index_dtype_),
                                                              build_scalar(builder, scalar_of(index_dtype_, dot_.block))});
    if (stream.offset == 0) return row;
    return builder.create("stablehlo.add", {row, build_scalar(builder, scalar_of(index_dtype_, stream.offset))});
  }

  std::vector<ValueId> starts(Builder& builder, size_t ndim, size_t dim, ValueId row) const {
    std::vector<ValueId> starts(ndim, build_scalar(builder, scalar_of(index_dtype_, 0)));
    starts[dim] = row;
    return starts;
  }

  ValueId rows_of(Builder& builder, ValueId value, size_t dim, ValueId row, int64_t rows) const {
    Dims sizes = module_.type(value).shape;
    sizes[dim] = rows;
    return build_dynamic_slice(builder, value, starts(builder, sizes.size(), dim, row), sizes);
  }

  // Blocks that are read at their place must exist.
  ValueId filled_up(ValueId value, size_t dim) const {
    const int64_t missing = dot_.block * devices_ - module_.type(value).shape[dim];
    return missing == 0 ? value : build_pad_along(builder_, value, 0, dim, 0, missing);
  }

  // A block as the ops between would leave it: all but its padding.
  ValueId moved(ValueId block, size_t dim) const {
    for (const OpId id : dot_.between) {
      const OpView op(local_, id);
      const std::optional<size_t> after = dim_after(op, dim);
      if (!after) continue;
      if (const auto* permutation = op.attrs().find<IntArray>("permutation")) {
        block = build_transpose(builder_, block, *permutation);
      } else {
        Dims shape = op.result_type().shape;
        shape[*after] = module_.type(block).shape[dim];
        block = build_reshape(builder_, block, shape);
      }
      dim = *after;
    }
    return block;
  }

  ValueId permuted(Builder& builder, ValueId value, int64_t shift) const {
    const ValueId moved = create_ring_shift(builder, *dot_.mesh, value, dot_.axes, shift);
    const Attrs& from = OpView(local_, dot_.collective).attrs();
    if (const auto* cause = from.find<std::string>("cause")) {
      Attrs attrs = OpView(module_, module_.value(moved).op).attrs();
      attrs.set("cause", *cause + ", windowed");
      module_.op(module_.value(moved).op).attrs = module_.context().intern(attrs);
    }
    return moved;
  }

  // while(%t = 0, carries) cond { %t < devices - 1 }. `body` makes the next carries, by the trip.
  template <class Body>
  std::vector<ValueId> loop(std::vector<ValueId> carries, Body&& body) {
    carries.insert(carries.begin(), number(builder_, 0));
    Builder condition = in_region(carries), inner = in_region(carries);
    const ValueId counter = module_.region(condition.region()).arguments[0];
    const ValueId goes_on = build_compare(condition, "LT", counter, number(condition, devices_ - 1));
    module_.region(condition.region()).results = {goes_on};
    const std::vector<ValueId> arguments = module_.region(inner.region()).arguments;
    std::vector<ValueId> next = body(inner, arguments[0], std::span(arguments).subspan(1));
    next.insert(next.begin(), inner.create("stablehlo.add", {arguments[0], number(inner, 1)}));
    module_.region(inner.region()).results = std::move(next);
    const RegionId regions[] = {condition.region(), inner.region()};
    const OpId made = builder_.create_op("stablehlo.while", carries, {}, {}, regions);
    std::vector<ValueId> results;
    for (uint32_t i = 1; i < carries.size(); ++i) results.push_back(module_.result(made, i));
    return results;
  }

  Builder in_region(const std::vector<ValueId>& carries) const {
    Builder inner(module_, module_.add_region(), builder_.loc());
    inner.set_loc(builder_.loc(), builder_.origin());
    for (const ValueId carry : carries) {
      module_.add_argument(inner.region(), module_.value(carry).type, builder_.loc());
    }
    return inner;
  }

  // ---- gathers -----------------------------------------------------------------------------------------------------

  std::vector<ValueId> gathered() {
    std::vector<ValueId> carries;
    const ValueId shard = moved(operands_.shard, dot_.collective_dim);
    for (const Stream& stream : streams_) {
      carries.push_back(build_slice_along(builder_, shard, dot_.dim, stream.offset, stream.offset + stream.rows));
    }
    for (size_t k = 0; k < dot_.products.size(); ++k) {
      const Product& product = dot_.products[k];
      const std::optional<size_t> read = product.gathers_lhs ? product.dims.rhs : product.dims.lhs;
      if (read) operands_.others[k] = filled_up(operands_.others[k], *read);
      TensorType type = op_of(product).result_type();
      if (product.dims.result) {
        type.shape[*product.dims.result] = dot_.block * devices_;
      } else {
        type.dtype = dtype_of_sums(type.dtype);
      }
      carries.push_back(build_zeros(builder_, type));
    }
    const size_t blocks = streams_.size();
    carries = loop(std::move(carries), [&](Builder& inner, ValueId trip, std::span<const ValueId> values) {
      std::vector<ValueId> next;
      for (size_t s = 0; s < blocks; ++s) next.push_back(permuted(inner, values[s], streams_[s].shift));
      for (const ValueId sum : with_blocks(inner, trip, values)) next.push_back(sum);
      return next;
    });
    std::vector<ValueId> results = with_blocks(builder_, number(builder_, devices_ - 1), carries);
    for (size_t k = 0; k < results.size(); ++k) results[k] = finished(dot_.products[k], results[k]);
    return results;
  }

  // The results so far with the products of the blocks that are here in this trip.
  std::vector<ValueId> with_blocks(Builder& builder, ValueId trip, std::span<const ValueId> values) const {
    const std::span<const ValueId> blocks = values.first(streams_.size()), sums = values.subspan(streams_.size());
    std::vector<ValueId> rows, next;
    for (const Stream& stream : streams_) rows.push_back(first_row(builder, stream, trip, stream.shift > 0));
    for (size_t k = 0; k < sums.size(); ++k) {
      const bool is_summed = !dot_.products[k].dims.result;
      next.push_back(is_summed ? with_sum(builder, k, sums[k], blocks, rows) : with_parts(builder, k, sums[k], blocks, rows));
    }
    return next;
  }

  // What the other operand has beside a block.
  ValueId other_of(Builder& builder, size_t k, ValueId block, ValueId row) const {
    const Product& product = dot_.products[k];
    const std::optional<size_t> read = product.gathers_lhs ? product.dims.rhs : product.dims.lhs;
    if (!read) return operands_.others[k];
    return rows_of(builder, operands_.others[k], *read, row, module_.type(block).shape[dot_.dim]);
  }

  ValueId product_of(Builder& builder, size_t k, ValueId block, ValueId other, DType dtype) const {
    const Product& product = dot_.products[k];
    return partial(builder, product, product.gathers_lhs ? block : other, product.gathers_lhs ? other : block, dtype);
  }

  ValueId with_parts(Builder& builder, size_t k, ValueId made, std::span<const ValueId> blocks,
                     std::span<const ValueId> rows) const {
    const TensorType type = module_.type(made);
    for (size_t s = 0; s < blocks.size(); ++s) {
      const ValueId other = other_of(builder, k, blocks[s], rows[s]);
      const ValueId part = product_of(builder, k, blocks[s], other, type.dtype);
      made = build_dynamic_update_slice(builder, made, part,
                                        starts(builder, type.shape.size(), *dot_.products[k].dims.result, rows[s]));
    }
    return made;
  }

  // One product of all blocks: adding it reads and writes as much as the whole result.
  ValueId with_sum(Builder& builder, size_t k, ValueId sum, std::span<const ValueId> blocks,
                   std::span<const ValueId> rows) const {
    const Product& product = dot_.products[k];
    const DType dtype = module_.type(sum).dtype;
    const TensorType whole = op_of(product).operand_type(product.gathers_lhs ? 0 : 1);
    std::vector<ValueId> here, others;
    for (size_t s = 0; s < blocks.size(); ++s) {
      here.push_back(masked(builder, blocks[s], rows[s], whole));
      others.push_back(other_of(builder, k, blocks[s], rows[s]));
    }
    const size_t read = *(product.gathers_lhs ? product.dims.rhs : product.dims.lhs);
    const ValueId block = build_concatenate(builder, here, static_cast<int64_t>(dot_.dim));
    const ValueId other = build_concatenate(builder, others, static_cast<int64_t>(read));
    return builder.create(adding_op(dtype), {sum, product_of(builder, k, block, other, dtype)});
  }

  ValueId partial(Builder& builder, const Product& product, ValueId lhs, ValueId rhs, DType dtype) const {
    const OpView op = op_of(product);
    return build_dot(builder, lhs, rhs, dot_dims(op.attrs()), dtype, op.attrs());
  }

  // Zeros in the padding of the last block, which a sum would read.
  ValueId masked(Builder& builder, ValueId block, ValueId row, const TensorType& whole) const {
    const int64_t size = whole.shape[dot_.dim];
    if (size == dot_.block * devices_) return block;
    const TensorType type = module_.type(block);
    const Dims rows{type.shape[dot_.dim]};
    const ValueId index = builder.create(
        "stablehlo.add", {build_iota(builder, index_dtype_, rows, 0), build_broadcast(builder, row, rows, {})});
    const ValueId limit = build_splat(builder, rows, scalar_of(index_dtype_, size));
    const ValueId inside = build_compare(builder, "LT", index, limit);
    const ValueId mask = build_broadcast(builder, inside, type.shape, Dims{static_cast<int64_t>(dot_.dim)});
    return builder.create("stablehlo.select", {mask, block, build_zeros(builder, type)});
  }

  ValueId finished(const Product& product, ValueId value) const {
    const TensorType type = op_of(product).result_type();
    if (!product.dims.result) return build_convert(builder_, value, type.dtype);
    const size_t dim = *product.dims.result;
    return build_slice_along(builder_, value, dim, 0, type.shape[dim]);
  }

  // ---- reductions --------------------------------------------------------------------------------------------------

  std::vector<ValueId> reduced() {
    const Product& product = dot_.products[0];
    if (product.dims.lhs) operands_.others[0] = filled_up(operands_.others[0], *product.dims.lhs);
    if (product.dims.rhs) operands_.others[1] = filled_up(operands_.others[1], *product.dims.rhs);
    const DType result = op_of(product).result_type().dtype, dtype = dtype_of_sums(result);
    std::vector<ValueId> sums;
    for (const Stream& stream : streams_) sums.push_back(part_of_sum(builder_, stream, number(builder_, 1), dtype));
    sums = loop(std::move(sums), [&](Builder& inner, ValueId trip, std::span<const ValueId> values) {
      std::vector<ValueId> next;
      const ValueId behind = inner.create("stablehlo.add", {trip, number(inner, 2)});
      for (size_t s = 0; s < streams_.size(); ++s) {
        const ValueId received = permuted(inner, values[s], streams_[s].shift);
        next.push_back(inner.create(adding_op(dtype), {received, part_of_sum(inner, streams_[s], behind, dtype)}));
      }
      return next;
    });
    for (ValueId& sum : sums) sum = build_convert(builder_, sum, result);
    return {moved(build_concatenate(builder_, sums, static_cast<int64_t>(dot_.dim)), dot_.dim)};
  }

  // Of the block of the device that the sum has so many places to go to, less one ring: `behind` is from 1 to the devices.
  ValueId part_of_sum(Builder& builder, const Stream& stream, ValueId behind, DType dtype) const {
    const Product& product = dot_.products[0];
    const ValueId row = first_row(builder, stream, behind, stream.shift > 0);
    ValueId lhs = operands_.others[0], rhs = operands_.others[1];
    if (product.dims.lhs) lhs = rows_of(builder, lhs, *product.dims.lhs, row, stream.rows);
    if (product.dims.rhs) rhs = rows_of(builder, rhs, *product.dims.rhs, row, stream.rows);
    return partial(builder, product, lhs, rhs, dtype);
  }

  Builder& builder_;
  Module& module_;
  const Module& local_;
  const WindowedDot& dot_;
  const int64_t devices_;
  const std::vector<Stream> streams_;
  WindowOperands operands_;
  ValueId own_;
  DType index_dtype_ = DType::kI32;
};

}  // namespace

std::vector<ValueId> build_windowed_dot(Builder& builder, const Module& local, const WindowedDot& dot,
                                        const WindowOperands& operands, Ring ring) {
  return WindowedLoop(builder, local, dot, operands, ring).run();
}

}  // namespace shardwise
