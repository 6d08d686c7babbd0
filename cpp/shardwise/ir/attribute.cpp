// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/attribute.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

size_t hash_bytes(const void* data, size_t count) {
  return std::hash<std::string_view>()(std::string_view(static_cast<const char*>(data), count));
}

size_t hash_string(std::string_view text) { return std::hash<std::string_view>()(text); }

size_t hash_dims(const Dims& dims) { return hash_bytes(dims.data(), dims.size() * sizeof(int64_t)); }

template <class List, class Hash>
size_t hash_list(const List& list, Hash hash) {
  size_t seed = list.size();
  for (const auto& item : list) seed = hash_combine(seed, hash(item));
  return seed;
}

// The order of fields counts: equal dictionaries have the same one.
size_t hash_fields(const std::vector<NamedAttribute>& fields) {
  return hash_list(fields, [](const NamedAttribute& field) {
    return hash_combine(hash_string(field.first), hash_value(field.second));
  });
}

size_t hash_axes(const std::vector<RawAxisRef>& axes) {
  return hash_list(axes, [](const RawAxisRef& axis) {
    const auto [pre, size] = axis.sub.value_or(std::pair<int64_t, int64_t>());
    return hash_combine(hash_combine(hash_string(axis.name), static_cast<size_t>(pre)), static_cast<size_t>(size));
  });
}

NdArray first_element(const NdArray& data) { return NdArray(data.dtype(), {1}, {0}, data.data(), data.owner()); }

// The bytes that equality compares: one element for a splat, else all elements in row-major order.
NdArray significant_bytes(const NdArray& data) {
  return data.size() == 0 || !data.is_splat() ? data.contiguous() : first_element(data);
}

// Whether all elements have the same bytes, though each is stored: such an array equals a splat, so it has its hash.
bool is_uniform(const NdArray& data) {
  if (data.size() == 0 || data.is_splat() || !data.is_contiguous()) return false;
  const int64_t item = item_size(data.dtype());
  return std::memcmp(data.data(), data.data() + item, static_cast<size_t>(data.nbytes() - item)) == 0;
}

struct HashVisitor {
  // The index of the alternative is mixed in by hash_value, so that equal numbers of two kinds differ.
  size_t operator()(Unit) const { return 1; }
  size_t operator()(bool value) const { return value ? 3 : 2; }
  size_t operator()(const IntAttr& a) const {
    return hash_combine(static_cast<size_t>(a.value), static_cast<size_t>(2 * a.bits + (a.is_unsigned ? 1 : 0)));
  }
  size_t operator()(const FloatAttr& a) const {
    return hash_combine(std::bit_cast<uint64_t>(a.value), static_cast<size_t>(a.dtype));
  }
  size_t operator()(const std::string& text) const { return hash_string(text); }
  size_t operator()(const IntArray& values) const { return hash_dims(values); }
  size_t operator()(const NarrowIntArray& a) const {
    return hash_combine(hash_dims(a.values), static_cast<size_t>(a.bits));
  }
  size_t operator()(const AttrArray& values) const {
    return hash_list(values, [](const Attribute& value) { return hash_value(value); });
  }
  size_t operator()(const DenseAttr& a) const {
    const NdArray bytes = is_uniform(a.data) ? first_element(a.data) : significant_bytes(a.data);
    return hash_combine(hash_bytes(bytes.data(), static_cast<size_t>(bytes.nbytes())),
                        static_cast<size_t>(a.data.dtype()));
  }
  size_t operator()(const EnumAttr& a) const { return hash_combine(hash_string(a.mnemonic), hash_string(a.value)); }
  size_t operator()(const StructAttr& a) const { return hash_combine(hash_string(a.name), hash_fields(a.fields)); }
  size_t operator()(const AttrDict& a) const { return hash_fields(a.fields); }
  size_t operator()(const Symbol& a) const { return hash_string(a.name); }
  size_t operator()(const TypeAttr& a) const { return hash_value(a.type); }
  size_t operator()(const AxesAttr& a) const { return hash_axes(a.axes); }
  size_t operator()(const AxesPerDimAttr& a) const { return hash_list(a.dims, hash_axes); }
  size_t operator()(const TensorSharding& a) const { return hash_value(a); }
  size_t operator()(const ShardingPerValue& a) const { return hash_list(a, *this); }
  size_t operator()(const RuleAttr& a) const {
    size_t seed = a.custom ? 1 : 0;
    for (const Dims* list : {&a.sizes, &a.reduction, &a.need_replication, &a.permutation, &a.blocked}) {
      seed = hash_combine(seed, hash_dims(*list));
    }
    const auto hash_mapping = [](const RuleAttr::Mapping& dims) { return hash_list(dims, hash_dims); };
    return hash_combine(hash_combine(seed, hash_list(a.operands, hash_mapping)), hash_list(a.results, hash_mapping));
  }
};

}  // namespace

bool operator==(const FloatAttr& a, const FloatAttr& b) {
  // By bits: -0.0 is not 0.0, and a NaN equals itself, or a module with one would not equal its own copy.
  return a.dtype == b.dtype && std::bit_cast<uint64_t>(a.value) == std::bit_cast<uint64_t>(b.value);
}

// Defined here because an Attribute contains them and is incomplete in the header.
bool operator==(const StructAttr& a, const StructAttr& b) { return a.name == b.name && a.fields == b.fields; }

bool operator==(const AttrDict& a, const AttrDict& b) { return a.fields == b.fields; }

bool operator==(const DenseAttr& a, const DenseAttr& b) {
  if (a.data.dtype() != b.data.dtype() || a.data.shape() != b.data.shape() || a.is_index != b.is_index) return false;
  if (a.data.size() == 0) return true;
  // Two splats compare one element; a splat and the same elements written out compare all.
  const bool are_splats = a.data.is_splat() && b.data.is_splat();
  const NdArray lhs = significant_bytes(are_splats ? a.data : a.data.contiguous());
  const NdArray rhs = significant_bytes(are_splats ? b.data : b.data.contiguous());
  return lhs.nbytes() == rhs.nbytes() && std::memcmp(lhs.data(), rhs.data(), static_cast<size_t>(lhs.nbytes())) == 0;
}

size_t hash_value(const Attribute& attribute) {
  return hash_combine(attribute.index(), std::visit(HashVisitor(), attribute.base()));
}

// Linear, because an op has a handful of attributes, and their order is that of the text.
const Attribute* Attrs::find(std::string_view name) const& {
  const auto found = std::ranges::find(entries_, name, &NamedAttribute::first);
  return found == entries_.end() ? nullptr : &found->second;
}

void Attrs::set(std::string_view name, Attribute value) {
  const auto found = std::ranges::find(entries_, name, &NamedAttribute::first);
  if (found == entries_.end()) {
    entries_.emplace_back(std::string(name), std::move(value));
  } else {
    found->second = std::move(value);
  }
}

void Attrs::erase(std::string_view name) {
  std::erase_if(entries_, [&](const NamedAttribute& entry) { return entry.first == name; });
}

size_t hash_value(const Attrs& attrs) { return hash_fields(attrs.entries()); }

void Attrs::fail_missing(std::string_view name) {
  check_internal(false, str("attribute '", name, "' is missing or of another kind"));
  std::abort();  // not reached: check_internal throws
}

AxesPerDimAttr axes_per_dim(const Mesh& mesh, std::span<const AxisList> dims) {
  AxesPerDimAttr attr;
  for (const AxisList& axes : dims) attr.dims.push_back(to_raw(mesh, axes));
  return attr;
}

std::vector<AxisList> resolve(const Mesh& mesh, const AxesPerDimAttr& lists) {
  std::vector<AxisList> dims;
  for (const std::vector<RawAxisRef>& axes : lists.dims) dims.push_back(resolve(mesh, axes));
  return dims;
}

AttrArray moves_attr(const Mesh& mesh, std::span<const AllToAllMove> moves) {
  AttrArray entries;
  for (const AllToAllMove& move : moves) {
    entries.push_back(AttrDict{{{"axes", AxesAttr{to_raw(mesh, move.axes)}},
                                {"from_dim", IntAttr{move.from_dim}},
                                {"to_dim", IntAttr{move.to_dim}}}});
  }
  return entries;
}

std::optional<AllToAllMove> move_of(const Mesh& mesh, const Attribute& attribute) {
  const AttrDict* dict = std::get_if<AttrDict>(&attribute.base());
  if (dict == nullptr) return std::nullopt;
  const Attrs fields(dict->fields);
  const AxesAttr* axes = fields.find<AxesAttr>("axes");
  const IntAttr* from = fields.find<IntAttr>("from_dim");
  const IntAttr* to = fields.find<IntAttr>("to_dim");
  if (axes == nullptr || from == nullptr || to == nullptr) return std::nullopt;
  return AllToAllMove{resolve(mesh, axes->axes), from->value, to->value};
}

}  // namespace shardwise
