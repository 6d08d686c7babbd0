// Whose turn it is: rounds of ops, priorities of users, barriers.
// ---- Op priorities, round 0: ops that change nothing about a sharding go before a dot
// passes: sdy-op-priority-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {?}]
    %w: tensor<4x16xf32>,                                                                             // => [{?}, {"a", ?}]
    %y: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) -> tensor<8x16xf32> {   // => [{?}, {"a"}]
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> // => [{?}, {"a", ?}]
  %1 = stablehlo.add %0, %y : tensor<8x16xf32>                                                        // => [{?}, {"a", ?}]
  return %1 : tensor<8x16xf32>                                                                        // => [{?}, {"a", ?}]
}
// ---- Op priorities: without them the dot comes first, because it stands first
// passes: sdy-aggressive-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {?}]
    %w: tensor<4x16xf32>,                                                                             // => -
    %y: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) -> tensor<8x16xf32> {   // => [{?}, {"a"}]
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> // => [{"a", ?}, {?}]
  %1 = stablehlo.add %0, %y : tensor<8x16xf32>                                                        // => [{"a", ?}, {?}]
  return %1 : tensor<8x16xf32>                                                                        // => [{"a", ?}, {?}]
}
// ---- Op priorities, rounds 0 and 1: an op whose operand has other uses waits
// passes: sdy-op-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},                                 // => [{"a"}]
    %z: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) -> (tensor<8xf32>, tensor<8xf32>) { // => [{"b"}]
  %0 = stablehlo.tanh %x : tensor<8xf32>                                                              // => [{"b", ?}]
  %1 = stablehlo.add %0, %z : tensor<8xf32>                                                           // => [{"b", ?}]
  %2 = stablehlo.negate %x : tensor<8xf32>                                                            // => [{"a", ?}]
  return %1, %2 : tensor<8xf32>, tensor<8xf32>                                                        // => [{"b", ?}] ; [{"a", ?}]
}
// ---- Op priorities, rounds 0 and 1: with one use it does not wait
// passes: sdy-op-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},                                 // => [{"a"}]
    %z: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) -> tensor<8xf32> {              // => [{"b"}]
  %0 = stablehlo.tanh %x : tensor<8xf32>                                                              // => [{"a", ?}]
  %1 = stablehlo.add %0, %z : tensor<8xf32>                                                           // => -
  return %1 : tensor<8xf32>                                                                           // => -
}
// ---- Op priorities, rounds 2 and 3: what passes through goes before what is reduced
// passes: sdy-op-priority-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>},                         // => [{?}, {"a"}]
    %w: tensor<32x4xf32>) -> (                                                                        // => [{?}, {"a", ?}]
    tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x4xf32>) -> tensor<8x4xf32> // => [{?}, {"a", ?}]
  return %0 : tensor<8x4xf32>                                                                         // => [{?}, {"a"}]
}
// ---- Op priorities, rounds 2 and 3: without them the larger tensor decides
// passes: sdy-aggressive-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>},                         // => [{?}, {"a"}]
    %w: tensor<32x4xf32>) -> (                                                                        // => [{"a", ?}, {?}]
    tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x4xf32>) -> tensor<8x4xf32> // => [{?}, {"a", ?}]
  return %0 : tensor<8x4xf32>                                                                         // => [{?}, {"a"}]
}
// ---- Op priorities, rounds 2 to 4: a broadcast tells its result last
// passes: sdy-op-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},                                 // => [{"a"}]
    %w: tensor<4x16xf32>) -> (                                                                        // => -
    tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {?}]>}) {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<8xf32>) -> tensor<8x4xf32>                 // => [{"b", ?}, {?}]
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> // => [{"b", ?}, {?}]
  return %1 : tensor<8x16xf32>                                                                        // => [{"b"}, {?}]
}
// ---- Op priorities, rounds 2 to 4: where nobody else has something to say, it does
// passes: sdy-op-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},                                 // => [{"a"}]
    %w: tensor<4x16xf32>) -> tensor<8x16xf32> {                                                       // => -
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<8xf32>) -> tensor<8x4xf32>                 // => [{"a", ?}, {?}]
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> // => [{"a", ?}, {?}]
  return %1 : tensor<8x16xf32>                                                                        // => [{"a", ?}, {?}]
}
// ---- Op priorities, rounds 0 and 1: a slice at a computed start tells its result, not yet its operand
// passes: sdy-op-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32>,                                                                              // => [{"b", ?}, {?}]
    %i: tensor<i32>) -> (
    tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},
    tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {?}]>}) {
  %0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [8, 2] : (tensor<8x8xf32>, tensor<i32>, tensor<i32>) -> tensor<8x2xf32> // => [{"a", ?}, {?}]
  %1 = stablehlo.tanh %x : tensor<8x8xf32>                                                            // => [{"b", ?}, {?}]
  return %0, %1 : tensor<8x2xf32>, tensor<8x8xf32>                                                    // => [{"a"}, {?}] ; [{"b"}, {?}]
}
// ---- Op priorities, round 2: now its operand
// passes: sdy-op-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32>,                                                                              // => [{"a", ?}, {?}]
    %i: tensor<i32>) -> (
    tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) {
  %0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [8, 2] : (tensor<8x8xf32>, tensor<i32>, tensor<i32>) -> tensor<8x2xf32> // => [{"a", ?}, {?}]
  return %0 : tensor<8x2xf32>                                                                         // => [{"a"}, {?}]
}
// ---- Op priorities, round 0: a call that moves a value to the host or back goes with the elementwise ops
// passes: sdy-op-priority-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {?}]
    %w: tensor<4x16xf32>) -> (                                                                        // => [{?}, {"a", ?}]
    tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> // => [{?}, {"a", ?}]
  %1 = stablehlo.custom_call @MoveToHost(%0) : (tensor<8x16xf32>) -> tensor<8x16xf32>                 // => [{?}, {"a", ?}]
  return %1 : tensor<8x16xf32>                                                                        // => [{?}, {"a"}]
}
// ---- Op priorities, round 2: any other call waits
// passes: sdy-op-priority-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {?}]
    %w: tensor<4x16xf32>) -> (                                                                        // => -
    tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> // => [{"a", ?}, {?}]
  %1 = stablehlo.custom_call @LayoutConstraint(%0) : (tensor<8x16xf32>) -> tensor<8x16xf32>           // => [{?}, {"a", ?}]
  return %1 : tensor<8x16xf32>                                                                        // => [{?}, {"a"}]
}
// ---- Op priorities, rounds 0 and 1: an update at a computed start tells its result
// passes: sdy-op-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32>,                                                                              // => [{"b", ?}, {?}]
    %u: tensor<8x2xf32>,                                                                              // => -
    %i: tensor<i32>) -> (
    tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},
    tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {?}]>}) {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i : (tensor<8x8xf32>, tensor<8x2xf32>, tensor<i32>, tensor<i32>) -> tensor<8x8xf32> // => [{"a", ?}, {?}]
  %1 = stablehlo.tanh %x : tensor<8x8xf32>                                                            // => [{"b", ?}, {?}]
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"a"}, {?}] ; [{"b"}, {?}]
}
// ---- User priorities: 0 before 1, the first operand
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}p0, {}]>},                         // => [{"a"}, {}]
    %w: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}p1]>}) -> tensor<8x16xf32> {  // => [{}, {"a"}]
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> // => [{"a", ?}, {?}]
  return %0 : tensor<8x16xf32>                                                                        // => [{"a", ?}, {?}]
}
// ---- User priorities: 0 before 1, the second operand
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}p1, {}]>},                        // => [{"a"}, {}]
    %w: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}p0]>}) -> tensor<32x16xf32> { // => [{}, {"a"}]
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<32x4xf32>, tensor<4x16xf32>) -> tensor<32x16xf32> // => [{?}, {"a", ?}]
  return %0 : tensor<32x16xf32>                                                                       // => [{?}, {"a", ?}]
}
// ---- User priorities: until its turn nobody takes the axes of a dim on that tensor
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}p1]>},                        // => [{?}, {"a"}]
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) -> tensor<8x8xf32> {     // => [{"a"}, {?}]
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>                                                         // => [{"a", ?}, {?}]
  return %0 : tensor<8x8xf32>                                                                         // => [{"a", ?}, {?}]
}
// ---- User priorities: an open dim of a later turn keeps its axes, and gets more after them (gaps are allowed)
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["w"=2, "x"=2, "z"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", ?}p2, {?}]>},                     // => [{"z", "w", ?}, {?}]
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}]>},                       // => [{"x", ?}, {?}]
    %v: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "w", ?}p2, {?}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) { // => [{"z", "w", ?}, {?}]
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>                                                         // => [{"x", ?}, {?}]
  %1 = stablehlo.add %x, %v : tensor<8x8xf32>                                                         // => [{"z", "w", ?}, {?}]
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"x", ?}, {?}] ; [{"z", "w", ?}, {?}]
}
// ---- User priorities: parallel over the batch, then Megatron, then ZeRO
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(
    %x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>},                      // => [{"data"}, {?}]
    %w1: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", ?}p2, {"model"}p1]>},        // => [{"data", ?}, {"model"}]
    %w2: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"data", ?}p2]>}) -> tensor<16x8xf32> { // => [{"model", ?}, {"data", ?}]
  %0 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x32xf32>) -> tensor<16x32xf32> // => [{"data", ?}, {"model", ?}]
  %1 = stablehlo.tanh %0 : tensor<16x32xf32>                                                          // => [{"data", ?}, {"model", ?}]
  %2 = stablehlo.dot_general %1, %w2, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32> // => [{"data", ?}, {?}]
  return %2 : tensor<16x8xf32>                                                                        // => [{"data", ?}, {?}]
}
// ---- Representation, priorities: the dims of one tensor have their own, and those without one come first
// passes: sdy-user-priority-propagate
sdy.mesh @mesh_xy = <["w"=6, "x"=2, "y"=4, "z"=2]>
func.func @main(
    %arg4: tensor<4x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh_xy, [{"x"}p1, {"y"}, {"z", ?}p2]>},  // => [{"x"}, {"y"}, {"z", ?}]
    %y: tensor<4x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh_xy, [{?}, {?}, {"x", ?}]>}) -> tensor<4x8x4xf32> { // => [{?}, {"y", ?}, {"x", ?}]
  %0 = stablehlo.add %arg4, %y : tensor<4x8x4xf32>                                                    // => [{?}, {"y", ?}, {"x", ?}]
  return %0 : tensor<4x8x4xf32>                                                                       // => [{?}, {"y", ?}, {"x", ?}]
}
// ---- Propagation barrier: forward
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) -> (                     // => [{"a"}, {?}]
    tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) {
  %0 = sdy.propagation_barrier %x allowed_direction=FORWARD : tensor<8x8xf32>                         // => [{"a", ?}, {"b", ?}]
  return %0 : tensor<8x8xf32>                                                                         // => [{"a", ?}, {"b"}]
}
// ---- Propagation barrier: backward
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) -> (                     // => [{"a"}, {"b", ?}]
    tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) {
  %0 = sdy.propagation_barrier %x allowed_direction=BACKWARD : tensor<8x8xf32>                        // => [{?}, {"b", ?}]
  return %0 : tensor<8x8xf32>                                                                         // => [{?}, {"b"}]
}
// ---- Propagation barrier: none
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) -> (                     // => [{"a"}, {?}]
    tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) {
  %0 = sdy.propagation_barrier %x allowed_direction=NONE : tensor<8x8xf32>                            // => [{?}, {"b", ?}]
  return %0 : tensor<8x8xf32>                                                                         // => [{?}, {"b"}]
}
// ---- Results of main: told by what is returned, and tell it
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32>,                                                                              // => [{"b", ?}, {?}]
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) -> (                     // => [{"a"}, {?}]
    tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>}, tensor<8x8xf32>) {
  return %x, %y : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"b", ?}, {?}] ; [{"a", ?}, {?}]
}
// ---- Propagation barrier, forward: the operand does not grow to what the result has
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>}) -> (                         // => [{"a", ?}]
    tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>}) {
  %0 = sdy.propagation_barrier %x allowed_direction=FORWARD : tensor<8xf32>                           // => [{"a", "b", ?}]
  return %0 : tensor<8xf32>                                                                           // => [{"a", "b"}]
}
// ---- Propagation barrier, backward: the result does not grow to what the operand has
// passes: sdy-basic-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>}) -> (                       // => [{"a", "b"}]
    tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>}) {
  %0 = sdy.propagation_barrier %x allowed_direction=BACKWARD : tensor<8xf32>                          // => [{"a", ?}]
  return %0 : tensor<8xf32>                                                                           // => [{"a", ?}]
}
