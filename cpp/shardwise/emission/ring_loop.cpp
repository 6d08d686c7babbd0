// SPDX-License-Identifier: Apache-2.0
#include "shardwise/emission/ring_loop.h"

#include <utility>

#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

Builder region_like(const Builder& builder, const std::vector<ValueId>& carries) {
  Module& module = builder.module();
  Builder inner(module, module.add_region(), builder.loc());
  inner.set_loc(builder.loc(), builder.origin());
  for (const ValueId carry : carries) {
    module.add_argument(inner.region(), module.value(carry).type, builder.loc());
  }
  return inner;
}

}  // namespace

RingLoop::RingLoop(Builder& builder, const Mesh& mesh, const AxisList& axes, int64_t block)
    : mesh_(mesh), axes_(axes), devices_(product(axes)), block_(block), own_(create_axis_index(builder, mesh, axes)) {
  if (rows() > (int64_t{1} << 30)) index_dtype_ = DType::kI64;
}

ValueId RingLoop::number(Builder& builder, int64_t value) const {
  return build_scalar(builder, scalar_of(builder.module().type(own_).dtype, value));
}

ValueId RingLoop::first_row(Builder& builder, const RingStream& stream, ValueId places) const {
  const bool is_from_before = stream.shift > 0;
  ValueId at = builder.create("stablehlo.add", {own_, is_from_before ? number(builder, devices_) : places});
  if (is_from_before) at = builder.create("stablehlo.subtract", {at, places});
  const ValueId device = builder.create("stablehlo.remainder", {at, number(builder, devices_)});
  const ValueId block = build_scalar(builder, scalar_of(index_dtype_, block_));
  const ValueId row = builder.create("stablehlo.multiply", {build_convert(builder, device, index_dtype_), block});
  if (stream.offset == 0) return row;
  return builder.create("stablehlo.add", {row, build_scalar(builder, scalar_of(index_dtype_, stream.offset))});
}

std::vector<ValueId> RingLoop::starts(Builder& builder, size_t ndim, size_t dim, ValueId first) const {
  std::vector<ValueId> starts(ndim, build_scalar(builder, scalar_of(index_dtype_, 0)));
  starts[dim] = first;
  return starts;
}

ValueId RingLoop::rows_of(Builder& builder, ValueId value, size_t dim, ValueId first, int64_t count) const {
  Dims sizes = builder.module().type(value).shape;
  sizes[dim] = count;
  return build_dynamic_slice(builder, value, starts(builder, sizes.size(), dim, first), sizes);
}

ValueId RingLoop::with_rows(Builder& builder, ValueId value, ValueId rows, size_t dim, ValueId first) const {
  const size_t ndim = builder.module().type(value).shape.size();
  return build_dynamic_update_slice(builder, value, rows, starts(builder, ndim, dim, first));
}

ValueId RingLoop::masked(Builder& builder, ValueId block, size_t dim, ValueId first, int64_t size) const {
  if (size == rows()) return block;
  const TensorType type = builder.module().type(block);
  const Dims count{type.shape[dim]};
  const ValueId index = builder.create(
      "stablehlo.add", {build_iota(builder, index_dtype_, count, 0), build_broadcast(builder, first, count, {})});
  const ValueId limit = build_splat(builder, count, scalar_of(index_dtype_, size));
  const ValueId inside = build_compare(builder, "LT", index, limit);
  const ValueId mask = build_broadcast(builder, inside, type.shape, Dims{static_cast<int64_t>(dim)});
  return builder.create("stablehlo.select", {mask, block, build_zeros(builder, type)});
}

ValueId RingLoop::filled_up(Builder& builder, ValueId value, size_t dim) const {
  const int64_t missing = rows() - builder.module().type(value).shape[dim];
  return missing == 0 ? value : build_pad_along(builder, value, 0, dim, 0, missing);
}

ValueId RingLoop::shifted(Builder& builder, ValueId block, int64_t shift) const {
  return create_ring_shift(builder, mesh_, block, axes_, shift);
}

std::vector<ValueId> RingLoop::run(Builder& builder, std::vector<ValueId> carries, const Body& body) const {
  Module& module = builder.module();
  carries.insert(carries.begin(), number(builder, 0));
  Builder condition = region_like(builder, carries), inner = region_like(builder, carries);
  const ValueId counter = module.region(condition.region()).arguments[0];
  const ValueId goes_on = build_compare(condition, "LT", counter, number(condition, devices_ - 1));
  module.region(condition.region()).results = {goes_on};
  const std::vector<ValueId> arguments = module.region(inner.region()).arguments;
  std::vector<ValueId> next = body(inner, arguments[0], std::span(arguments).subspan(1));
  next.insert(next.begin(), inner.create("stablehlo.add", {arguments[0], number(inner, 1)}));
  module.region(inner.region()).results = std::move(next);
  const RegionId regions[] = {condition.region(), inner.region()};
  const OpId loop = builder.create_op("stablehlo.while", carries, {}, {}, regions);
  std::vector<ValueId> results;
  for (uint32_t i = 1; i < carries.size(); ++i) results.push_back(module.result(loop, i));
  return results;
}

}  // namespace shardwise
