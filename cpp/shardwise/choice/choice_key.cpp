// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/choice_key.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string_view>

#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/propagation/program_mesh.h"

namespace shardwise {
namespace {

// FNV-1a, not std::hash: the fingerprint is written to files.
constexpr uint64_t kStart = 0xcbf29ce484222325, kPrime = 0x100000001b3;

uint64_t add_number(uint64_t hash, uint64_t number) {
  for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (number >> 8 * byte & 0xff)) * kPrime;
  return hash;
}

uint64_t add_text(uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  return add_number(hash, text.size());
}

uint64_t add_attribute(uint64_t hash, const Attribute& attribute);

// Attributes of StableHLO ops whose numbers are sizes, or positions along dims: they change with the shapes.
constexpr std::string_view kSizes[] = {
    "edge_padding_high", "edge_padding_low", "fft_length",        "limit_indices", "output_shape", "padding", "shape",
    "slice_sizes",       "start_indices",    "window_dimensions",
};

uint64_t add_fields(uint64_t hash, const std::vector<NamedAttribute>& fields) {
  for (const auto& [name, value] : fields) {
    hash = add_text(hash, name);
    if (std::ranges::find(kSizes, name) == std::end(kSizes)) hash = add_attribute(hash, value);
  }
  return hash;
}

template <class Numbers>
uint64_t add_numbers(uint64_t hash, const Numbers& numbers) {
  for (const auto number : numbers) hash = add_number(hash, static_cast<uint64_t>(number));
  return add_number(hash, numbers.size());
}

// All but the elements of constants, which may be sizes, too.
uint64_t add_attribute(uint64_t hash, const Attribute& attribute) {
  hash = add_number(hash, attribute.index());
  if (const auto* number = std::get_if<IntAttr>(&attribute))
    return add_number(hash, static_cast<uint64_t>(number->value));
  if (const auto* number = std::get_if<FloatAttr>(&attribute))
    return add_number(hash, std::bit_cast<uint64_t>(number->value));
  if (const auto* numbers = std::get_if<NarrowIntArray>(&attribute)) return add_numbers(hash, numbers->values);
  if (const auto* flag = std::get_if<bool>(&attribute)) return add_number(hash, *flag ? 1 : 0);
  if (const auto* text = std::get_if<std::string>(&attribute)) return add_text(hash, *text);
  if (const auto* value = std::get_if<EnumAttr>(&attribute)) return add_text(hash, value->value);
  if (const auto* symbol = std::get_if<Symbol>(&attribute)) return add_text(hash, symbol->name);
  if (const auto* numbers = std::get_if<IntArray>(&attribute)) return add_numbers(hash, *numbers);
  if (const auto* fields = std::get_if<StructAttr>(&attribute))
    return add_fields(add_text(hash, fields->name), fields->fields);
  if (const auto* fields = std::get_if<AttrDict>(&attribute)) return add_fields(hash, fields->fields);
  if (const auto* array = std::get_if<AttrArray>(&attribute)) {
    for (const Attribute& element : *array) hash = add_attribute(hash, element);
  }
  return hash;
}

}  // namespace

OpKeys::OpKeys(const Module& module, const CallGraph& calls)
    : module_(module), keys_(module.op_count()), numbers_(module.value_count()) {
  fingerprint_ = kStart;
  if (const MeshPtr mesh = main_mesh(module); mesh != nullptr) {
    for (const MeshAxis& axis : mesh->axes()) fingerprint_ = add_text(fingerprint_, axis.name);
  }
  for (const size_t f : calls.reached()) {
    walk(module, module.functions[f].body, [&](OpId id) { add(OpView(module_, id)); });
  }
}

void OpKeys::add(const OpView& op) {
  const Operation& known = module_.op(op.id());
  keys_[op.id().index] = {known.origin, counts_[known.origin]++};
  uint64_t hash = add_number(add_text(fingerprint_, op.name()), of_attrs(known.attrs));
  for (const ValueId operand : op.operands()) hash = add_number(hash, number_of(operand));
  for (size_t i = 0; i < op.result_count(); ++i) {
    hash = add_number(hash, number_of(op.result(i)));
    const TensorType& type = op.result_type(i);
    hash = add_number(add_number(hash, static_cast<uint64_t>(type.dtype)), type.shape.size());
  }
  fingerprint_ = hash;
}

// In the order in which the walk meets them, which does not depend on ids.
uint32_t OpKeys::number_of(ValueId value) {
  uint32_t& number = numbers_[value.index];
  if (number == 0) number = ++values_;
  return number;
}

uint64_t OpKeys::of_attrs(AttrsId attrs) {
  const auto [found, is_new] = attr_hashes_.try_emplace(attrs, kStart);
  if (is_new) found->second = add_fields(kStart, module_.context().attrs(attrs).entries());
  return found->second;
}

std::string fingerprint_text(uint64_t fingerprint) {
  std::string text(16, '0');
  for (size_t i = text.size(); i-- > 0; fingerprint >>= 4) text[i] = "0123456789abcdef"[fingerprint & 0xf];
  return text;
}

}  // namespace shardwise
