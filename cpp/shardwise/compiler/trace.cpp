// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/trace.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/collectives/varying.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/sharding/constraints.h"
#include "shardwise/shard_update/name_jax_gradients.h"
#include "shardwise/text/parser.h"
#include "shardwise/transforms/batch/undeclared_axes.h"
#include "shardwise/transforms/forward/differentiate_forward.h"
#include "shardwise/transforms/gradient/differentiate.h"
#include "shardwise/transforms/import_program.h"

namespace shardwise {

Trace::Trace(const std::string& name, std::function<LocId(Context&)> here, std::shared_ptr<Context> context)
    : module_(std::make_shared<Module>(std::move(context))), here_(std::move(here)), substituted_(*module_) {
  // As JAX names its modules.
  module_->name = "jit_" + name;
  body_ = module_->add_region();
  Function main;
  main.name = "main";
  main.body = body_;
  module_->functions.push_back(std::move(main));
}

Builder Trace::builder_here() {
  if (finished_) {
    fail<UnsupportedError>("trace", "a traced value must not leave the function that recorded it",
                           "one of a finished program", "return it instead");
  }
  return Builder(*module_, current(), here_(context()));
}

ValueId Trace::argument(TypeId type, const std::string& name, const TensorSharding* sharding) {
  LocId loc = builder_here().loc();
  // The name is around the place, where shown_name finds it.
  if (!name.empty()) loc = context().named_location(name, loc);
  const ValueId value = module_->add_argument(body_, type, loc);
  if (sharding != nullptr) set_sharding(value, *sharding);
  return value;
}

RegionId Trace::begin_region() {
  builder_here();
  regions_.push_back(module_->add_region());
  // A region belongs to no op until emit_op takes it; one that vmap consumes stays loose, and finish() leaves it out.
  ++loose_regions_;
  return regions_.back();
}

ValueId Trace::region_argument(TypeId type) { return module_->add_argument(current(), type, builder_here().loc()); }

void Trace::end_region(std::span<const uint32_t> results) {
  if (regions_.empty()) fail<ShapeError>("trace", "a region must be open before it can end");
  try {
    module_->region(regions_.back()).results = operands(results);
  } catch (...) {
    regions_.pop_back();  // the caller may go on recording around it
    throw;
  }
  regions_.pop_back();
}

RegionId Trace::reduction_region(std::string_view op, DType dtype) {
  const RegionId region = module_->add_region();
  const TypeId scalar = context().tensor(dtype, {});
  const ValueId lhs = module_->add_argument(region, scalar), rhs = module_->add_argument(region, scalar);
  // The region of a scatter that overwrites returns the update, its second argument.
  const ValueId result = op.empty() ? rhs : Builder(*module_, region).create(op, {lhs, rhs});
  module_->region(region).results = {result};
  return region;
}

ValueId Trace::emit(std::string_view name, std::span<const ValueId> operands, const Attrs& attrs,
                    std::span<const TypeId> declared, const std::string* region_op) {
  Builder builder = builder_here();
  std::vector<RegionId> regions;
  if (region_op != nullptr) {
    if (operands.empty()) fail<ShapeError>(name, "an op with a region takes operands", "none");
    regions.push_back(reduction_region(*region_op, module_->type(operands[0]).dtype));
  }
  const OpId op = builder.create_op(name, operands, attrs, declared, regions);
  if (module_->op(op).result_count != 1) fail<ShapeError>(name, "a recorded op has one result");
  return module_->result(op);
}

bool Trace::is_recorded(RegionId region) const {
  const bool exists = region.index > 0 && region.index < module_->region_count() && region != body_;
  const bool is_open = std::find(regions_.begin(), regions_.end(), region) != regions_.end();
  // An op takes a region once, and a body that is being recorded never.
  return exists && !is_open && !module_->region(region).op;
}

OpId Trace::emit_op(std::string_view name, std::span<const ValueId> operands, const Attrs& attrs,
                    std::span<const TypeId> declared, std::span<const RegionId> regions) {
  Builder builder = builder_here();
  // Python passes numbers, so any number may come.
  for (const RegionId region : regions) {
    if (is_recorded(region)) continue;
    fail<ShapeError>(name, "a region must be one that was recorded for this op", std::to_string(region.index));
  }
  const OpId op = builder.create_op(name, operands, attrs, declared, regions);
  loose_regions_ -= static_cast<int64_t>(regions.size());
  return op;
}

std::vector<std::pair<ValueId, ValueId>> Trace::capture(RegionId region) {
  if (!is_recorded(region)) {
    fail<ShapeError>("trace", "a region must be one that was recorded", std::to_string(region.index));
  }
  std::vector<std::pair<ValueId, ValueId>> captured;
  Redirection own(*module_);
  for (const ValueId value : captures_of(*module_, region)) {
    captured.emplace_back(value, module_->add_argument(region, module_->value(value).type, builder_here().loc()));
    own.add(value, captured.back().second);
  }
  // Also the results: a region may return a value from around it directly.
  own.apply(region);
  return captured;
}

void Trace::set_sharding(ValueId value, const TensorSharding& sharding) {
  verify(sharding, module_->type(value).shape);
  module_->declare_mesh(sharding.mesh);
  module_->value(value).sharding = context().intern(sharding);
}

ValueId Trace::constrain(ValueId value, const TensorSharding& sharding, std::string_view cause) {
  Builder builder = builder_here();
  return create_sharding_constraint(builder, value, sharding, cause);
}

void Trace::set_name(ValueId id, const std::string& name) {
  Value& value = module_->value(id);
  LocId& loc = value.op ? module_->op(value.op).loc : value.loc;
  // A new name replaces the old one.
  const bool named = loc && context().location(loc).kind == Location::Kind::kName;
  loc = context().named_location(name, named ? context().location(loc).child : loc);
}

ValueId Trace::variable(ValueId value) {
  const ValueId stand_in = module_->add_argument(current(), module_->value(value).type, builder_here().loc());
  // Only ops and regions made from now on can use it: substitute() need not look at the others.
  variables_[stand_in] = {.first_op = static_cast<uint32_t>(module_->op_count()),
                          .first_region = static_cast<uint32_t>(module_->region_count()),
                          .region = current()};
  return stand_in;
}

void Trace::substitute(std::span<const ValueId> variables, std::span<const ValueId> values) {
  Variable first{.first_op = UINT32_MAX, .first_region = UINT32_MAX, .region = {}};
  std::unordered_set<RegionId> regions;
  Redirection by(*module_);
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto found = variables_.find(variables[i]);
    if (found == variables_.end())
      fail<ShapeError>("trace", "only a variable can be substituted", std::to_string(variables[i].index));
    first.first_op = std::min(first.first_op, found->second.first_op);
    first.first_region = std::min(first.first_region, found->second.first_region);
    regions.insert(found->second.region);
    // Tracers in Python may still hold the variable's number; checked() then gives them the value.
    by.add(variables[i], values[i]);
    substituted_.add(variables[i], values[i]);
    variables_.erase(found);
  }
  for (uint32_t op = first.first_op; op < module_->op_count(); ++op) map_operands(*module_, OpId{op}, by);
  for (uint32_t region = first.first_region; region < module_->region_count(); ++region) {
    map_results(*module_, RegionId{region}, by);
  }
  for (const RegionId region : regions) {
    std::vector<ValueId>& arguments = module_->region(region).arguments;
    std::erase_if(arguments, [&](ValueId argument) { return by(argument) != argument; });
    // The variables were arguments of the region; those after them move up.
    for (uint32_t i = 0; i < arguments.size(); ++i) module_->value(arguments[i]).index = i;
  }
}

RegionId Trace::import_text(std::string_view text, const std::vector<std::string>& arguments) {
  builder_here();
  const auto known = static_cast<uint32_t>(module_->region_count());
  const auto name = [&](Module& program) { name_jax_gradients(program, arguments); };
  const RegionId region = import_program(parse(text, module_->shared_context()), *module_, here_(context()), name);
  count_loose_regions(known);
  return region;
}

template <class F>
auto Trace::transformed(DerivativeSource source, F&& transform) {
  // A derivative that Python makes may record functions, which differentiate in turn.
  DerivativeSource outer = std::exchange(derivatives_.source, std::move(source));
  const auto known = static_cast<uint32_t>(module_->region_count());
  const auto restore = [&] {
    derivatives_.source = std::move(outer);
    count_loose_regions(known);
  };
  try {
    const GivenDerivatives given(derivatives_);
    auto made = transform();
    restore();
    return made;
  } catch (...) {
    restore();
    throw;
  }
}

// A forward op may have been replaced by one that also returns what the derivative needs.
void Trace::take_in(const Redirection& replaced) {
  if (!replaced.empty()) ++loose_regions_;  // of an op that was replaced
  for (const auto& [from, to] : replaced.targets()) substituted_.add(from, to);
}

std::vector<ValueId> Trace::append_gradients(std::span<const ValueId> outputs, std::span<const ValueId> cotangents,
                                             std::span<const ValueId> wrt, DerivativeSource source) {
  Builder builder = builder_here();
  Gradients gradients = transformed(std::move(source), [&] {
    const MatchesVarying matches(matches_varying_);
    return append_vjp(builder, outputs, cotangents, wrt);
  });
  take_in(gradients.replaced);
  return std::move(gradients.values);
}

std::vector<ValueId> Trace::append_tangents(std::span<const ValueId> outputs, std::span<const ValueId> wrt,
                                            std::span<const ValueId> tangents, DerivativeSource source) {
  Builder builder = builder_here();
  Tangents made = transformed(std::move(source), [&] { return append_jvp(builder, outputs, wrt, tangents); });
  take_in(made.replaced);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!made.values[i]) made.values[i] = build_zeros(builder, TensorType(module_->type(outputs[i])));
  }
  return std::move(made.values);
}

LinearPart Trace::append_pullback(std::span<const ValueId> outputs, std::span<const ValueId> wrt,
                                  DerivativeSource source) {
  Builder builder = builder_here();
  std::vector<ValueId> cotangents;
  for (const ValueId output : outputs) {
    cotangents.push_back(module_->add_argument(current(), module_->value(output).type, builder.loc()));
  }
  const OpId mark = mark_end(builder);
  const Gradients gradients = transformed(std::move(source), [&] {
    try {
      const MatchesVarying matches(matches_varying_);
      return append_vjp_without_zeros(builder, outputs, cotangents, wrt);
    } catch (...) {
      // The caller may catch the error and go on recording.
      leave_region(*module_, current(), cotangents);
      throw;
    }
  });
  take_in(gradients.replaced);
  ++loose_regions_;
  return take_linear_part(builder, mark, cotangents, gradients.values, wrt);
}

RegionId Trace::transpose(RegionId pullback, size_t captured, DerivativeSource source) {
  const LocId loc = builder_here().loc();
  return transformed(std::move(source), [&] { return transpose_linear_part(*module_, pullback, captured, loc); });
}

RegionId Trace::append_push_forward(RegionId region, size_t variables, DerivativeSource source) {
  const LocId loc = builder_here().loc();
  GraphCopy copy(*module_, *module_);
  const RegionId made = copy.region(region);
  ++loose_regions_;
  const std::vector<ValueId> outputs = module_->region(made).results;
  std::vector<ValueId> wrt = module_->region(made).arguments, tangents;
  wrt.resize(variables);
  for (const ValueId value : wrt) tangents.push_back(module_->add_argument(made, module_->value(value).type, loc));
  Builder builder(*module_, made, loc);
  const Tangents results = transformed(std::move(source), [&] { return append_jvp(builder, outputs, wrt, tangents); });
  std::vector<ValueId> values = results.values;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) values[i] = build_zeros(builder, TensorType(module_->type(outputs[i])));
  }
  module_->region(made).results = values;
  return made;
}

std::vector<ValueId> Trace::append_region(RegionId region, std::span<const ValueId> arguments) {
  builder_here();
  if (!is_recorded(region) || module_->region(region).arguments.size() != arguments.size()) {
    fail<ShapeError>("trace", "a region must be one that was recorded, with an argument for each value",
                     std::to_string(region.index));
  }
  GraphCopy copy(*module_, *module_);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ValueId argument = module_->region(region).arguments[i];
    if (module_->value(argument).type != module_->value(arguments[i]).type) {
      fail<ShapeError>("trace", str("a value must have the type of its region, ", module_->type(argument).text()),
                       module_->type(arguments[i]).text(), "call the function where it was made");
    }
    copy.map(argument, arguments[i]);
  }
  copy.ops(region, current());
  std::vector<ValueId> results;
  for (const ValueId result : module_->region(region).results) results.push_back(copy(result));
  return results;
}

BatchedResults Trace::append_batch(RegionId region, std::span<const ValueId> arguments,
                                   const std::vector<bool>& batched, const Examples& examples,
                                   DerivativeSource source) {
  Builder builder = builder_here();
  if (!region || region.index >= module_->region_count()) {
    fail<ShapeError>("trace", "a region must be one of this program", std::to_string(region.index));
  }
  return transformed(std::move(source), [&] { return append_batched(builder, region, arguments, batched, examples); });
}

std::vector<std::pair<int64_t, int64_t>> Trace::count_reads(std::span<const uint32_t> constraints,
                                                            std::span<const ValueId> live) const {
  if (constraints.empty()) return {};
  std::vector<int64_t> reads(module_->value_count(), 0);
  const auto read = [&](std::span<const ValueId> read_values) {
    for (const ValueId value : read_values) ++reads[value.index];
  };
  read(live);
  for (uint32_t op = 1; op < module_->op_count(); ++op) read(module_->operands(OpId{op}));
  // Also of regions that vmap has consumed, which main does not reach.
  for (uint32_t region = 1; region < module_->region_count(); ++region) read(module_->region(RegionId{region}).results);
  std::vector<std::pair<int64_t, int64_t>> counts;
  for (const uint32_t constraint : constraints) {
    const OpId op = module_->value(ValueId{constraint}).op;
    counts.emplace_back(reads[checked(constraint).index], reads[module_->operands(op)[0].index]);
  }
  return counts;
}

std::vector<std::vector<std::string>> Trace::undeclared_axes(ValueId result,
                                                             const std::vector<std::string>& around) const {
  const OpId op = module_->value(result).op;
  if (!op || module_->op(op).def->regions != Regions::kManual) {
    fail<ShapeError>("trace", "a value must be the result of a manual computation", std::to_string(result.index));
  }
  return shardwise::undeclared_axes(OpView(*module_, op), around);
}

ResolvedSource Trace::source_of(ValueId id) const { return context().resolve(loc_of(*module_, id)); }

// Bodies of functions count, since calls of them may go.
void Trace::count_loose_regions(uint32_t first) {
  for (uint32_t region = first; region < module_->region_count(); ++region) {
    if (!module_->region(RegionId{region}).op) ++loose_regions_;
  }
}

ValueId Trace::checked(uint32_t index) const {
  if (index == 0 || index >= module_->value_count()) {
    fail<ShapeError>("trace", "an operand must be a value of this program", std::to_string(index));
  }
  return substituted_(ValueId{index});
}

ValueId Trace::operand(uint32_t index) const {
  const ValueId value = checked(index);
  const RegionId at = region_of(*module_, value);
  // The value's region must still be open, or it is out of scope here.
  if (at == body_ || std::ranges::find(regions_, at) != regions_.end()) return value;
  const TensorType& type = module_->type(value);
  const std::string sizes = join(type.shape, ",", [](int64_t size) { return std::to_string(size); });
  fail<UnsupportedError>("trace", "a traced value must not leave the function that recorded it",
                         str("Tracer<", numpy_name(type.dtype), "[", sizes, "]>"), "return it instead");
}

std::vector<ValueId> Trace::operands(std::span<const uint32_t> values) const {
  std::vector<ValueId> list;
  for (const uint32_t value : values) list.push_back(operand(value));
  return list;
}

std::shared_ptr<Module> Trace::finish(std::span<const ValueId> outputs,
                                      std::span<const std::optional<TensorSharding>> shardings) {
  builder_here();
  if (!regions_.empty()) fail<ShapeError>("trace", "all regions must have ended before the program does");
  module_->region(body_).results.assign(outputs.begin(), outputs.end());
  module_->main().result_shardings.resize(outputs.size());
  for (size_t i = 0; i < std::min(shardings.size(), outputs.size()); ++i) {
    if (!shardings[i]) continue;
    // A sharding of main's result is its own, beside that of the value: one value may be returned twice.
    verify(*shardings[i], module_->type(outputs[i]).shape);
    module_->declare_mesh(shardings[i]->mesh);
    module_->main().result_shardings[i] = context().intern(*shardings[i]);
  }
  finished_ = true;
  // Nothing to leave out, so the recorded module itself is the program.
  if (loose_regions_ == 0) return module_;
  // Regions that vmap has consumed belong to nothing: only what main reaches is handed on.
  auto reached = std::make_shared<Module>(module_->shared_context());
  reached->name = module_->name;
  reached->meshes = module_->meshes;
  std::vector<size_t> functions = CallGraph(*module_).reached();
  // In the order of the module, so that the text does not depend on the order of calls.
  std::ranges::sort(functions);
  for (const size_t f : functions) GraphCopy(*module_, *reached).function(module_->functions[f]);
  return reached;
}

}  // namespace shardwise
