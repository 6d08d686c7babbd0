// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/executor.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/runtime/memory/buffer_pool.h"
#include "shardwise/runtime/memory/one_device.h"
#include "shardwise/runtime/plan/plan.h"
#include "shardwise/runtime/run/block_runner.h"
#include "shardwise/runtime/virtual_communicator.h"

namespace shardwise {
namespace {

// On the mesh of the executable, whose devices are those of the program's mesh.
Placement placement_of_local(const Module& module, const MeshPtr& mesh, ValueId value) {
  const GlobalPart& part = module.part(value);
  // A value without a part is replicated, as in a program that was not partitioned.
  if (!part.placement) return replicated_placement(mesh, module.global_type(value).shape);
  Placement placement = module.context().placement(part.placement);
  if (placement.is_fully_replicated() || placement.mesh->same_devices(*mesh)) placement.mesh = mesh;
  check_internal(placement.local_shape() == module.type(value).shape, "Executable: a value has the shape of its block");
  return placement;
}

bool is_placed(const ShardedArray& array, const Placement& placement) {
  if (array.layout() == nullptr) return false;
  const Placement& held = array.placement();
  if (!held.mesh->same_devices(*placement.mesh)) {
    // A replicated value is on every mesh.
    const bool is_whole = placement.is_fully_replicated() && held.is_fully_replicated();
    return is_whole && held.mesh->device_count() == placement.mesh->device_count();
  }
  // Blocks, too: 17 rows on x=4 may be in blocks of 5, or of 8 if the program rounds them up.
  return held.dims == placement.dims && held.unreduced == placement.unreduced && held.reducer == placement.reducer;
}

// Null for an argument or a result on the mesh of the run.
const DeviceOrder* order_of_border(const Plan& plan, const Placement& placement) {
  for (const auto& [mesh, order] : plan.orders) {
    if (mesh->same_devices(*placement.mesh)) return order.get();
  }
  return nullptr;
}

// Calls visit(op, number of branches) for each branch step, inner ones too.
void visit_branches(const Block& block, const std::function<void(OpId, int64_t)>& visit) {
  for (const Step& step : block.steps) {
    if (const auto* branches = std::get_if<Branches>(&step.work)) visit(step.op, std::ssize(branches->blocks));
    for_each_block(step, [&](const Block& inner) { visit_branches(inner, visit); });
  }
}

}  // namespace

Executable::Executable(std::shared_ptr<const Module> local, MeshPtr mesh, ExecutorOptions options)
    : module_(std::move(local)), mesh_(std::move(mesh)), options_(std::move(options)) {
  const Region& body = module_->region(module_->main().body);
  for (ValueId argument : body.arguments) arguments_.push_back(placement_of_local(*module_, mesh_, argument));
  for (ValueId result : body.results) {
    const Placement placement = placement_of_local(*module_, mesh_, result);
    results_.push_back({std::make_shared<const ArrayLayout>(ArrayLayout{sharding_of(placement), placement}),
                        options_.devices.free(varying_axes(placement))});
  }
  plan_ = std::make_unique<Plan>(planned(false, options_.devices.pinned));
}

Executable::~Executable() = default;

std::unique_ptr<Executable> Executable::unpartitioned(std::shared_ptr<const Module> global, ExecutorOptions options) {
  // The executor needs a mesh; this one has no digits, so nothing varies.
  const auto one_device = std::make_shared<const Mesh>("one_device", std::vector<MeshAxis>{{"device", 1}});
  return std::make_unique<Executable>(std::move(global), one_device, std::move(options));
}

const TensorType& Executable::argument_type(size_t i) const {
  return module_->global_type(module_->region(module_->main().body).arguments[i]);
}

const Plan& Executable::plan(bool faithful) const {
  if (!faithful) return *plan_;
  // Made when the first faithful run asks for it: only tests and debugging do.
  std::call_once(faithful_once_,
                 [this] { faithful_plan_ = std::make_unique<Plan>(planned(true, options_.devices.pinned)); });
  return *faithful_plan_;
}

Plan Executable::planned(bool faithful, const AxisList& pinned) const {
  // Batches only if there are several processes: in one, an all_reduce sends no message.
  return make_plan(
      *module_, *mesh_,
      {.fuse = options_.fuse, .faithful = faithful, .pinned = pinned, .batch = !options_.devices.pinned.empty()});
}

void Executable::check_argument(size_t i, const ShardedArray& argument) const {
  if (fits(i, argument)) return;
  const TensorType& type = argument_type(i);
  const Placement& placement = arguments_[i];
  const std::string subject = str("argument ", i);
  if (argument.dtype() != type.dtype) {
    fail<DTypeError>(subject, str("the dtype must be ", type.dtype), str(argument.dtype()), "convert it first");
  }
  if (argument.shape() != type.shape) {
    fail<ShapeError>(subject, str("the shape must be ", type.shape), str(argument.shape()),
                     "compile the program for this shape");
  }
  fail<ShardingError>(
      subject, str("the sharding must be ", bare_text(sharding_of(placement)), " in blocks ", placement.local_shape()),
      str(bare_text(argument.sharding()), " in blocks ", argument.placement().local_shape()), "reshard it first");
}

bool Executable::fits(size_t i, const ShardedArray& array) const {
  const TensorType& type = argument_type(i);
  return array.dtype() == type.dtype && array.shape() == type.shape && is_placed(array, arguments_[i]);
}

bool Executable::accepts(size_t i, const ShardedArray& array) const {
  return fits(i, array) && (array.devices().is_all() || array.devices() == options_.devices);
}

std::vector<ShardedArray> Executable::run(Communicator& communicator, std::vector<ShardedArray> arguments,
                                          const RunOptions& options) const {
  const DeviceSet& devices = options_.devices;
  mesh_->expect_runnable("run");
  if (arguments.size() != arguments_.size()) {
    fail<ShapeError>("run", str("the program takes ", arguments_.size(), " arguments"), str(arguments.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) check_argument(i, arguments[i]);
  const Plan& chosen = plan(options.faithful);
  Slots slots(*module_, chosen, devices, options.poison);
  for (size_t i = 0; i < arguments.size(); ++i) {
    slots.set(chosen.arguments[i], argument_shards(chosen, i, arguments[i]));
  }
  // After `set`, so that the slot is the only owner, which lets a result take the memory.
  for (size_t i : options.donated) arguments.at(i) = ShardedArray();  // the others are held until the end
  BlockRunner(*module_, chosen, options, slots, communicator).run_main();
  std::vector<ShardedArray> results;
  results.reserve(results_.size());
  for (size_t i = 0; i < results_.size(); ++i) {
    results.push_back(result_array(chosen, i, slots[chosen.main.results[i]], communicator, options.faithful));
  }
  return results;
}

ShardedArray Executable::result_array(const Plan& plan, size_t i, const Shards& shards, Communicator& communicator,
                                      bool faithful) const {
  const auto& [layout, axes] = results_[i];
  const TensorType& type = module_->global_type(module_->region(module_->main().body).results[i]);
  const DeviceSet& devices = options_.devices;
  const DeviceOrder* order = order_of_border(plan, layout->placement);
  if (order == nullptr) {
    const AxisList every_device = faithful ? sort_and_merge(plan.digits.axes(plan.free)) : AxisList();
    return {type.dtype, type.shape, layout, shards.along(faithful ? every_device : axes), devices};
  }
  const DeviceSet own = devices_on_other_mesh(*order, devices);
  Shards ordered;
  // A collective that does nothing: on_mesh brings the shards into the order of the other mesh.
  communicator.on_mesh(*order, {&shards, 1}, [&](Communicator&, std::span<const Shards> there) {
    ordered = there[0];
    return ordered;
  });
  const AxisList own_axes =
      faithful ? own.free(axes_of_several_devices(*order->other)) : own.free(varying_axes(layout->placement));
  return {type.dtype, type.shape, layout, ordered.along(own_axes), own};
}

// The shards of this process, indexed by the axes of the mesh of the run.
Shards Executable::argument_shards(const Plan& plan, size_t i, const ShardedArray& argument) const {
  const DeviceOrder* order = order_of_border(plan, arguments_[i]);
  if (order != nullptr) {
    const DeviceSet& devices = options_.devices;
    if (argument.devices().is_all()) return devices.owned(order->in_main_order(argument.shards()));
    return argument.owned_by(devices_on_other_mesh(*order, devices));  // of one device
  }
  // Only a replicated array may be on other devices (is_placed): its one array serves all of these.
  if (!argument.mesh().same_devices(*mesh_)) return argument.shards().along({});
  return argument.owned_by(options_.devices);
}

MemoryUse Executable::memory(const MemoryOptions& options) const {
  std::optional<Plan> of_one_device;
  if (options.per_device) {
    // All axes are pinned, which leaves one device. Blocks are equal, so that each device needs as much.
    of_one_device = planned(false, axes_of_several_devices(*mesh_));
  } else {
    mesh_->expect_runnable("memory");
  }
  const Plan& plan = of_one_device ? *of_one_device : *plan_;
  BranchChoices chosen;
  MemoryUse most = rehearse(plan, options, chosen);
  const auto try_others = [&](OpId op, int64_t count) {
    for (int64_t branch = 1; branch < count; ++branch) {
      BranchChoices other = chosen;
      other[op] = branch;
      MemoryUse use = rehearse(plan, options, other);
      if (use.peak_bytes <= most.peak_bytes) continue;
      most = std::move(use);
      chosen = std::move(other);
    }
  };
  visit_branches(plan.main, try_others);
  for (const PlannedFunction& function : plan.functions) visit_branches(function.block, try_others);
  return most;
}

MemoryUse Executable::rehearse(const Plan& plan, const MemoryOptions& options, const BranchChoices& branches) const {
  const std::span<const ValueId> values = module_->region(module_->main().body).arguments;
  AllocationLog log;
  const auto live = [&] {
    return std::accumulate(log.events().begin(), log.events().end(), int64_t{0},
                           [](int64_t sum, const AllocationLog::Event& event) { return sum + event.bytes; });
  };
  std::vector<Shards> arguments;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    log.set_label(values[i].index);
    arguments.push_back(rehearsed_argument(i, options.per_device));
  }
  const int64_t argument_bytes = live();
  // Outside the block below: intermediates die with the run, so that what remains are results and arguments.
  std::vector<Shards> results;
  int64_t steps = 0;
  {
    const RunOptions run_options{.rehearsed_branches = &branches};
    const DeviceSet devices;
    OneDevice one;
    VirtualCommunicator all;
    Communicator& communicator = options.per_device ? static_cast<Communicator&>(one) : all;
    Slots slots(*module_, plan, devices, false);
    for (size_t i = 0; i < arguments.size(); ++i) slots.set(plan.arguments[i], arguments[i]);
    for (size_t i : options.donated) arguments.at(i) = Shards();
    BlockRunner runner(*module_, plan, run_options, slots, communicator);
    runner.run_main();
    steps = runner.steps();
    for (uint32_t slot : plan.main.results) results.push_back(slots[slot]);
  }
  MemoryUse use = memory_use(log.events());
  use.steps = steps;
  use.argument_bytes = argument_bytes;
  arguments.clear();
  use.result_bytes = live();
  return use;
}

// The layout of the caller: shards of an even array are views of the global array.
Shards Executable::rehearsed_argument(size_t i, bool per_device) const {
  const TensorType& type = argument_type(i);
  if (per_device) return {AxisList(), pooled_empty(type.dtype, arguments_[i].local_shape())};
  return argument_shards(*plan_, i, scatter(pooled_empty(type.dtype, type.shape), arguments_[i]));
}

}  // namespace shardwise
