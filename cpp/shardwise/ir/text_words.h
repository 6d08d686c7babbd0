// SPDX-License-Identifier: Apache-2.0
//
// Words of program text that are not ops here: terminators are Region::results, declared meshes and functions are lists
// of the module, and these attributes are columns of values.
//
//   module @m attributes {shardwise.stage = "local"} {
//   sdy.mesh @mesh = <["x"=4]>
//   func.func public @main(%arg0: tensor<8xf32> {shardwise.placement = …}) { … return }
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace shardwise::text_words {

inline constexpr std::string_view kFunction = "func.func";
inline constexpr std::string_view kMesh = "sdy.mesh";
inline constexpr std::string_view kFunctionReturn = "func.return";  // or `return` alone
inline constexpr std::string_view kRegionReturn = "stablehlo.return";
inline constexpr std::string_view kShardyReturn = "sdy.return";  // in regions of sdy ops

inline constexpr std::string_view kSharding = "sdy.sharding";
inline constexpr std::string_view kShardingRule = "sdy.sharding_rule";
inline constexpr std::string_view kPropagationEdges = "sdy.propagation_edges";
inline constexpr std::string_view kAgain = "shardwise.again";  // ir/rewrite/again.h
inline constexpr std::string_view kStage = "shardwise.stage";
inline constexpr std::string_view kLocalBlocks = "shardwise.local_blocks";
inline constexpr std::string_view kOwned = "shardwise.owned";
inline constexpr std::string_view kPlacement = "shardwise.placement";
inline constexpr std::string_view kPadding = "shardwise.padding";
inline constexpr std::string_view kPartColumns[] = {kLocalBlocks, kOwned, kPlacement, kPadding};  // of Module::part
constexpr bool is_part_column(std::string_view name) {
  return std::ranges::find(kPartColumns, name) != std::end(kPartColumns);
}
// A region has the shardings of its arguments and of the results of its op.
inline constexpr std::string_view kInShardings = "in_shardings", kOutShardings = "out_shardings";
inline constexpr std::string_view kGspmdSharding = "mhlo.sharding";  // of XLA; text/gspmd_sharding.h reads it

// The file of a text without a file name. Its lines are only those of that text, so they are not printed.
inline constexpr std::string_view kProgramText = "program text";

inline constexpr std::string_view kVisibilities[] = {"", "public", "private", "nested"};  // by Visibility

}  // namespace shardwise::text_words
