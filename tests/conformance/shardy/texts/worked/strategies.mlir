// What one op hands on: how far axes go (basic), and who gets an axis that two want (aggressive).
// ---- Projection: a value is never given a sharding without axes
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<8xf32> {                 // => -
  %0 = stablehlo.tanh %x : tensor<8xf32>                                                              // => -
  return %0 : tensor<8xf32>                                                                           // => -
}
// ---- Projection: the minor factor takes all that is left, a closed factor closes its dim
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=8, "b"=3]>
func.func @main(
    %x: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>},                           // => [{"a", "b"}]
    %y: tensor<2x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}) -> tensor<2x16xf32> {      // => [{"a":(1)2, ?}, {}]
  %0 = stablehlo.reshape %x : (tensor<32xf32>) -> tensor<2x16xf32>                                    // => [{"a":(1)2, ?}, {"a":(2)4, "b", ?}]
  %1 = stablehlo.add %0, %y : tensor<2x16xf32>                                                        // => [{"a":(1)2, ?}, {?}]
  return %1 : tensor<2x16xf32>                                                                        // => [{"a":(1)2, ?}, {?}]
}
// ---- Basic strategy, compatible axes: equal ones go on, the longer list where the shorter one ends
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>},                              // => [{"a", "b", ?}]
    %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b", ?}]>}) -> tensor<8xf32> {      // => [{"a", "b", ?}]
  %0 = stablehlo.add %x, %y : tensor<8xf32>                                                           // => [{"a", "b", ?}]
  return %0 : tensor<8xf32>                                                                           // => [{"a", "b", ?}]
}
// ---- Basic strategy, compatible axes: a real mismatch cuts the list there
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "c", ?}]>},                         // => [{"a", "c", ?}]
    %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b", ?}]>}) -> tensor<8xf32> {      // => [{"a", "b", ?}]
  %0 = stablehlo.add %x, %y : tensor<8xf32>                                                           // => [{"a", ?}]
  return %0 : tensor<8xf32>                                                                           // => [{"a", ?}]
}
// ---- Basic strategy, compatible axes: a part of an axis grows where it is the last of its list
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=4, "b"=2]>
func.func @main(
    %x: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2, ?}]>},                        // => [{"a", ?}]
    %y: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>}) -> tensor<16xf32> {         // => [{"a", ?}]
  %0 = stablehlo.add %x, %y : tensor<16xf32>                                                          // => [{"a", ?}]
  return %0 : tensor<16xf32>                                                                          // => [{"a", ?}]
}
// ---- Basic strategy, compatible axes: a part that is not the last of its list stops
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=4, "b"=2]>
func.func @main(
    %x: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2, "b", ?}]>},                   // => [{"a":(1)2, "b", ?}]
    %y: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>}) -> tensor<16xf32> {         // => [{"a", ?}]
  %0 = stablehlo.add %x, %y : tensor<16xf32>                                                          // => [{"a":(1)2, ?}]
  return %0 : tensor<16xf32>                                                                          // => [{"a":(1)2, ?}]
}
// ---- Basic strategy, truncation: an axis that another dim of the tensor has is not taken
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b", ?}, {?}]>},                  // => [{"a", "b", ?}, {?}]
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) -> tensor<8x8xf32> {  // => [{"a", ?}, {"b", ?}]
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>                                                         // => [{"a", ?}, {?}]
  return %0 : tensor<8x8xf32>                                                                         // => [{"a", ?}, {?}]
}
// ---- Basic strategy, truncation: also for tensors without the factor
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},                       // => [{"a", ?}, {?}]
    %w: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) -> tensor<8x8xf32> {     // => [{?}, {"a"}]
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> // => -
  return %0 : tensor<8x8xf32>                                                                         // => -
}
// ---- Basic strategy, truncation: axes kept from a tensor, and closed dims
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},                        // => [{"a"}, {"b"}]
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}], replicated={"a"}>},          // => [{?}, {"b", ?}], replicated={"a"}
    %z: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) { // => [{"a", ?}, {}]
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>                                                         // => [{?}, {"b", ?}]
  %1 = stablehlo.add %x, %z : tensor<8x8xf32>                                                         // => [{"a", ?}, {?}]
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{?}, {"b", ?}] ; [{"a", ?}, {?}]
}
// ---- Basic strategy, truncation: a factor that is not the minor one takes what divides it
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=4, "b"=2]>
func.func @main(
    %x: tensor<2x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<16xf32> {    // => [{"a"}, {"b"}]
  %0 = stablehlo.reshape %x : (tensor<2x8xf32>) -> tensor<16xf32>                                     // => [{"a":(1)2, "b", ?}]
  return %0 : tensor<16xf32>                                                                          // => [{"a":(1)2, "b", ?}]
}
// ---- Aggressive strategy: the larger source goes first
// passes: sdy-aggressive-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {?}]
    %w: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) -> tensor<8x16xf32> {   // => [{?}, {"a"}]
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> // => [{?}, {"a", ?}]
  return %0 : tensor<8x16xf32>                                                                        // => [{?}, {"a", ?}]
}
// ---- Aggressive strategy: of equal sources the first one
// passes: sdy-aggressive-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {?}]
    %w: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) -> tensor<8x8xf32> {     // => [{?}, {"a"}]
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> // => [{"a", ?}, {?}]
  return %0 : tensor<8x8xf32>                                                                         // => [{"a", ?}, {?}]
}
// ---- Aggressive strategy, elementwise: the list of more shards goes first
// passes: sdy-aggressive-propagate
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},                       // => [{"a", ?}, {"b", ?}]
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", "a", ?}]>}) -> tensor<8x8xf32> { // => [{?}, {"b", "a", ?}]
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>                                                         // => [{?}, {"b", "a", ?}]
  return %0 : tensor<8x8xf32>                                                                         // => [{?}, {"b", "a", ?}]
}
// ---- Aggressive strategy: each tensor decides by itself, and they may differ
// passes: sdy-aggressive-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},                      // => [{?}, {"a", ?}]
    %w: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}) -> (                     // => [{"a", ?}, {?}]
    tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32> // => [{"a", ?}, {?}]
  return %0 : tensor<8x16xf32>                                                                        // => [{"a", ?}, {?}]
}
// ---- Aggressive strategy, elementwise: an operand gets no more than a smaller result that ends before
// passes: sdy-aggressive-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>},                            // => [{"a", "b"}]
    %y: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {            // => [{"a", ?}]
  %0 = stablehlo.add %x, %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32> // => [{"a"}]
  return %0 : tensor<8xf32>                                                                           // => [{"a"}]
}
// ---- Aggressive strategy: conflicts within a factor are not resolved
// passes: sdy-aggressive-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>},                             // => [{"a", ?}]
    %y: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}]>}) -> tensor<64xf32> {         // => [{"b", ?}]
  %0 = stablehlo.add %x, %y : tensor<64xf32>                                                          // => -
  return %0 : tensor<64xf32>                                                                          // => -
}
// ---- Aggressive strategy, order: of equal lists that of the first tensor
// passes: sdy-aggressive-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},                       // => [{?}, {"a", ?}]
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) -> tensor<8x8xf32> {  // => [{"a", ?}, {?}]
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>                                                         // => [{?}, {"a", ?}]
  return %0 : tensor<8x8xf32>                                                                         // => [{?}, {"a", ?}]
}
// ---- Aggressive strategy, elementwise: the total size of a list counts before its tensor
// passes: sdy-aggressive-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},                       // => [{?}, {"a", ?}]
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b", ?}, {?}]>}) -> tensor<8x8xf32> { // => [{"a", "b", ?}, {?}]
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>                                                         // => [{"a", "b", ?}, {?}]
  return %0 : tensor<8x8xf32>                                                                         // => [{"a", "b", ?}, {?}]
}
// ---- Aggressive strategy: axes kept from a tensor stay so
// passes: sdy-aggressive-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {?}]>},                     // => [{"a", "b"}, {?}]
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}], replicated={"b"}>}) -> tensor<8x8xf32> { // => [{"a", ?}, {?}], replicated={"b"}
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>                                                         // => [{"a", "b", ?}, {?}]
  return %0 : tensor<8x8xf32>                                                                         // => [{"a", "b", ?}, {?}]
}
// ---- Worklist: what one op learns goes to the ops before it
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x4xf32>,                                                                              // => [{"a", ?}, {?}]
    %w: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) -> (                     // => [{?}, {"b"}]
    tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) {
  %0 = stablehlo.tanh %x : tensor<8x4xf32>                                                            // => [{"a", ?}, {?}]
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> // => [{"a", ?}, {"b", ?}]
  %2 = stablehlo.tanh %1 : tensor<8x8xf32>                                                            // => [{"a", ?}, {"b", ?}]
  return %2 : tensor<8x8xf32>                                                                         // => [{"a"}, {"b", ?}]
}
// ---- Op skipped: values on meshes with other device orders
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2]>
sdy.mesh @turned = <["a"=2], device_ids=[1, 0]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},                                 // => [{"a"}]
    %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@turned, [{?}]>}) -> (tensor<8xf32>, tensor<8xf32>) { // => [{?}]
  %0 = stablehlo.add %x, %y : tensor<8xf32>                                                           // => -
  %1 = stablehlo.tanh %x : tensor<8xf32>                                                              // => [{"a", ?}]
  return %0, %1 : tensor<8xf32>, tensor<8xf32>                                                        // => - ; [{"a", ?}]
}
// ---- Op skipped: the empty mesh takes the mesh of the others
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2]>
sdy.mesh @empty_mesh = <[]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},                                 // => [{"a"}]
    %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@empty_mesh, [{?}]>}) -> tensor<8xf32> {          // => [{"a", ?}]
  %0 = stablehlo.add %x, %y : tensor<8xf32>                                                           // => [{"a", ?}]
  return %0 : tensor<8xf32>                                                                           // => [{"a", ?}]
}
// ---- Op skipped: one device is no mesh to propagate on
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2]>
sdy.mesh @one = <[], device_ids=[1]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {              // => [{"a"}]
  %0 = stablehlo.custom_call @mhlo.erf(%x) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<8xf32>) -> tensor<8xf32> // => -
  %1 = stablehlo.tanh %0 : tensor<8xf32>                                                              // => -
  return %1 : tensor<8xf32>                                                                           // => -
}
// ---- Rules: one that is attached to a call is followed
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<4x8xf32> {   // => [{"a"}, {"b"}]
  %0 = stablehlo.custom_call @turn(%x) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j, i]) {i=8, j=4}, custom>} : (tensor<8x4xf32>) -> tensor<4x8xf32> // => [{"b", ?}, {"a", ?}]
  return %0 : tensor<4x8xf32>                                                                         // => [{"b", ?}, {"a", ?}]
}
// ---- Rules: a call without one hands nothing on
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<4x8xf32> {   // => [{"a"}, {"b"}]
  %0 = stablehlo.custom_call @turn(%x) : (tensor<8x4xf32>) -> tensor<4x8xf32>                         // => -
  return %0 : tensor<4x8xf32>                                                                         // => -
}
// ---- Rules, blocked propagation: nothing passes along such a factor, the others do
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<8x4xf32> {   // => [{"a"}, {"b"}]
  %0 = stablehlo.custom_call @turn(%x) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4} need_replication={j} blocked_propagation={j}, custom>} : (tensor<8x4xf32>) -> tensor<8x4xf32> // => [{"a", ?}, {?}]
  return %0 : tensor<8x4xf32>                                                                         // => [{"a", ?}, {?}]
}
// ---- Rules, need replication: shardings flow on all the same
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<8x4xf32> {   // => [{"a"}, {"b"}]
  %0 = stablehlo.custom_call @turn(%x) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4} need_replication={j}, custom>} : (tensor<8x4xf32>) -> tensor<8x4xf32> // => [{"a", ?}, {"b", ?}]
  return %0 : tensor<8x4xf32>                                                                         // => [{"a", ?}, {"b", ?}]
}
// ---- Registry, concatenate and slice: the changed dim is handed on, too
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},                        // => [{"a"}, {"b"}]
    %y: tensor<4x4xf32>) -> (tensor<12x4xf32>, tensor<6x4xf32>) {                                     // => [{"a", ?}, {"b", ?}]
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<12x4xf32> // => [{"a", ?}, {"b", ?}]
  %1 = stablehlo.slice %x [1:7, 0:4] : (tensor<8x4xf32>) -> tensor<6x4xf32>                           // => [{"a", ?}, {"b", ?}]
  return %0, %1 : tensor<12x4xf32>, tensor<6x4xf32>                                                   // => [{"a", ?}, {"b", ?}] ; [{"a", ?}, {"b", ?}]
}
// ---- Registry, gather: rows that are looked up leave no trace of the table's rows
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<100x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},                     // => [{"a"}, {"b"}]
    %i: tensor<8x1xi32>) -> tensor<8x16xf32> {                                                        // => -
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>}> : (tensor<100x16xf32>, tensor<8x1xi32>) -> tensor<8x16xf32> // => [{?}, {"b", ?}]
  return %0 : tensor<8x16xf32>                                                                        // => [{?}, {"b", ?}]
}
// ---- Registry, sort: its dim needs replication, and is handed on
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<8x16xf32> { // => [{"a"}, {"b"}]
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %1 = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>                                                         // => [{"a", ?}, {"b", ?}]
  return %0 : tensor<8x16xf32>                                                                        // => [{"a", ?}, {"b", ?}]
}
// ---- Registry, reduce: the dims that are left, and an argmax in one op
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},                       // => [{"a"}, {"b"}]
    %n: tensor<8x16xi32>,                                                                             // => [{"a", ?}, {"b", ?}]
    %v: tensor<f32>, %z: tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>) {
  %0:2 = "stablehlo.reduce"(%x, %n, %v, %z) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %1 = stablehlo.maximum %a, %c : tensor<f32>
    %2 = stablehlo.maximum %b, %d : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }) : (tensor<8x16xf32>, tensor<8x16xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>) // => [{"a", ?}] ; [{"a", ?}]
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xi32>                                                    // => [{"a", ?}] ; [{"a", ?}]
}
