// SPDX-License-Identifier: Apache-2.0
//
// Trace: the function `main` of a module while Python records it, op by op:
//
//   Trace trace("mlp", [](Context& context) { return current_location(context); });
//   ValueId x = trace.argument(type, "x", nullptr);
//   ValueId y = trace.emit("stablehlo.tanh", …);        // located at the user's line
//   std::shared_ptr<Module> module = trace.finish({y}, {…});
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/redirection.h"
#include "shardwise/transforms/batch/batch.h"
#include "shardwise/transforms/gradient/given_derivatives.h"
#include "shardwise/transforms/gradient/linear_part.h"

namespace shardwise {

class Trace {
 public:
  // `here` is the user's line, at which ops are recorded.
  Trace(const std::string& name, std::function<LocId(Context&)> here,
        std::shared_ptr<Context> context = std::make_shared<Context>());

  Module& module() { return *module_; }
  const Module& module() const { return *module_; }
  RegionId body() const { return body_; }
  RegionId current() const { return regions_.empty() ? body_ : regions_.back(); }
  Context& context() const { return module_->context(); }
  bool finished() const { return finished_; }

  ValueId argument(TypeId type, const std::string& name, const TensorSharding* sharding);  // of main
  // A function inside the function: ops between `begin_region` and `end_region` go to a region of their own, which may
  // use values from around it. An op takes it (`emit_op`), or it belongs to none, as what vmap records.
  RegionId begin_region();
  ValueId region_argument(TypeId type);
  void end_region(std::span<const uint32_t> results);  // by number; ends also where a result is refused
  // One op with one result. `region_op` names the op of a one-op reduction region on scalars of operand 0's dtype; an
  // empty name is the region that returns its second argument.
  ValueId emit(std::string_view name, std::span<const ValueId> operands, const Attrs& attrs,
               std::span<const TypeId> declared, const std::string* region_op);
  // One op with any number of results and of recorded regions, which are its own from then on. `declared`: the types of
  // its results where the op does not imply them.
  OpId emit_op(std::string_view name, std::span<const ValueId> operands, const Attrs& attrs,
               std::span<const TypeId> declared, std::span<const RegionId> regions);
  // A recorded region with the ops of a program in StableHLO text. `arguments`: the names of its arguments, or none.
  RegionId import_text(std::string_view text, const std::vector<std::string>& arguments = {});
  // Values from around a recorded region that its ops use become arguments of it: the value, and its argument.
  std::vector<std::pair<ValueId, ValueId>> capture(RegionId region);
  void set_sharding(ValueId value, const TensorSharding& sharding);  // the column of an argument or result
  ValueId constrain(ValueId value, const TensorSharding& sharding, std::string_view cause = {});
  void set_name(ValueId value, const std::string& name);
  // A stand-in for `value` that gradients can be taken by: f(x, x) has two variables though it has one value. Once the
  // gradient ops exist, `substitute` puts the values back in place of the variables, all in one walk.
  ValueId variable(ValueId value);
  void substitute(std::span<const ValueId> variables, std::span<const ValueId> values);
  // Whether gradients sum the cotangents of what is equal on all devices (ops/collectives/varying.h). Returns the old one.
  bool set_matches_varying(bool matches) { return std::exchange(matches_varying_, matches); }
  bool matches_varying() const { return matches_varying_; }
  // The gradients of `outputs`; values that the gradient replaced are substituted. `source` makes the given derivatives
  // of ops (gradient/given_derivatives.h).
  std::vector<ValueId> append_gradients(std::span<const ValueId> outputs, std::span<const ValueId> cotangents,
                                        std::span<const ValueId> wrt, DerivativeSource source);
  std::vector<ValueId> append_tangents(std::span<const ValueId> outputs, std::span<const ValueId> wrt,
                                       std::span<const ValueId> tangents, DerivativeSource source);  // of floats
  // The gradients of `outputs` as a function of their cotangents, which are not known yet.
  LinearPart append_pullback(std::span<const ValueId> outputs, std::span<const ValueId> wrt, DerivativeSource source);
  RegionId transpose(RegionId pullback, size_t captured, DerivativeSource source);
  // The tangents of a recorded region's results: a region of its arguments and of tangents for the first `variables`.
  RegionId append_push_forward(RegionId region, size_t variables, DerivativeSource source);
  // The results of a recorded region that captures nothing, on these arguments. The region stays.
  std::vector<ValueId> append_region(RegionId region, std::span<const ValueId> arguments);
  // The ops of a region with a new leading dim of `batched` arguments, appended here.
  BatchedResults append_batch(RegionId region, std::span<const ValueId> arguments, const std::vector<bool>& batched,
                              const Examples& examples, DerivativeSource source);
  // For each result of the manual computation that has `result`, the manual axes along which it varies and which its
  // sharding does not name (transforms/batch/undeclared_axes.h). `around`: the manual axes around the computation.
  std::vector<std::vector<std::string>> undeclared_axes(ValueId result, const std::vector<std::string>& around) const;
  // How often ops, results of regions and `live` read the result of each of the constraints, and the value that it
  // constrains, of which the constraint is one reader.
  std::vector<std::pair<int64_t, int64_t>> count_reads(std::span<const uint32_t> constraints,
                                                       std::span<const ValueId> live) const;
  ResolvedSource source_of(ValueId value) const;
  // The value of that number, or what was substituted for it; ShapeError for a number that is no value of this trace.
  ValueId checked(uint32_t value) const;
  // The same, for an operand of what is recorded now; UnsupportedError for a value of a region that has ended.
  ValueId operand(uint32_t value) const;
  std::vector<ValueId> operands(std::span<const uint32_t> values) const;
  Builder builder_here();  // appends ops located at the user's line; ShapeError when the trace is finished

  // `shardings`: of the outputs, one for each, or fewer.
  std::shared_ptr<Module> finish(std::span<const ValueId> outputs,
                                 std::span<const std::optional<TensorSharding>> shardings);

 private:
  bool is_recorded(RegionId region) const;   // and belongs to no op yet
  void count_loose_regions(uint32_t first);  // from this one on
  RegionId reduction_region(std::string_view op, DType dtype);
  // Runs `transform`, which may replace values and leave regions that belong to no op, with these derivatives.
  template <class F>
  auto transformed(DerivativeSource source, F&& transform);
  void take_in(const Redirection& replaced);

  std::shared_ptr<Module> module_;
  std::function<LocId(Context&)> here_;
  RegionId body_;
  std::vector<RegionId> regions_;  // open ones, innermost last
  bool finished_ = false;
  int64_t loose_regions_ = 0;  // that belong to no op
  struct Variable {
    uint32_t first_op = 0;      // number of ops before it
    uint32_t first_region = 0;  // number of regions before it
    RegionId region;
  };
  std::unordered_map<ValueId, Variable> variables_;
  Redirection substituted_;
  DerivativeTable derivatives_;
  bool matches_varying_ = false;
};

}  // namespace shardwise
