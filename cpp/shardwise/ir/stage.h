// SPDX-License-Identifier: Apache-2.0
//
// How far a program has come on its way to one device. A module knows its stage; a text shows it from `assigned` on:
//
//   module @jit_f attributes {shardwise.stage = "resharded"} {
//
//   global      as it was traced or written; an op's values need not fit each other
//   propagated  every value has a sharding
//   assigned    each op is computed where its values are; reshards move them
//   resharded   collectives in place of reshards, still with global shapes
//   local       the program of one device
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardwise {

enum class Stage : uint8_t { kGlobal, kPropagated, kAssigned, kResharded, kLocal };

inline constexpr std::array<std::string_view, 5> kStageNames{"global", "propagated", "assigned", "resharded", "local"};

constexpr std::string_view stage_name(Stage stage) { return kStageNames[static_cast<size_t>(stage)]; }

constexpr std::optional<Stage> stage_from_name(std::string_view name) {
  for (size_t i = 0; i < kStageNames.size(); ++i) {
    if (kStageNames[i] == name) return static_cast<Stage>(i);
  }
  return std::nullopt;
}

// Whether a text shows it. Earlier stages have one text form, and are equal as programs.
constexpr bool is_printed(Stage stage) { return stage >= Stage::kAssigned; }

}  // namespace shardwise
