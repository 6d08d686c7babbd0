// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/op_verifier.h"
#include "shardwise/ir/placement/placed_type.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/text/attribute_parser.h"
#include "shardwise/text/op_parser.h"

namespace shardwise {
namespace {

// shardwise.local_blocks and shardwise.owned give what the value's sdy.sharding does not tell.
Placement placement_of_global(const TensorSharding& sharding, const Dims& shape, const PartSyntax& syntax) {
  Placement placement = placement_of(sharding, shape);
  for (size_t d = 0; syntax.blocks && d < syntax.blocks->size(); ++d) placement.dims[d].block = (*syntax.blocks)[d];
  placement.is_owned = syntax.is_owned;
  return placement;
}

}  // namespace

// A type without padding is not written: its dims are all the blocks.
TypeId OpParser::type_without_padding(DType dtype, const Placement& placement, size_t position) {
  TensorType type{dtype, {}};
  int64_t elements = 1;
  for (size_t d = 0; d < placement.dims.size(); ++d) {
    int64_t size = 0;
    // The blocks come from the text, so both products may overflow; a wrapped size could pass the checks that follow.
    if (__builtin_mul_overflow(placement.dims[d].block, placement.shard_count(d), &size) ||
        (size > 0 && __builtin_mul_overflow(elements, size, &elements)) || elements >= kMaxElements) {
      fail_too_large(position);
    }
    type.shape.push_back(size);
  }
  return context().intern(type);
}

bool OpParser::parse_parts(std::vector<PartSyntax>& parts, std::string_view name) {
  if (!text_words::is_part_column(name)) return false;
  size_t count = 0;
  // The columns of one op fill the same list: after `placement = [<…>, <…>]`, `padding
  // = [unit, dense<…>]` adds to item 1.
  const auto parse_item = [&] {
    if (parts.size() <= count) parts.emplace_back();
    if (!take_keyword("unit")) parse_part(parts[count], name);
    ++count;
  };
  if (!take("[")) {
    parse_item();
    return true;
  }
  do {
    parse_item();
  } while (take(","));
  expect("]", str("after the items of '", name, "'"));
  return true;
}

void OpParser::parse_part(PartSyntax& syntax, std::string_view name) {
  const size_t start = token_start();
  if (name == text_words::kPlacement) {
    syntax.part.placement = located(start, [&] { return context().intern(parse_placement(*this, mesh_lookup())); });
    // 17 rows on x=4: `<@mesh, [{"x"}: 5]> : tensor<17xf32>`. Without padding the type follows from the blocks.
    if (take(":")) syntax.part.type = parse_type();
    return;
  }
  const Attribute value = parse_attribute(*this);
  if (name == text_words::kLocalBlocks) {
    const auto* blocks = std::get_if<IntArray>(&value.base());
    if (blocks == nullptr) fail_at(start, "local blocks must be array<i64: ...>, or unit for the default");
    syntax.blocks = *blocks;
    return;
  }
  if (name == text_words::kOwned) {
    const auto* flag = std::get_if<bool>(&value.base());
    if (flag == nullptr || !*flag) fail_at(start, "owned must be true, or left out");
    syntax.is_owned = true;
    return;
  }
  const auto* fill = std::get_if<DenseAttr>(&value.base());
  if (fill == nullptr || !fill->data.shape().empty()) fail_at(start, "padding must be dense<...> of one element");
  const Scalar element = located(start, [&] { return load(fill->data.dtype(), fill->data.data()); });
  syntax.part.padding = {Padding::Kind::kFill, element};
}

void OpParser::set_part(ValueId value, const PartSyntax& syntax, size_t position) {
  GlobalPart part = syntax.part;
  const Dims& shape = module().type(value).shape;
  const bool is_filled = part.padding.kind == Padding::Kind::kFill;
  const bool is_global = syntax.blocks || syntax.is_owned;
  const std::string_view given = syntax.blocks ? "local blocks" : "owned";
  if (is_global && part.placement) fail_at(position, str(given, " and a placement must not be given together"));
  if (is_filled && !part.placement) fail_at(position, "padding must be given with a placement");
  // A conversion of the fill would print as another text than the one that was read.
  if (is_filled && part.padding.fill.dtype != module().type(value).dtype) {
    fail_at(position, "padding must be of the value's dtype");
  }
  if (is_global) {
    const ShardingId sharding = module().value(value).sharding;
    if (!sharding) fail_at(position, str(given, " must be given with a sharding"));
    if (syntax.blocks && syntax.blocks->size() != shape.size()) {
      fail_at(position, "there must be one block size per dim");
    }
    const Placement placement = placement_of_global(context().sharding(sharding), shape, syntax);
    // Default blocks follow from the sharding. Without a part the value prints, and
    // compares, like one without the attribute.
    if (placement.is_owned || !placement.has_default_blocks(shape)) {
      part = {.type = {}, .placement = context().intern(placement), .padding = {}};
    }
  }
  if (!part.placement) return;
  // Local blocks and owners describe a value that still has its global type; only a placement describes a local value.
  if (!part.type && !is_global) {
    part.type = type_without_padding(module().type(value).dtype, context().placement(part.placement), position);
  }
  // The part is stored before it is verified because verify_part reads it from the module.
  const GlobalPart known = module().part(value);
  module().set_part(value, part);
  located(position, [&] { verify_part(module(), value); });
  // An uneven dim ends in padding. Without a fill in the text nothing is known of its contents.
  if (part.type && !is_filled && LayoutView(context(), part.placed()).is_uneven()) {
    part.padding.kind = Padding::Kind::kGarbage;
    module().set_part(value, part);
  }
  // One value may have its part in two places: on its op, and on the function result that returns it.
  if (known.placement && known != part)
    fail_at(position, "the placement and padding of a value must be equal wherever they are given");
}

}  // namespace shardwise
