// SPDX-License-Identifier: Apache-2.0
//
// Requirements that infer functions share, and lists of dims. Each error names the op, the list and the types.
//
//   expect_dims(op, "dimensions", {0, 2}, 3);      // each in [0, 3), none twice
//   expect_length(op, "permutation", {1, 0}, 2);
//   result_or_declared(op, {{4, 8}, DType::kF32}); // the implied type; a declared one must be the same
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shardwise/ir/builder.h"

namespace shardwise {

// Errors of these name the types of the operands.
void expect_shape(const InferContext& op, bool holds, std::string_view must_hold, std::string_view way_out = {});
void expect_dtype(const InferContext& op, bool holds, std::string_view must_hold, std::string_view way_out = {});
void expect_same_shapes(const InferContext& op);  // of all operands
// An enumeration that is one of these words.
const std::string& expect_word(const InferContext& op, std::string_view attr_name, std::span<const char* const> words);
void expect_dims(const InferContext& op, std::string_view attr_name, DimSpan dims, int64_t ndim);
void expect_length(const InferContext& op, std::string_view attr_name, DimSpan list, int64_t length);
const Dims& expect_list(const InferContext& op, std::string_view attr_name, int64_t length);  // a list attribute
void expect_scalar(const InferContext& op, size_t operand, DType dtype);
// An integer attribute that is a dim of a tensor with `ndim` dims.
int64_t expect_dim(const InferContext& op, std::string_view attr_name, int64_t ndim);
// Also rejects a type of kMaxElements elements or more, ignoring dims of size 0, so that sums of sizes do not overflow.
TypeId result_or_declared(const InferContext& op, const TensorType& type, size_t result = 0);
inline constexpr int64_t kMaxElements = int64_t{1} << 56;

inline const Dims& dims_attr(const OpView& op, std::string_view name) { return op.attrs().get<IntArray>(name); }
bool is_set(const Attrs& attrs, std::string_view name);  // a boolean, false where it is missing
// Lists of dims in an attribute with fields, such as the dimension numbers of a dot. StableHLO prints no empty lists:
// a missing one is empty.
Dims list_field(const StructAttr& attribute, std::string_view name);
void add_list_field(StructAttr& attribute, std::string_view name, const Dims& list);
bool contains_dim(DimSpan dims, int64_t dim);
// The dims of [0, ndim) that are in none of the lists, ascending.
Dims other_dims(int64_t ndim, DimSpan a, DimSpan b = {});
Dims identity_dims(int64_t ndim, int64_t first = 0);  // {first, first + 1, …}
Dims inverse_permutation(DimSpan permutation);
Dims ascending(Dims dims);
Dims sizes_at(DimSpan shape, DimSpan dims);  // {shape[dims[0]], shape[dims[1]], …}
Dims joined(DimSpan a, DimSpan b);           // the dims of `a`, then those of `b`
// The dims of a tensor after it gets new leading dims.
Dims shifted(DimSpan dims, int64_t by = 1);
Dims with_leading(int64_t size, DimSpan shape);

}  // namespace shardwise
