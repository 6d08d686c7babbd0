// SPDX-License-Identifier: Apache-2.0
//
// Attributes: a closed set of value kinds, in ordered dictionaries. This file knows no op: an op's OpDef defines the
// meaning, and the printer and the parser use only the kind.
//
//   Attrs attrs{{"dimensions", IntArray{0, 2}}, {"mesh", Symbol{"mesh"}}};
//   attrs.get<IntArray>("dimensions")      // {0, 2}; a missing or differently typed one is an InternalError
//   attrs.find<bool>("is_host")            // nullptr
//
// Kinds and their MLIR text:
//   bool            true                              IntArray          array<i64: 1, 2>
//   IntAttr         3 : i64, 3 : ui8, 3 : index       AttrArray         [#stablehlo<precision DEFAULT>, …]
//   NarrowIntArray  array<i32: 1, 2>                  Unit              unit
//   FloatAttr       1.5 : f32                         DenseAttr         dense<[1, 2]> : tensor<2xi32>
//   std::string     "text"                            EnumAttr          #stablehlo<comparison_direction LT>
//   Symbol          @mesh                             StructAttr        #stablehlo.dot<lhs_batching_dimensions = [1]>
//   TypeAttr        tensor<2xf32>                     AxesAttr          #sdy<axis_ref_list{"x", "y":(1)2}>
//   AttrDict        {a = 1 : i64}                     AxesPerDimAttr    #sdy<list_of_axis_ref_lists[{"x"}, {}]>
//   TensorSharding  #sdy.sharding<@mesh, [{"x"}]>     ShardingPerValue  #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>
//   RuleAttr        #sdy.op_sharding_rule<…>
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "shardwise/base/dims.h"
#include "shardwise/base/ndarray.h"
#include "shardwise/ir/type.h"
#include "shardwise/mesh/axis.h"
#include "shardwise/mesh/sharding.h"

namespace shardwise {

struct Attribute;
using IntArray = Dims;
using AttrArray = std::vector<Attribute>;
using NamedAttribute = std::pair<std::string, Attribute>;

struct Unit {
  friend bool operator==(Unit, Unit) = default;
};
struct IntAttr {
  int64_t value = 0;
  int bits = 64;  // 0: index
  bool is_unsigned = false;
  friend bool operator==(const IntAttr&, const IntAttr&) = default;
};
// Integers of another width than IntArray's; those of one bit are booleans.
struct NarrowIntArray {
  int bits = 32;
  Dims values;
  friend bool operator==(const NarrowIntArray&, const NarrowIntArray&) = default;
};
struct FloatAttr {
  double value = 0;
  DType dtype = DType::kF32;
  friend bool operator==(const FloatAttr& a, const FloatAttr& b);  // bit-wise
};
struct Symbol {
  std::string name;
  friend bool operator==(const Symbol&, const Symbol&) = default;
};
struct TypeAttr {
  TensorType type;
  friend bool operator==(const TypeAttr&, const TypeAttr&) = default;
};
// `#<dialect><<mnemonic> <value>>`, for example #stablehlo<comparison_direction LT>.
struct EnumAttr {
  std::string dialect, mnemonic, value;
  friend bool operator==(const EnumAttr&, const EnumAttr&) = default;
};
// `#<name><field = value, …>`, for example #stablehlo.dot<…>; integer lists in it are printed bare: [0, 1].
struct StructAttr {
  std::string name;
  std::vector<NamedAttribute> fields;
  friend bool operator==(const StructAttr&, const StructAttr&);
};
struct AttrDict {
  std::vector<NamedAttribute> fields;
  friend bool operator==(const AttrDict&, const AttrDict&);
};
// Elements of a constant; a splat has all strides 0. Equality compares shape, dtype and bytes.
struct DenseAttr {
  NdArray data;
  bool is_index = false;  // 64-bit integers of MLIR's type index, as used in layouts
  friend bool operator==(const DenseAttr& a, const DenseAttr& b);
};
// Mesh axes by name: a collective resolves them against the mesh that its `mesh` attribute names.
struct AxesAttr {
  std::vector<RawAxisRef> axes;
  friend bool operator==(const AxesAttr&, const AxesAttr&) = default;
};
struct AxesPerDimAttr {
  std::vector<std::vector<RawAxisRef>> dims;
  friend bool operator==(const AxesPerDimAttr&, const AxesPerDimAttr&) = default;
};

// A sharding rule as written, factors by number: ([i, k], [k, j])->([i, j]) {i=8, j=16, k=4} reduction={k}, custom.
// rule/rule_attribute.h checks whether it fits an op.
struct RuleAttr {
  using Mapping = std::vector<Dims>;  // of one tensor: the factors of each dim, major to minor
  std::vector<Mapping> operands, results;
  Dims sizes;  // of the factors
  Dims reduction, need_replication, permutation, blocked;
  bool custom = false;  // from a user, not from the op
  friend bool operator==(const RuleAttr&, const RuleAttr&) = default;
};
using ShardingPerValue = std::vector<TensorSharding>;

struct Attribute : std::variant<Unit, bool, IntAttr, FloatAttr, std::string, IntArray, NarrowIntArray, AttrArray,
                                DenseAttr, EnumAttr, StructAttr, AttrDict, Symbol, TypeAttr, AxesAttr, AxesPerDimAttr,
                                TensorSharding, ShardingPerValue, RuleAttr> {
  using variant::variant;
  const variant& base() const { return *this; }
  friend bool operator==(const Attribute& a, const Attribute& b) { return a.base() == b.base(); }
};

size_t hash_value(const Attribute& attribute);

// Why a reshard or a collective exists: "operand 0 of tanh". Collectives that differ only in their cause are equal.
inline constexpr std::string_view kCauseAttr = "cause";
// The method by which an op is computed (OpDef::methods), from `assign` to `localize`.
inline constexpr std::string_view kMethodAttr = "method";

// An ordered dictionary of attributes. Small: lookups are linear.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<NamedAttribute> entries) : entries_(entries) {}
  explicit Attrs(std::vector<NamedAttribute> entries) : entries_(std::move(entries)) {}

  const std::vector<NamedAttribute>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  const Attribute* find(std::string_view name) const&;
  void set(std::string_view name, Attribute value);  // replaces in place or appends
  void erase(std::string_view name);

  template <class T>
  const T* find(std::string_view name) const& {
    const Attribute* attribute = find(name);
    return attribute == nullptr ? nullptr : std::get_if<T>(&attribute->base());
  }
  template <class T>
  const T& get(std::string_view name) const& {
    const T* value = find<T>(name);
    if (value == nullptr) fail_missing(name);
    return *value;
  }
  int64_t get_int(std::string_view name) const { return get<IntAttr>(name).value; }

  // find and get return references into the dictionary, so it must not be a temporary.
  const Attribute* find(std::string_view name) const&& = delete;
  template <class T>
  const T* find(std::string_view name) const&& = delete;
  template <class T>
  const T& get(std::string_view name) const&& = delete;

  friend bool operator==(const Attrs&, const Attrs&) = default;

 private:
  [[noreturn]] static void fail_missing(std::string_view name);
  std::vector<NamedAttribute> entries_;
};

size_t hash_value(const Attrs& attrs);

// ---- axes and moves of collectives: [{"x"}, {}], [{axes = {"x"}, from_dim = 0, to_dim = 1}] ----
AxesPerDimAttr axes_per_dim(const Mesh& mesh, std::span<const AxisList> dims);
std::vector<AxisList> resolve(const Mesh& mesh, const AxesPerDimAttr& lists);

AttrArray moves_attr(const Mesh& mesh, std::span<const AllToAllMove> moves);
// Returns none unless the attribute is a dictionary with `axes`, `from_dim` and `to_dim`.
std::optional<AllToAllMove> move_of(const Mesh& mesh, const Attribute& attribute);

}  // namespace shardwise
