// SPDX-License-Identifier: Apache-2.0
//
// Writes main of one module anew, op by op, into another that shares its context. What a pass does not change it
// copies:
//
//   Rewriter rewriter(module);
//   for (OpId id : rewriter.source_body().ops) {
//     if (…) rewriter.set(view.result(), something_else); else rewriter.copy(view);
//   }
//   return rewriter.finish();
#pragma once

#include <unordered_map>
#include <vector>

#include "shardwise/ir/builder.h"

namespace shardwise {

class Rewriter {
 public:
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;
  explicit Rewriter(const Module& source);  // the target has the same meshes, and a main without arguments

  const Module& source() const { return source_; }
  const Region& source_body() const { return source_.region(source_.main().body); }
  Module& target() { return target_; }
  Builder& builder() { return builder_; }

  ValueId add_argument(ValueId source_argument, TypeId type);  // keeps the location
  void copy_arguments();                                       // with types and shardings
  ValueId get(ValueId source) const;
  void set(ValueId source, ValueId target);
  // The op with other operands; types, attributes, regions, shardings and blocks of the results are kept.
  OpId copy(const OpView& op, std::vector<ValueId> operands);
  OpId copy(const OpView& op);  // operands as mapped
  void return_mapped_results();
  Module finish() { return std::move(target_); }

 private:
  const Module& source_;
  Module target_;
  Builder builder_;
  std::vector<ValueId> values_;  // by source value
};

}  // namespace shardwise
