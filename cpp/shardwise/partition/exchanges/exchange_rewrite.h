// SPDX-License-Identifier: Apache-2.0
//
// Replaces exchanges of a local program by others, and by local ops.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/mesh/exchange.h"
#include "shardwise/choice/choices_in_progress.h"

namespace shardwise {

bool is_collective(const Module& module, OpId id, CollectiveKind kind);  // false for no op
ValueId fill_of(const OpView& exchange);                                 // none: zeros
bool same_fill(const Module& module, DType dtype, ValueId a, ValueId b);

// Whether a rewrite of exchanges is made, which is possible: if it sends less, or if it is pinned.
template <class IsBetter>
bool is_chosen(TextChoices& choices, std::string_view rewrite, IsBetter&& is_better) {
  constexpr std::string_view kKept = "kept";
  const std::string text = choices.next([&] { return is_better() ? rewrite : kKept; });
  if (text != rewrite && text != kKept) choices.refuse();
  return text == rewrite;
}

class ExchangeRewrite {
 public:
  explicit ExchangeRewrite(Module& module) : module_(module), rewrite_(module) {}

  // Creates an exchange before `at`, with the cause of `at`.
  ValueId create(OpId at, std::span<const ValueId> operands, ValueId fill, const ExchangeMap& map);
  // A new value takes the place of the result of an exchange.
  void replace(OpId id, ValueId made);
  // Creates the replacement with `make(Builder&)`.
  template <class Make>
  void replace_by_local(OpId id, Make&& make) {
    const OpView op(module_, id);
    replace(id, rewrite_.insert(rewrite_.before(id), op.loc(), [&](Builder& builder) {
      builder.set_loc(op.loc(), module_.op(id).origin);
      return make(builder);
    }));
  }
  void move_before(OpId op, OpId next) { rewrite_.move(op, rewrite_.before(next)); }
  int64_t commit() {  // how many were replaced
    rewrite_.commit();
    return replaced_;
  }

 private:
  Module& module_;
  Rewrite rewrite_;
  int64_t replaced_ = 0;
};

}  // namespace shardwise
