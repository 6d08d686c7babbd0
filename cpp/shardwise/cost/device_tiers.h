// SPDX-License-Identifier: Apache-2.0
//
// DeviceTiers: where the devices of a mesh are in the tiers of links of its hardware, and what of an axis list is inside
// each tier.
//
// Device ids fill the tiers from the inside out. 32 devices in nodes of 8, on mesh <"data"=8, "model"=4>:
//
//   cut({"model"})           nvlink 4                   ids 0 1 2 3 are in one node
//   cut({"data"})            nvlink 2, infiniband 4     ids 0 4 | 8 12 | 16 20 | 24 28
//   cut({"data", "model"})   nvlink 8, infiniband 4
//
// A part of a group counts as inside a tier only if that is so for all groups: of 12 devices in nodes of 8, ids 0 to 7
// are in one node and 8 to 11 in another, so that a group of 12 is 3 times 4.
//
// On a torus the units of a tier form a slice (torus_slice.h) in row-major order, and a part has a span in each dim that
// it takes. Without device ids, the dims of the slice stand in the order that cuts the fewest mesh axes:
//
//   TPU v5e, mesh <"x"=8, "y"=4>, slice 8 x 4:     cut({"y"})    torus 4: span of 4, neighbors 1 apart, open
//   mesh <"x"=2, "y"=4, "z"=4>, the same slice:    cut({"x"})    torus 2: span of 2, neighbors 4 apart
//
// Nothing is proportional to the number of devices, unless the mesh has device ids: these are read once for each mesh.
// An order of ids that is no row-major order of some grid is kept per digit as the smallest tier that holds its groups.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shardwise/cost/hardware.h"
#include "shardwise/mesh/axis.h"

namespace shardwise {

// The members of a group along one dim of a torus or a ring.
struct TorusSpan {
  int64_t size = 1;
  int64_t spacing = 1;  // links between two neighbors; so many groups share each link
  bool closes = false;  // the members go all around, and the last is linked to the first
  friend bool operator==(const TorusSpan&, const TorusSpan&) = default;
};

// The part of a group inside one tier. A group that takes two separate parts of one torus dim has two stages there.
struct TierStage {
  size_t tier = 0;
  int64_t size = 1;                   // members; of a torus, the product of the spans
  int64_t sharers = 1;                // devices of one unit, which share its links: 2 of a chip with two cores
  std::vector<TorusSpan> spans = {};  // of a torus or a ring
  friend bool operator==(const TierStage&, const TierStage&) = default;
};

using TierCut = std::vector<TierStage>;  // from the inside out

class DeviceTiers {
 public:
  // Throws MeshError if the tiers of the hardware join fewer devices.
  DeviceTiers(const Mesh& mesh, const Hardware& hardware);

  TierCut cut(AxisSpan axes) const;

 private:
  // Devices `begin` apart are neighbors in a tier, or along one dim of its torus, and `end` devices fill it.
  struct Block {
    size_t tier = 0;
    int64_t begin = 1, end = 1;
    int64_t sharers = 1;  // of a link
    bool is_dim = false;  // of a torus or a ring
    bool closes = false;
  };
  // Digits of an axis with their place among the device ids: its steps are `stride` ids apart, or it is inside `block`.
  struct Digit {
    int64_t pre = 1, size = 1;
    int64_t stride = 0;  // 0: no fixed distance
    size_t block = 0;    // only then
    int64_t next() const { return pre * size; }
  };
  struct Part {
    size_t block = 0;
    int64_t size = 1, spacing = 1;
  };

  void add_blocks(const Mesh& mesh, const Hardware& hardware);
  void add_torus(const Mesh& mesh, const Tier& tier, size_t index, int64_t begin, int64_t units);
  std::vector<Digit> digits_of_axis(const Mesh& mesh, int axis) const;
  Digit digit_of_ids(const Mesh& mesh, int axis, int64_t pre, int64_t size) const;
  std::vector<Digit> digits_of(AxisSpan axes) const;
  std::vector<Part> parts_of(AxisSpan axes) const;
  void cut_digit(int64_t size, int64_t stride, std::vector<Part>& parts) const;

  std::vector<Block> blocks_;               // from the inside out
  std::vector<std::vector<Digit>> digits_;  // by axis
};

// Made once for each mesh and hardware, and kept for a while.
std::shared_ptr<const DeviceTiers> device_tiers(const Mesh& mesh, const Hardware& hardware);

}  // namespace shardwise
