// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/rebuilt_scan.h"

#include <algorithm>

#include "shardwise/ops/control/scan.h"

namespace shardwise {
namespace {

// The part of a stack of values with this part.
GlobalPart part_of_stack(const Module& module, GlobalPart part, const ScanOrder& order) {
  Context& context = module.context();
  if (part.type) {
    TensorType type = context.type(part.type);
    type.shape.insert(type.shape.begin() + order.dimension, order.trips);
    part.type = context.tensor(type.dtype, type.shape);
  }
  if (part.placement) {
    Placement placement = context.placement(part.placement);
    placement.dims.insert(placement.dims.begin() + order.dimension, DimPlacement{.axes = {}, .block = order.trips});
    part.placement = context.intern(placement);
  }
  return part;
}

// The part of a row of a stack with this part.
GlobalPart part_of_row(const Module& module, GlobalPart part, size_t dim) {
  Context& context = module.context();
  if (part.type) {
    TensorType type = context.type(part.type);
    type.shape.erase(type.shape.begin() + static_cast<ptrdiff_t>(dim));
    part.type = context.tensor(type.dtype, type.shape);
  }
  if (part.placement) {
    Placement placement = context.placement(part.placement);
    placement.dims.erase(placement.dims.begin() + static_cast<ptrdiff_t>(dim));
    part.placement = context.intern(placement);
  }
  return part;
}

}  // namespace

RebuiltScan rebuild_scan(Module& module, Rewrite& rewrite, OpId scan, std::span<const LoopParts::Input> inputs,
                         std::span<const ValueId> dropped, std::span<const ValueId> added) {
  const ScanOrder order = *scan_order(OpView(module, scan));
  const LoopParts parts = loop_parts(OpView(module, scan));
  std::vector<ValueId> operands, arguments, results, handed_over;
  Dims offsets;
  for (const LoopParts::Input& input : inputs) {
    operands.push_back(input.stack);
    offsets.push_back(input.offset);
    arguments.push_back(input.row);
  }
  for (const LoopParts::Input& input : inputs) {
    if (input.border) operands.push_back(input.border);
  }
  const size_t borders = operands.size() - inputs.size();
  for (const LoopParts::Output& output : parts.outputs) {
    if (std::ranges::find(dropped, output.stack) != dropped.end()) continue;
    results.push_back(output.row);
    handed_over.push_back(output.stack);
  }
  const size_t kept = results.size();
  results.insert(results.end(), added.begin(), added.end());
  const size_t outputs = results.size();
  for (const LoopParts::Carry& carry : parts.carries) {
    operands.push_back(carry.entry);
    arguments.push_back(carry.argument);
    results.push_back(carry.next);
  }
  rewrite.commit(parts.body);
  module.drop_uses(scan);
  module.release_regions(scan);
  Region& body = module.region(parts.body);
  body.arguments = arguments;
  for (uint32_t i = 0; i < arguments.size(); ++i) module.value(arguments[i]).index = i;
  body.results = results;
  const Operation old = module.op(scan);
  const RegionId regions[] = {parts.body};
  const Attrs attrs = scan_attrs(order, offsets, {borders, outputs, parts.carries.size()});
  const OpId made = rewrite.insert(rewrite.before(scan), old.loc, [&](Builder& builder) {
    builder.set_loc(old.loc, old.origin);
    return builder.create_op(local_scan(), operands, builder.context().intern(attrs), {}, regions);
  });
  RebuiltScan rebuilt{.op = made};
  for (size_t i = 0; i < kept; ++i) rewrite.hand_over(handed_over[i], module.result(made, static_cast<uint32_t>(i)));
  for (size_t i = kept; i < outputs; ++i) {
    const ValueId stack = module.result(made, static_cast<uint32_t>(i)), row = added[i - kept];
    module.set_part(stack, part_of_stack(module, module.part(row), order));
    module.value(stack).origin = module.value(row).origin;
    rebuilt.stacks.push_back(stack);
  }
  for (size_t i = 0; i < parts.carries.size(); ++i) {
    rewrite.hand_over(parts.carries[i].result, module.result(made, static_cast<uint32_t>(outputs + i)));
  }
  rewrite.erase(scan);
  return rebuilt;
}

ValueId add_row_argument(Module& module, RegionId body, ValueId like) {
  const ValueId row = module.add_argument(body, module.value(like).type, loc_of(module, like));
  module.set_part(row, module.part(like));
  module.value(row).origin = module.value(like).origin;
  return row;
}

ValueId add_row_of(Module& module, RegionId body, ValueId stack, size_t dim) {
  TensorType type = module.type(stack);
  type.shape.erase(type.shape.begin() + static_cast<ptrdiff_t>(dim));
  const ValueId row = module.add_argument(body, module.context().tensor(type.dtype, type.shape), loc_of(module, stack));
  module.set_part(row, part_of_row(module, module.part(stack), dim));
  module.value(row).origin = module.value(stack).origin;
  return row;
}

}  // namespace shardwise
