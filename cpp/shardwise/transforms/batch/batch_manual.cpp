// SPDX-License-Identifier: Apache-2.0
//
// Ops of several devices as ops on rows:
//
//   manual_computation      operands as rows along its axes, the batched body, results as whole values
//   collectives, numbers    by their DeviceOp
//
//   tensor<8x6xf32>, [{"x"}, {"y"}] on x=2, y=3     reshape to 2x4x3x2, transpose to 2x3x4x2: tensor<6x4x2xf32>
#include <algorithm>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/mesh/digits.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/collectives/device_numbers.h"
#include "shardwise/ops/collectives/device_ops.h"
#include "shardwise/ops/sharding/constraints.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/transforms/batch/batch_walk.h"
#include "shardwise/transforms/batch/manual_axes.h"

namespace shardwise {

TensorSharding row_sharding(const BatchAxes& axes, AxisSet set, std::vector<DimSharding> dims) {
  TensorSharding sharding;
  sharding.mesh = axes.mesh();
  if (set != 0) dims.insert(dims.begin(), DimSharding{.axes = axes.refs(set), .open = false, .priority = {}});
  sharding.dims = std::move(dims);
  sharding.replicated = sort_and_merge(axes.refs(axes.all() & ~set));
  return sharding;
}

ValueId constrain_rows(Builder& builder, const BatchAxes& axes, ValueId value, AxisSet set) {
  if (axes.mesh() == nullptr || axes.are_examples()) return value;
  const size_t ndim = shape_of_row(builder.module(), value, set).size();
  const DimSharding open{.axes = {}, .open = true, .priority = {}};
  return create_sharding_constraint(builder, value, row_sharding(axes, set, std::vector<DimSharding>(ndim, open)));
}

namespace {

// The value and its row, with the dims that its sharding cuts.
class CutValue {
 public:
  CutValue(Builder& builder, const ManualAxes& manual, const TensorSharding& sharding)
      : builder_(builder), manual_(manual), axes_(manual.axes()), sharding_(sharding), cut_(manual.of(sharding)) {}

  // Splits the global value, with rows along axes around the computation, into rows along the axes that cut it, too.
  ValueId rows_of(ValueId whole, AxisSet around) const {
    const AxisSet set = around | cut_;
    const Dims shape = shape_of_row(builder_.module(), whole, around);
    whole = constrained(whole, around, sharding_);
    if (cut_ == 0) return whole;
    const Interleaving dims = interleaving(around, shape, true);
    const ValueId apart = build_reshape(builder_, whole, dims.shape);
    const ValueId front = build_transpose(builder_, apart, dims.places);
    return constrained(build_reshape(builder_, front, axes_.with_rows(set, dims.local)), set,
                       manual_.inside(sharding_));
  }

  // The inverse, where `set` are the axes of the rows. Along axes that do not cut the value, the first rows are taken.
  // The last op that is made has the location `last`, which may name it.
  ValueId whole_of(ValueId value, AxisSet set, AxisSet& around, LocId last) const {
    around = set & manual_.around();
    const AxisSet wanted = around | cut_;
    const Dims local = shape_of_row(builder_.module(), value, set);
    value = repeat_rows(builder_, axes_, value, set, set | wanted);
    value = take_first_rows(builder_, axes_, value, set | wanted, wanted);
    if (cut_ == 0) builder_.set_loc(last, builder_.origin());
    value = constrained(value, wanted, manual_.inside(sharding_));
    if (cut_ == 0) return value;
    const Interleaving dims = interleaving(around, local, false);
    const ValueId apart = build_reshape(builder_, value, joined(axes_.sizes(wanted), local));
    const ValueId beside = build_transpose(builder_, apart, inverse_permutation(dims.places));
    const ValueId whole = build_reshape(builder_, beside, axes_.with_rows(around, dims.whole));
    builder_.set_loc(last, builder_.origin());
    return constrained(whole, around, sharding_);
  }

 private:
  struct Interleaving {
    Dims shape;         // [rows around, axes of dim 0 …, local dim 0, axes of dim 1 …]
    Dims places;        // of those dims: rows around, axes in order, local dims
    Dims local, whole;  // of one row, and of the value
  };

  // `shape` is that of the global value, or of a row.
  Interleaving interleaving(AxisSet around, DimSpan shape, bool is_whole) const {
    Interleaving dims;
    for (const int64_t size : axes_.sizes(around)) {
      dims.places.push_back(std::ssize(dims.shape));
      dims.shape.push_back(size);
    }
    std::vector<std::pair<size_t, int64_t>> cuts;  // axis, and place
    Dims local_places;
    for (size_t d = 0; d < shape.size(); ++d) {
      const AxisSet set = manual_.of_dim(sharding_.dims[d]);
      const int64_t parts = axes_.rows(set);
      // A dim lists its axes major to minor, whatever their order in the mesh.
      for (const AxisRef& ref : sharding_.dims[d].axes) {
        for (const size_t axis : axes_.members(axes_.inside(ref) & set)) {
          cuts.emplace_back(axis, std::ssize(dims.shape));
          dims.shape.push_back(axes_.size(axis));
        }
      }
      dims.local.push_back(is_whole ? shape[d] / parts : shape[d]);
      dims.whole.push_back(is_whole ? shape[d] : shape[d] * parts);
      local_places.push_back(std::ssize(dims.shape));
      dims.shape.push_back(dims.local.back());
    }
    std::ranges::sort(cuts);
    for (const auto& [axis, place] : cuts) dims.places.push_back(place);
    dims.places = joined(dims.places, local_places);
    return dims;
  }

  ValueId constrained(ValueId value, AxisSet set, const TensorSharding& sharding) const {
    if (axes_.mesh() == nullptr || sharding.mesh->is_empty()) return value;
    TensorSharding all = row_sharding(axes_, set, sharding.dims);
    // The global value is not replicated along the axes of its dims.
    const AxisList named = sharding.axes_sharding();
    erase_if(all.replicated, [&](const AxisRef& ref) { return overlaps(named, ref); });
    append(all.replicated, difference(sharding.replicated, all.axes_used()));
    all.replicated = sort_and_merge(all.replicated);
    for (DimSharding& dim : all.dims) {
      if (dim.axes.empty() && !dim.open) dim.priority.reset();
    }
    return create_sharding_constraint(builder_, value, all);
  }

  Builder& builder_;
  const ManualAxes& manual_;
  const BatchAxes& axes_;
  const TensorSharding& sharding_;
  const AxisSet cut_;
};

}  // namespace

void BatchWalk::manual_region(OpId id) {
  // A name is that of a result, not of all ops that are made here.
  const LocId named = builder_->loc();
  LocId place = named;
  while (place && module_.context().location(place).kind == Location::Kind::kName) {
    place = module_.context().location(place).child;
  }
  builder_->set_loc(place);
  const ManualAxes manual(OpView(module_, id), axes_);
  manual.refuse_unreduced();
  const RegionId body = module_.regions(id)[0];
  const std::vector<ValueId> arguments = module_.region(body).arguments;
  BatchWalk inner(*builder_, manual.axes());
  inner.masked_by_ = masked_by_;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ValueId operand = module_.operands(id)[i];
    const TensorSharding sharding = manual.sharding(arguments[i]);
    const ValueId rows = CutValue(*builder_, manual, sharding).rows_of(image(operand), varies(operand));
    inner.map(arguments[i], rows, varies(operand) | manual.of(sharding));
  }
  inner.run(body);
  const std::vector<ValueId> results = module_.region(body).results;
  for (uint32_t i = 0; i < results.size(); ++i) {
    const ValueId result = module_.result(id, i);
    const TensorSharding sharding = manual.sharding(result);
    AxisSet around = 0;
    const CutValue cut(*builder_, manual, sharding);
    builder_->set_loc(place);
    const ValueId whole = cut.whole_of(inner.image(results[i]), inner.varies(results[i]), around, named);
    map(result, whole, around);
  }
}

// ---- collectives ---------------------------------------------------------------------------------------------------

class BatchWalk::DeviceContext final : public RowContext {
 public:
  DeviceContext(BatchWalk& walk, OpId id) : walk_(walk), id_(id) {}

  OpView op() const override { return OpView(walk_.module_, id_); }
  Builder& builder() override { return *walk_.builder_; }
  const BatchAxes& axes() const override { return walk_.axes_; }
  AxisSet varies(size_t i) const override { return walk_.varies(original(i)); }
  ValueId operand(size_t i, AxisSet set) override { return walk_.image(original(i), set); }
  void set_result(size_t i, ValueId rows, AxisSet set) override {
    const ValueId result = walk_.module_.result(id_, static_cast<uint32_t>(i));
    check_internal(shape_of_row(walk_.module_, rows, set) == walk_.module_.type(result).shape,
                   str("result ", i, " of ", op().name(), " must have its type"));
    // The number of a device is not constrained: it costs less to compute it again than to send it.
    const bool is_number = op().operand_count() == 0;
    walk_.map(result, is_number ? rows : constrain_rows(builder(), axes(), rows, set), set);
  }

 private:
  ValueId original(size_t i) const { return walk_.module_.operands(id_)[i]; }
  BatchWalk& walk_;
  OpId id_;
};

bool BatchWalk::number_of_device(OpId id) {
  const OpView op(module_, id);
  const std::optional<DeviceNumber> number = device_number(op, axes_);
  if (!number) return false;
  map(op.result(), build_device_number(*builder_, *number, axes_, op.result_type().dtype), number->axes());
  return true;
}

void BatchWalk::device_op(OpId id) {
  DeviceContext context(*this, id);
  find_device_op(*module_.op(id).def)->expand(context);
}

}  // namespace shardwise
