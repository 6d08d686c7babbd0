// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/context.h"

#include "shardwise/base/quantity.h"
#include "shardwise/ir/place.h"

namespace shardwise {
int64_t TensorType::element_quantity() const {
  int64_t count = 1;
  for (const int64_t dim : shape) count = saturated_product(count, dim);
  return count;
}

int64_t TensorType::byte_quantity() const { return saturated_product(element_quantity(), item_size(dtype)); }

std::string TensorType::text() const {
  if (dtype == DType::kToken) return std::string(mlir_name(dtype));
  std::string out = "tensor<";
  for (int64_t size : shape) out.append(std::to_string(size)).append("x");
  return out.append(mlir_name(dtype)).append(">");
}

size_t hash_value(const TensorType& type) {
  size_t seed = static_cast<size_t>(type.dtype) + 1;
  for (int64_t size : type.shape) seed = hash_combine(seed, static_cast<size_t>(size));
  return seed;
}

size_t hash_value(const Location& location) {
  size_t seed = static_cast<size_t>(location.kind);
  seed = hash_combine(seed, std::hash<std::string>()(location.text));
  seed = hash_combine(seed, static_cast<size_t>(location.line));
  seed = hash_combine(seed, static_cast<size_t>(location.column));
  seed = hash_combine(seed, location.child.index);
  return hash_combine(seed, location.source.index);
}

TypeId Context::tensor(DType dtype, DimSpan shape) { return intern(TensorType{dtype, to_dims(shape)}); }

LocId Context::file_location(std::string file, int32_t line, int32_t column) {
  return intern(Location{.kind = Location::Kind::kFile, .text = std::move(file), .line = line, .column = column});
}

LocId Context::named_location(std::string name, LocId child) {
  return intern(Location{.kind = Location::Kind::kName, .text = std::move(name), .child = child});
}

// Names are around a place: loc("h"("train.py":8:3)).
LocId Context::without_names(LocId id) const {
  while (id && location(id).kind == Location::Kind::kName) id = location(id).child;
  return id;
}

ResolvedSource Context::resolve(LocId id) const {
  id = without_names(id);
  if (!id) return {};
  const Location& loc = location(id);
  // A traced op stores a code object and an offset in it. Its line is worked out only when somebody asks.
  if (loc.kind == Location::Kind::kSource) return sources_[loc.source.index - 1]->resolve(loc.line);
  if (loc.kind == Location::Kind::kFile) return {.file = loc.text, .line = loc.line, .column = loc.column};
  return {};
}

std::string Context::name_of(LocId id) const {
  return id && location(id).kind == Location::Kind::kName ? location(id).text : std::string();
}

std::string Context::location_text(LocId id) const {
  const ResolvedSource source = resolve(id);
  return place_text(source.file, source.line);
}

}  // namespace shardwise
