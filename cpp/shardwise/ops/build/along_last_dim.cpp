// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/along_last_dim.h"

#include <array>

#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {

ValueId build_take_along_last(Builder& builder, ValueId operand, ValueId places) {
  const int64_t ndim = builder.module().type(operand).ndim();
  const Dims last{ndim - 1}, rows = identity_dims(ndim - 1);
  // All dims but the last are batching dims: row r of `places` indexes row r of the
  // operand, as np.take_along_axis does.
  const StructAttr numbers{"stablehlo.gather",
                           {{"collapsed_slice_dims", last},
                            {"operand_batching_dims", rows},
                            {"start_indices_batching_dims", rows},
                            {"start_index_map", last},
                            // Past the last dim of `places`: each place is an index of one number, as
                            // if there was one more dim of size 1.
                            {"index_vector_dim", IntAttr{ndim}}}};
  return builder.create("stablehlo.gather", {operand, places},
                        // One element for each place.
                        Attrs{{"dimension_numbers", numbers}, {"slice_sizes", Dims(static_cast<size_t>(ndim), 1)}});
}

ValueId build_add_along_last(Builder& builder, ValueId operand, ValueId places, ValueId updates) {
  const RegionId region = build_reducer_region(builder, Reducer::kSum, builder.module().type(operand).dtype);
  return build_scatter_along_last(builder, operand, places, updates, region, true);
}

ValueId build_scatter_along_last(Builder& builder, ValueId operand, ValueId places, ValueId updates, RegionId region,
                                 bool unique) {
  const int64_t ndim = builder.module().type(operand).ndim();
  const Dims last{ndim - 1}, rows = identity_dims(ndim - 1);
  const StructAttr numbers{"stablehlo.scatter",
                           {{"inserted_window_dims", last},
                            {"input_batching_dims", rows},
                            {"scatter_indices_batching_dims", rows},
                            {"scatter_dims_to_operand_dims", last},
                            {"index_vector_dim", IntAttr{ndim}}}};
  const Attrs attrs{{"scatter_dimension_numbers", numbers}, {"unique_indices", unique}};
  return builder.create("stablehlo.scatter", std::array{operand, places, updates}, attrs, {}, {&region, 1});
}

}  // namespace shardwise
