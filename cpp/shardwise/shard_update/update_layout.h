// SPDX-License-Identifier: Apache-2.0
//
// How the update of one weight is laid out: which dims are split over which of the given axes, behind the axes that
// the model itself has given the weight.
//
//   256x128 f32 over {"data"} of 8         [{"data"}, {}]                 blocks of 32 rows, padding 1
//   9x9x9 f32                              [{"data":(2)2}, {"data":(4)2}, {}]  a group of 4: padding 100/81
//   3x5x64 over {"data"} of 48             [{"data":(16)3}, {}, {"data":(1)16}]  two dims, where one alone pads more
//   7 f32                                  whole: it has 28 bytes
//
// The rules are those of Xu et al. 2020, section 4.1, in terms of shardings: the least padding, then the fewest dims,
// then dims that the model does not split, then leading ones. Before all that, dims of which loops read a part in each trip
// (cut_dims.h) stay whole, unless no other dim takes the axes. Leaves below kLeastBytes are whole. A layout that stores
// more than 5/4 of the elements, or shards of fewer than kLeastShardBytes, is for a smaller group: the minor digits of
// the axes, whose devices are neighbors. Where the paper merges leading dims and splits their
// product, several dims are split, so that arrays keep their shapes. That may pad more, and then takes a smaller group.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardwise/ir/type.h"
#include "shardwise/mesh/sharding.h"

namespace shardwise {

// A cache line: what a smaller shard saves is read anyway.
inline constexpr int64_t kLeastShardBytes = 64;
// A smaller leaf is whole: its update takes less than the message that gathers it.
inline constexpr int64_t kLeastBytes = 1024;

struct UpdateLayout {
  std::optional<TensorSharding> sharding = {};  // none: whole
  int64_t group = 1;                            // devices that the update is split over
  int64_t shard_bytes = 0;
  double padding = 1.0;        // stored elements over elements, beyond what the model's own axes pad
  bool sums_gradient = false;  // it is whole by these rules
  std::string reason = {};     // why it is whole, or split over fewer devices than the axes have
};

// `own`: the weight's sharding without the switch, closed. `axes`: disjoint from it. `cut`: by dim, whether loops read a part.
UpdateLayout choose_update_layout(const TensorType& type, const TensorSharding& own, const AxisList& axes,
                                  const std::vector<bool>& cut = {});

// The bytes of one device, with padding.
int64_t shard_bytes_of(const TensorType& type, const TensorSharding& sharding);

// What the layout of a given sharding is; `own` is the sharding without `axes`.
UpdateLayout described_layout(const TensorType& type, const TensorSharding& own, TensorSharding given,
                              std::string reason);

}  // namespace shardwise
