// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/scan.h"

#include <limits>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/ops/control/scan_attributes.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

constexpr std::string_view kIsAssociative = "is_associative";

// ---- infer ---------------------------------------------------------------------------------------------------------

// As many sizes as `kinds`, whose sum is `count`.
std::vector<size_t> read_segments(const InferContext& op, std::string_view name, size_t kinds, size_t count) {
  const Dims& sizes = op.attr<NarrowIntArray>(name).values;
  std::vector<size_t> segments;
  size_t left = count;
  for (const int64_t size : sizes) {
    // Compared with what is left, so that the sum cannot overflow.
    if (size < 0 || std::cmp_greater(size, left)) break;
    segments.push_back(static_cast<size_t>(size));
    left -= segments.back();
  }
  if (segments.size() != kinds || sizes.size() != kinds || left != 0) {
    op.fail_shape(str(name, " must have ", kinds, " sizes, whose sum is ", count), str("[", join(sizes, ", "), "]"),
                  "correct it");
  }
  return segments;
}

void check_flag(const InferContext& op, std::string_view name) {
  if (op.attrs().find(name) != nullptr) op.attr<bool>(name);
}

class ScanInference {
 public:
  ScanInference(const InferContext& op, bool is_local) : op_(op), module_(op.module()), is_local_(is_local) {}

  void run(std::vector<TypeId>& results) {
    op_.expect_regions(1);
    check_flag(op_, kScanIsReverse);
    check_flag(op_, kIsAssociative);
    body_ = &module_.region(op_.regions()[0]);
    read_segments_of_op();
    read_dimension();
    read_trips();
    // check_rows counts the borders that the inputs need; check_arguments compares the count.
    for (size_t i = 0; i < inputs_; ++i) check_rows(i);
    check_arguments();
    infer_results(results);
  }

  bool stacks_nothing() const { return inputs_ + outputs_ == 0; }

 private:
  void read_segments_of_op() {
    const std::vector<size_t> operands = read_segments(op_, kScanOperands, is_local_ ? 3 : 2, op_.operand_count());
    const std::vector<size_t> results = read_segments(op_, kScanResults, 2, body_->results.size());
    inputs_ = operands.front();
    borders_ = is_local_ ? operands[1] : 0;
    carries_ = operands.back();
    outputs_ = results.front();
    if (carries_ != results.back()) {
      op_.fail_shape("there must be as many carries among the results as among the operands",
                     str(results.back(), " for ", carries_), "return each carry");
    }
    if (is_local_) offsets_ = op_.attr<IntArray>(kScanOffsets);
    if (is_local_ && offsets_.size() != inputs_) {
      op_.fail_shape(str("there must be an offset for each of the ", inputs_, " inputs"), str(offsets_.size()));
    }
  }

  void read_dimension() {
    dimension_ = op_.attr<IntAttr>(kScanDimension).value;
    if (dimension_ < 0) op_.fail_shape("dimension must not be negative", str(dimension_), "count dims from the first");
    for (size_t i = 0; i < inputs_; ++i) {
      if (dimension_ < op_.operand(i).ndim()) continue;
      op_.fail_shape("dimension must be a dim of each input", str(dimension_, " for ", op_.operand(i).text()),
                     "name a dim of the inputs");
    }
  }

  // From the attribute, else from the first input, else from the type that the text gives the first output.
  void read_trips() {
    if (is_local_ || op_.attrs().find(kScanTrips) != nullptr) {
      trips_ = op_.attr<IntAttr>(kScanTrips).value;
      if (trips_ < 0) op_.fail_shape("scan_dim_size must not be negative", str(trips_));
    } else if (inputs_ > 0) {
      trips_ = size_of(op_.operand(0));
    } else {
      if (outputs_ > 0 && !op_.declared().empty()) {
        const TensorType& output = op_.context().type(op_.declared()[0]);
        if (dimension_ < output.ndim()) trips_ = size_of(output);
      }
      if (trips_ < 0) op_.fail_shape("a scan without inputs must have scan_dim_size, the number of its trips", "none");
    }
  }

  // Every row that a trip reads must exist, or be the border of the input.
  void check_rows(size_t i) {
    const int64_t rows = size_of(op_.operand(i));
    if (!is_local_) {
      if (rows == trips_) return;
      op_.fail_shape(str("each input must have ", trips_, " rows along dim ", dimension_), op_.operand(i).text(),
                     "scan inputs with as many rows");
    }
    const LackingRow lacks = lacking_row(offsets_[i], trips_, rows);
    const int64_t begin = offsets_[i] + (lacks.first ? 1 : 0);
    if (begin < 0 || offsets_[i] > rows || trips_ > rows - offsets_[i] + (lacks.last ? 1 : 0)) {
      op_.fail_shape(str("input ", i, " must have the rows of ", trips_, " trips from ", offsets_[i],
                         " on, but for one before its first or after its last"),
                     op_.operand(i).text(), "correct its offset");
    }
    if (!lacks.first && !lacks.last) return;
    if (seen_borders_ >= borders_ || op_.operand(inputs_ + seen_borders_) != row_of(op_.operand(i))) {
      op_.fail_shape(str("input ", i, " must have a border, the row that it lacks: ", row_of(op_.operand(i)).text()),
                     op_.operand_types_text(), "add it behind the inputs");
    }
    ++seen_borders_;
  }

  void check_arguments() const {
    if (seen_borders_ != borders_) {
      op_.fail_shape(str("there must be a border for each of the ", seen_borders_, " inputs that lack a row"),
                     str(borders_), "correct operandSegmentSizes");
    }
    bool fits = body_->arguments.size() == inputs_ + carries_;
    for (size_t i = 0; fits && i < body_->arguments.size(); ++i) {
      fits = module_.type(body_->arguments[i]) == (i < inputs_ ? row_of(op_.operand(i)) : op_.operand(i + borders_));
    }
    if (fits) return;
    op_.fail_shape(str("the body's arguments must be rows of the inputs along dim ", dimension_, ", then the carries"),
                   str(types_text(module_, body_->arguments), " for ", op_.operand_types_text()),
                   "correct its arguments");
  }

  void infer_results(std::vector<TypeId>& results) const {
    for (size_t i = 0; i < outputs_; ++i) {
      TensorType type = module_.type(body_->results[i]);
      if (type.ndim() < dimension_) {
        op_.fail_shape(str("a row of an output must have at least ", dimension_, " dims"), type.text(), "reshape it");
      }
      // Rows of 8 along dim 0 in 10 trips are 10x8.
      type.shape.insert(type.shape.begin() + dimension_, trips_);
      results.push_back(op_.context().tensor(type.dtype, type.shape));
    }
    for (size_t i = 0; i < carries_; ++i) {
      const TypeId entry = op_.operand_type(inputs_ + borders_ + i);
      if (module_.value(body_->results[outputs_ + i]).type != entry) {
        op_.fail_shape("the body must return carries of the types that it takes",
                       str(types_text(module_, body_->results), " for ", op_.operand_types_text()),
                       "correct what it returns");
      }
      results.push_back(entry);
    }
  }

  int64_t size_of(const TensorType& type) const { return type.shape[static_cast<size_t>(dimension_)]; }
  TensorType row_of(TensorType type) const {
    type.shape.erase(type.shape.begin() + dimension_);
    return type;
  }

  const InferContext& op_;
  const Module& module_;
  const bool is_local_;
  const Region* body_ = nullptr;
  size_t inputs_ = 0, borders_ = 0, outputs_ = 0, carries_ = 0;
  size_t seen_borders_ = 0;
  Dims offsets_;
  int64_t dimension_ = 0, trips_ = -1;
};

void infer_chlo_scan(const InferContext& op, std::vector<TypeId>& results) {
  ScanInference inference(op, false);
  inference.run(results);
  if (inference.stacks_nothing()) {
    op.fail_shape("must have an input or an output", "neither", "write a stablehlo.while");
  }
}

void infer_local_scan(const InferContext& op, std::vector<TypeId>& results) { ScanInference(op, true).run(results); }

void verify_local_scan(const OpView& op) {
  if (op.module().stage == Stage::kLocal) return;
  fail<ShardingError>(op.name(), "must be in a local program",
                      str("a program at stage ", stage_name(op.module().stage)), "write a chlo.scan");
}

// ---- as a counted while --------------------------------------------------------------------------------------------

// while(%i, outputs, carries), where %i is the row: it counts up, or down if the scan is reversed.
class ScanAsWhile {
 public:
  explicit ScanAsWhile(DecomposeContext& context)
      : context_(context),
        builder_(context.builder()),
        module_(builder_.module()),
        order_(read_scan_order(context.op())),
        dim_(static_cast<size_t>(order_.dimension)),
        parts_(loop_parts(context.op())),
        // The counter ends at `trips`, which its dtype must hold: else the comparison would never fail.
        dtype_(order_.trips <= std::numeric_limits<int32_t>::max() ? DType::kI32 : DType::kI64) {}

  void run() {
    const int64_t first = order_.is_reverse ? order_.trips - 1 : 0;
    std::vector<ValueId> operands{build_scalar(builder_, scalar_of(dtype_, first))};
    for (const LoopParts::Output& output : parts_.outputs) {
      // Each trip replaces a row, so that none of the zeros remains.
      operands.push_back(build_zeros(builder_, TensorType(module_.type(output.stack))));
    }
    for (const LoopParts::Carry& carry : parts_.carries) operands.push_back(carry.entry);
    const RegionId regions[] = {condition(operands), body(operands)};
    const OpId loop = builder_.create_op(get_op("stablehlo.while"), operands, {}, {}, regions);
    // The counter is a carry of the loop, but no result of the scan.
    for (uint32_t i = 0; i + 1 < operands.size(); ++i) context_.set_result(i, module_.result(loop, i + 1));
  }

 private:
  Builder in_region(const std::vector<ValueId>& operands) {
    Builder inner(module_, module_.add_region(), builder_.loc());
    // Ops of the loop are reported with the line and the origin of the scan.
    inner.set_loc(builder_.loc(), builder_.origin());
    for (const ValueId operand : operands) {
      module_.add_argument(inner.region(), module_.value(operand).type, builder_.loc());
    }
    return inner;
  }

  RegionId condition(const std::vector<ValueId>& operands) {
    Builder inner = in_region(operands);
    const ValueId limit = build_scalar(inner, scalar_of(dtype_, order_.is_reverse ? 0 : order_.trips));
    const ValueId counter = module_.region(inner.region()).arguments[0];
    const ValueId goes_on = build_compare(inner, order_.is_reverse ? "GE" : "LT", counter, limit);
    module_.region(inner.region()).results = {goes_on};
    return inner.region();
  }

  RegionId body(const std::vector<ValueId>& operands) {
    Builder inner = in_region(operands);
    const std::vector<ValueId> arguments = module_.region(inner.region()).arguments;
    GraphCopy copy(module_, module_);
    for (const LoopParts::Input& input : parts_.inputs) {
      copy.map(input.row, build_dynamic_row(inner, input.stack, dim_, arguments[0], module_.type(input.row).shape));
    }
    for (size_t i = 0; i < parts_.carries.size(); ++i) {
      copy.map(parts_.carries[i].argument, arguments[1 + parts_.outputs.size() + i]);
    }
    copy.ops(parts_.body, inner.region());
    const ValueId step = build_scalar(inner, scalar_of(dtype_, order_.is_reverse ? -1 : 1));
    std::vector<ValueId> results{inner.create("stablehlo.add", {arguments[0], step})};
    for (size_t i = 0; i < parts_.outputs.size(); ++i) {
      results.push_back(written(inner, arguments[1 + i], copy(parts_.outputs[i].row), arguments[0]));
    }
    for (const LoopParts::Carry& carry : parts_.carries) results.push_back(copy(carry.next));
    module_.region(inner.region()).results = std::move(results);
    return inner.region();
  }

  ValueId written(Builder& inner, ValueId stack, ValueId value, ValueId row) const {
    Dims shape = module_.type(value).shape;
    shape.insert(shape.begin() + order_.dimension, 1);
    return build_dynamic_update_slice(inner, stack, build_reshape(inner, value, shape),
                                      starts_of_row(inner, stack, dim_, row));
  }

  DecomposeContext& context_;
  Builder& builder_;
  Module& module_;
  const ScanOrder order_;
  const size_t dim_;
  const LoopParts parts_;
  const DType dtype_;  // of the counter
};

void decompose_scan(DecomposeContext& context) { ScanAsWhile(context).run(); }

constexpr OpDef kScanOps[] = {
    // A scan's region is closed in MLIR, as that of a combiner: it may capture constants only.
    with_combiner(composed_op("chlo.scan", infer_chlo_scan, no_rule, decompose_scan, "custom<scan>",
                              "A loop over the rows of stacked values (CHLO scan).")),
    without_gradient(region_op("shardwise.scan", infer_local_scan, Regions::kLoop, nullptr, verify_local_scan, {},
                               "A loop over the rows of stacked values in the program of one device (shardwise)."),
                     kAfterGradients),
};
static_assert(all_complete(kScanOps));

}  // namespace

std::span<const OpDef> scan_ops() { return kScanOps; }

const OpDef& local_scan() { return kScanOps[1]; }

}  // namespace shardwise
