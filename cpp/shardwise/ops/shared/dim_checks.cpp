// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/dim_checks.h"

#include <algorithm>
#include <numeric>

#include "shardwise/base/size_error.h"
#include "shardwise/base/text.h"

namespace shardwise {

void expect_shape(const InferContext& op, bool holds, std::string_view must_hold, std::string_view way_out) {
  if (!holds) op.fail_shape(must_hold, op.operand_types_text(), way_out);
}

void expect_dtype(const InferContext& op, bool holds, std::string_view must_hold, std::string_view way_out) {
  if (!holds) op.fail_dtype(must_hold, op.operand_types_text(), way_out);
}

void expect_same_shapes(const InferContext& op) {
  for (size_t i = 1; i < op.operand_count(); ++i) {
    expect_shape(op, op.operand(i).shape == op.operand(0).shape, "operands must have the same shape",
                 "broadcast one of them first");
  }
}

const std::string& expect_word(const InferContext& op, std::string_view attr_name, std::span<const char* const> words) {
  const std::string& word = op.attr<EnumAttr>(attr_name).value;
  if (std::ranges::find(words, word) == words.end()) {
    op.fail_shape(str(attr_name, " must be ", join(words.first(words.size() - 1), ", "), " or ", words.back()), word);
  }
  return word;
}

void expect_dims(const InferContext& op, std::string_view attr_name, DimSpan dims, int64_t ndim) {
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool in_range = dims[i] >= 0 && dims[i] < ndim;
    if (!in_range || contains_dim(dims.first(i), dims[i])) {
      op.fail_shape(str(attr_name, " must be different dims of a tensor with ", ndim, " dims"),
                    str(attr_name, " = ", dims, " for ", op.operand_types_text()),
                    // Both mistakes share a requirement; only the way out differs.
                    in_range ? "name each dim once" : str("use dims in [0, ", ndim, ")"));
    }
  }
}

void expect_length(const InferContext& op, std::string_view attr_name, DimSpan list, int64_t length) {
  if (static_cast<int64_t>(list.size()) == length) return;
  op.fail_shape(str(attr_name, " must have ", length, length == 1 ? " entry" : " entries"),
                str(attr_name, " = ", list, " for ", op.operand_types_text()), "give one entry per dim");
}

const Dims& expect_list(const InferContext& op, std::string_view attr_name, int64_t length) {
  const Dims& list = op.attr<IntArray>(attr_name);
  expect_length(op, attr_name, list, length);
  return list;
}

void expect_scalar(const InferContext& op, size_t operand, DType dtype) {
  const TensorType& type = op.operand(operand);
  if (type.ndim() != 0) {
    op.fail_shape(str("operand ", operand, " must be a scalar"), op.operand_types_text(), "reshape it to no dims");
  }
  if (type.dtype != dtype) {
    op.fail_dtype(str("operand ", operand, " must have dtype ", dtype), op.operand_types_text(), "convert it first");
  }
}

int64_t expect_dim(const InferContext& op, std::string_view attr_name, int64_t ndim) {
  const int64_t dim = op.attr<IntAttr>(attr_name).value;
  expect_dims(op, attr_name, DimSpan(&dim, 1), ndim);
  return dim;
}

TypeId result_or_declared(const InferContext& op, const TensorType& type, size_t result) {
  int64_t elements = 1;
  for (const int64_t size : type.shape) {
    // Divide rather than multiply, which may overflow. Dims of size 0 do not count: the others are still used as
    // strides.
    if (size > 0 && elements > (kMaxElements - 1) / size) {
      fail<SizeError>(op.name(), "the result must have less than 2^56 elements", type.text(), "use smaller sizes");
    }
    elements *= std::max<int64_t>(size, 1);
  }
  const TypeId implied = op.context().intern(type);
  // Here and not in Builder alone, because the message can name the operands that imply the type.
  if (result < op.declared().size() && op.declared()[result] != implied) {
    op.fail_shape(str("the result must have type ", type.text(), " for operands ", op.operand_types_text()),
                  op.context().type(op.declared()[result]).text(), "correct the declared type");
  }
  return implied;
}

bool is_set(const Attrs& attrs, std::string_view name) {
  const bool* value = attrs.find<bool>(name);
  return value != nullptr && *value;
}

Dims list_field(const StructAttr& attribute, std::string_view name) {
  const auto found = std::ranges::find(attribute.fields, name, &NamedAttribute::first);
  const IntArray* list = found == attribute.fields.end() ? nullptr : std::get_if<IntArray>(&found->second.base());
  return list == nullptr ? Dims{} : *list;
}

void add_list_field(StructAttr& attribute, std::string_view name, const Dims& list) {
  if (!list.empty()) attribute.fields.emplace_back(std::string(name), list);
}

bool contains_dim(DimSpan dims, int64_t dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

Dims other_dims(int64_t ndim, DimSpan a, DimSpan b) {
  Dims others;
  for (int64_t dim = 0; dim < ndim; ++dim) {
    if (!contains_dim(a, dim) && !contains_dim(b, dim)) others.push_back(dim);
  }
  return others;
}

Dims identity_dims(int64_t ndim, int64_t first) {
  Dims dims(static_cast<size_t>(ndim));
  std::iota(dims.begin(), dims.end(), first);
  return dims;
}

// [2, 0, 1] has the inverse [1, 2, 0]: dim 2 goes to place 0, so place 0 is where dim 2 comes back from.
Dims inverse_permutation(DimSpan permutation) {
  Dims inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return inverse;
}

Dims ascending(Dims dims) {
  std::sort(dims.begin(), dims.end());
  return dims;
}

Dims sizes_at(DimSpan shape, DimSpan dims) {
  Dims sizes;
  sizes.reserve(dims.size());
  for (const int64_t dim : dims) sizes.push_back(shape[static_cast<size_t>(dim)]);
  return sizes;
}

Dims joined(DimSpan a, DimSpan b) {
  Dims all = to_dims(a);
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

Dims shifted(DimSpan dims, int64_t by) {
  Dims result(dims.begin(), dims.end());
  for (int64_t& dim : result) dim += by;
  return result;
}

Dims with_leading(int64_t size, DimSpan shape) {
  Dims result{size};
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

}  // namespace shardwise
