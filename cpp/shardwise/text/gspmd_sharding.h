// SPDX-License-Identifier: Apache-2.0
//
// Reads GSPMD's shardings, which JAX prints without Shardy, as Shardy's:
//
//   mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"      <@mesh, [{"_axis_0"}, {}]>
//   mhlo.sharding = "{devices=[2,4]<=[4,2]T(1,0)}"                        <@mesh, [{"_axis_1"}, {"_axis_0"}]>
//
// They name no mesh. All shardings of a text get one mesh whose axes are the finest digits of the device number that
// any of them uses: _axis_0=4 and _axis_1=2 above. Digits that no single split has (3 before 2, and 2 before 3) become
// sub-axes of one axis.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/mesh/sharding.h"

namespace shardwise {

class GspmdShardings {
 public:
  // Collects the shardings of a program's text. Malformed ones are reported when they are read.
  explicit GspmdShardings(std::string_view program);

  // The sharding of a tensor; dims in `open` are open. Throws ShardingError. Declares the mesh in the module. In a manual
  // region, it is that along the other axes: "{devices=[1,2,4]<=[8] last_tile_dims={manual}}" is [{}, {"_axis_0"}].
  TensorSharding read(std::string_view sharding, int64_t ndim, const Dims& open, Module& module,
                      bool in_manual_region = false);
  // The manual axes of such a sharding; those of "{manual}" are all.
  std::vector<RawAxisRef> manual_axes(std::string_view sharding, Module& module);

 private:
  void append_axes(AxisList& axes, int64_t first, int64_t size) const;
  MeshPtr mesh(Module& module);

  std::vector<MeshAxis> axes_;  // major first
  int64_t devices_ = 1;
  MeshPtr mesh_;
};

// The shardings of several results: "{{replicated}, {manual}}" has two. One that is no tuple is a list of one.
std::vector<std::string_view> gspmd_elements(std::string_view sharding);

// The dims in backend_config = "unspecified_dims=[0,1]" of a call; null for none.
Dims gspmd_open_dims(const std::string* config);

}  // namespace shardwise
