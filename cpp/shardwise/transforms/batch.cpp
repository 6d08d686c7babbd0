// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/batch.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/transforms/decompose.h"

namespace shardwise {
namespace {

class BatchWalk {
 public:
  BatchWalk(Builder& builder, int64_t size)
      : builder_(builder), module_(builder.module()), size_(size), copy_(module_, module_) {}

  void map(ValueId original, ValueId image, bool batched) {
    copy_.map(original, image);
    batched_[original] = batched;
  }
  ValueId image(ValueId original) const { return copy_(original); }
  bool is_batched(ValueId original) const {
    const auto it = batched_.find(original);
    return it != batched_.end() && it->second;
  }

  void run(RegionId body) {
    const std::vector<OpId> ops = module_.region(body).ops;
    const LocId loc = builder_.loc();
    for (OpId id : ops) visit(id);
    builder_.set_loc(loc);
  }

 private:
  class Context;

  void visit(OpId id) {
    builder_.set_loc(module_.op(id).loc);
    if (!uses_batched(id)) {
      copy_.op(id, builder_.region());
    } else if (module_.op(id).def->batch == nullptr) {
      expand(id);
    } else {
      batch(id);
    }
  }

  // Batches the ops that make it up, which a region of their own holds meanwhile.
  void expand(OpId id) {
    const RegionId region = module_.add_region();
    Builder inner(module_, region);
    const OpView op(module_, id);
    const std::vector<ValueId> results = append_decomposition(inner, op);
    if (results.empty()) refuse_to_decompose(op, "batched");
    const std::vector<OpId> ops = module_.region(region).ops;
    for (const OpId made : ops) visit(made);
    for (size_t i = 0; i < results.size(); ++i) map(op.result(i), image(results[i]), is_batched(results[i]));
  }

  bool uses_batched(OpId id) const {
    for (RegionId region : module_.regions(id)) check_no_capture(id, region);
    return std::ranges::any_of(module_.operands(id), [&](ValueId operand) { return is_batched(operand); });
  }

  void check_no_capture(OpId owner, RegionId region) const {
    for (OpId id : module_.region(region).ops) {
      for (ValueId operand : module_.operands(id)) {
        if (!is_batched(operand)) continue;
        fail<ShapeError>(module_.op(owner).def->name, "a batched value must reach the region as an operand",
                         "a captured value", "pass it as an argument");
      }
      for (RegionId inner : module_.regions(id)) check_no_capture(owner, inner);
    }
  }

  void batch(OpId id);

  Builder& builder_;
  Module& module_;
  int64_t size_;
  GraphCopy copy_;
  std::unordered_map<ValueId, bool> batched_;  // by value of the body
};

class BatchWalk::Context final : public BatchContext {
 public:
  Context(BatchWalk& walk, OpId id) : walk_(walk), id_(id) {}

  OpView op() const override { return OpView(walk_.module_, id_); }
  Builder& builder() override { return walk_.builder_; }
  int64_t size() const override { return walk_.size_; }
  bool is_batched(size_t i) const override { return walk_.is_batched(original(i)); }
  ValueId operand(size_t i) const override { return walk_.image(original(i)); }
  ValueId batched(size_t i) override {
    return is_batched(i) ? operand(i) : append_leading_dim(walk_.builder_, operand(i), walk_.size_);
  }
  void set_result(size_t i, ValueId value) override {
    const ValueId result = walk_.module_.result(id_, static_cast<uint32_t>(i));
    const TensorType& type = walk_.module_.type(result);
    Dims wanted{walk_.size_};
    wanted.insert(wanted.end(), type.shape.begin(), type.shape.end());
    check_internal(walk_.module_.type(value).shape == wanted,
                   str("result ", i, " of the batched ", op().name(), " is ", walk_.module_.type(value).text()));
    walk_.map(result, value, true);
  }

 private:
  ValueId original(size_t i) const { return walk_.module_.operands(id_)[i]; }
  BatchWalk& walk_;
  OpId id_;
};

void BatchWalk::batch(OpId id) {
  Context context(*this, id);
  module_.op(id).def->batch(context);
}

void check_argument(const Module& module, ValueId parameter, ValueId argument, bool batched, int64_t size) {
  const TensorType& wanted = module.type(parameter);
  const TensorType& got = module.type(argument);
  Dims shape = wanted.shape;
  if (batched) shape.insert(shape.begin(), size);
  if (got.dtype == wanted.dtype && got.shape == shape) return;
  fail<ShapeError>("vmap", str("an argument must be ", TensorType{wanted.dtype, shape}.text()), got.text(),
                   "all mapped axes must have the same size");
}

}  // namespace

BatchedResults append_batched(Builder& builder, RegionId body, std::span<const ValueId> arguments,
                              const std::vector<bool>& batched, int64_t size) {
  Module& module = builder.module();
  const std::vector<ValueId> parameters = module.region(body).arguments;
  check_internal(parameters.size() == arguments.size() && batched.size() == arguments.size(),
                 "one argument and one flag per parameter");
  BatchWalk walk(builder, size);
  for (size_t i = 0; i < parameters.size(); ++i) {
    check_argument(module, parameters[i], arguments[i], batched[i], size);
    walk.map(parameters[i], arguments[i], batched[i]);
  }
  walk.run(body);
  BatchedResults results;
  for (ValueId result : module.region(body).results) {
    results.values.push_back(walk.image(result));
    results.batched.push_back(walk.is_batched(result));
  }
  return results;
}

ValueId append_leading_dim(Builder& builder, ValueId value, int64_t size) {
  const TensorType type = builder.module().type(value);
  Dims shape{size};
  shape.insert(shape.end(), type.shape.begin(), type.shape.end());
  Dims dims(type.shape.size());
  std::iota(dims.begin(), dims.end(), 1);
  return builder.create("stablehlo.broadcast_in_dim", {value}, Attrs{{"broadcast_dimensions", IntArray(dims)}},
                        {builder.context().tensor(type.dtype, shape)});
}

}  // namespace shardwise
