// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/structural_equality.h"

#include <algorithm>

#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

// In any order: a text may list them in another one than the builder did.
bool same_attributes(const Attrs& a, const Attrs& b) {
  return a.entries().size() == b.entries().size() && std::ranges::all_of(a.entries(), [&](const NamedAttribute& entry) {
           const Attribute* other = b.find(entry.first);
           return other != nullptr && *other == entry.second;
         });
}

class Comparison {
 public:
  // `partner` has a place for each value of a, all of them empty.
  Comparison(const Module& a, const Module& b, std::vector<ValueId>& partner) : a_(a), b_(b), partner_(partner) {}

  bool functions() {
    return a_.name == b_.name && same_stage() &&
           std::ranges::equal(a_.meshes, b_.meshes, [](const MeshPtr& a, const MeshPtr& b) { return equal(a, b); }) &&
           std::ranges::equal(a_.functions, b_.functions,
                              [&](const Function& a, const Function& b) { return function(a, b); });
  }

  bool regions(RegionId a, RegionId b) {
    const bool same = region(a, b);
    for (const ValueId value : paired_) partner_[value.index] = {};
    return same;
  }

 private:
  // Texts do not show the first stages, so they are not compared.
  bool same_stage() const { return a_.stage == b_.stage || (!is_printed(a_.stage) && !is_printed(b_.stage)); }

  bool function(const Function& a, const Function& b) {
    const size_t results = a_.region(a.body).results.size();
    auto sharding_of = [](const Function& f, size_t i) {
      return i < f.result_shardings.size() ? f.result_shardings[i] : ShardingId{};
    };
    if (a.name != b.name || a.is_public() != b.is_public() || !region(a.body, b.body)) return false;
    for (size_t i = 0; i < results; ++i) {
      if (!shardings(sharding_of(a, i), sharding_of(b, i))) return false;
    }
    const auto same_part = [&](ValueId a_value, ValueId b_value) { return equal_parts(a_value, b_value); };
    return std::ranges::equal(a_.region(a.body).arguments, b_.region(b.body).arguments, same_part) &&
           std::ranges::equal(a_.region(a.body).results, b_.region(b.body).results, same_part);
  }

  bool equal_parts(ValueId a, ValueId b) const {
    // A value without a part and one with a fully replicated placement print alike.
    if (a_.holds_whole(a) || b_.holds_whole(b)) return a_.holds_whole(a) && b_.holds_whole(b);
    const GlobalPart& x = a_.part(a);
    const GlobalPart& y = b_.part(b);
    return a_.global_type(a) == b_.global_type(b) && x.padding == y.padding &&
           a_.context().placement(x.placement) == b_.context().placement(y.placement);
  }

  bool shardings(ShardingId a, ShardingId b) const {
    if (!a || !b) return !a && !b;
    return a_.context().sharding(a) == b_.context().sharding(b);
  }

  // A text shows an argument of an op's region without a sharding as an open one, if other values of the op have one.
  // Whether `shown`, of the argument of the other module, is that one.
  static bool is_open(ShardingId none, const Module& module, ValueId shown) {
    const ShardingId id = module.value(shown).sharding;
    if (none || !id) return false;
    const TensorSharding& sharding = module.context().sharding(id);
    return sharding == TensorSharding::open(sharding.mesh, module.type(shown).ndim());
  }

  // Compares types and columns, and records that the two values correspond.
  bool values(ValueId a, ValueId b) {
    partner_[a.index] = b;
    if (is_one_module()) paired_.push_back(a);
    // Parts of global values inside a local program are not compared: its text does not have them.
    return a_.type(a) == b_.type(b) && (a_.part(a).type || b_.part(b).type || equal_parts(a, b));
  }

  bool is_one_module() const { return &a_ == &b_; }

  bool corresponding(ValueId a, ValueId b) const {
    const ValueId partner = partner_[a.index];
    // A value from around two regions of one module has no partner and must be the same value.
    return partner ? partner == b : is_one_module() && a == b;
  }

  bool corresponding(std::span<const ValueId> a, std::span<const ValueId> b) const {
    return std::ranges::equal(a, b, [&](ValueId a_id, ValueId b_id) { return corresponding(a_id, b_id); });
  }

  bool region(RegionId a_id, RegionId b_id) {
    const Region& a = a_.region(a_id);
    const Region& b = b_.region(b_id);
    auto same_argument = [&](ValueId a_value, ValueId b_value) {
      if (!values(a_value, b_value)) return false;
      const ShardingId of_a = a_.value(a_value).sharding, of_b = b_.value(b_value).sharding;
      return shardings(of_a, of_b) || (a.op && b.op && (is_open(of_a, b_, b_value) || is_open(of_b, a_, a_value)));
    };
    return std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), b.arguments.end(), same_argument) &&
           std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(),
                      [&](OpId a_op, OpId b_op) { return ops(OpView(a_, a_op), OpView(b_, b_op)); }) &&
           corresponding(a.results, b.results);
  }

  bool ops(const OpView& a, const OpView& b) {
    if (a.name() != b.name() || !same_attributes(a.attrs(), b.attrs()) || !corresponding(a.operands(), b.operands()) ||
        a.result_count() != b.result_count() || !result_shardings(a, b)) {
      return false;
    }
    for (size_t i = 0; i < a.result_count(); ++i) {
      if (!values(a.result(i), b.result(i))) return false;
    }
    return std::ranges::equal(a.regions(), b.regions(),
                              [&](RegionId a_region, RegionId b_region) { return region(a_region, b_region); });
  }

  // As printed: OpPrinter::sharding_list fills up the list of an op with open shardings.
  static std::optional<TensorSharding> sharding_or_open(const OpView& op, size_t result) {
    for (size_t i = 0; i < op.result_count(); ++i) {
      const ShardingId any = op.module().value(op.result(i)).sharding;
      const ShardingId own = op.module().value(op.result(result)).sharding;
      if (own) return op.module().context().sharding(own);
      if (any) return TensorSharding::open(op.module().context().sharding(any).mesh, op.result_type(result).ndim());
    }
    return std::nullopt;
  }

  static bool result_shardings(const OpView& a, const OpView& b) {
    for (size_t i = 0; i < a.result_count(); ++i) {
      if (sharding_or_open(a, i) != sharding_or_open(b, i)) return false;
    }
    return true;
  }

  const Module& a_;
  const Module& b_;
  std::vector<ValueId>& partner_;  // by value of a: the value of b that corresponds
  std::vector<ValueId> paired_;    // those of one module that have a partner
};

}  // namespace

bool structurally_equal(const Module& a, const Module& b) {
  std::vector<ValueId> partner(a.value_count());
  return Comparison(a, b, partner).functions();
}

bool SameRegions::operator()(RegionId a, RegionId b) {
  if (partner_.size() < module_.value_count()) partner_.resize(module_.value_count());
  return Comparison(module_, module_, partner_).regions(a, b);
}

}  // namespace shardwise
