// SPDX-License-Identifier: Apache-2.0
//
// Random numbers: rng draws from a hidden state, rng_bit_generator from a state that it returns.
//
//   %state, %bits = stablehlo.rng_bit_generator %0, algorithm = THREE_FRY
//       : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8x4xui32>)
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "shardwise/base/error.h"
#include "shardwise/base/quantity.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/build/term.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/random/random_bits_kernels.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/refusals.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

void infer_rng(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(3);
  const std::string& distribution = expect_word(op, "rng_distribution", std::array{"UNIFORM", "NORMAL"});
  const DType dtype = op.operand(0).dtype;
  expect_dtype(op, !is_complex(dtype), "bounds must be booleans, integers or floats",
               "draw the real and imaginary parts");
  expect_dtype(op, distribution != "NORMAL" || is_float(dtype), "mean and deviation must be floats",
               "draw floats, and convert them");
  for (size_t i = 0; i < 2; ++i) expect_scalar(op, i, dtype);
  const TensorType& result = op.declared_result();
  const TensorType& shape = op.operand(2);
  if (shape.ndim() != 1 || !is_signed_integer(shape.dtype) || shape.shape[0] != result.ndim() ||
      result.dtype != dtype) {
    op.fail_shape("the last operand must have the size of each dim of the result, whose dtype is that of the others",
                  str(op.operand_types_text(), " -> ", result.text()));
  }
  results.push_back(op.declared()[0]);
}

void infer_rng_bit_generator(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  expect_word(op, "rng_algorithm", std::array{"DEFAULT", "THREE_FRY", "PHILOX"});
  if (op.operand(0).ndim() != 1 || !is_unsigned_integer(op.operand(0).dtype)) {
    op.fail_shape("the state must be a list of unsigned integers", op.operand(0).text());
  }
  const TensorType& output = op.declared_result(1);
  if (!is_integer(output.dtype) && !is_float(output.dtype)) op.fail_dtype("the output must be numbers", output.text());
  // The state that is returned has the type of the one that is given.
  results.push_back(result_or_declared(op, op.operand(0)));
  results.push_back(op.declared()[1]);
}

ShardingRule rule_rng_bit_generator(const OpView& op) {
  RuleBuilder rule(op);
  // Every device needs the whole state, and its sharding must not propagate.
  const FactorId state = rule.need_replication(op.operand_type(0).shape[0], true);
  rule.map(0, 0, state).map(rule.result_tensor(0), 0, state);
  const Dims& output = op.result_type(1).shape;
  for (size_t dim = 0; dim < output.size(); ++dim) rule.map(rule.result_tensor(1), dim, rule.factor(output[dim]));
  return rule.build();
}

// ---- rng_bit_generator ---------------------------------------------------------------------------------------------

BitGenerator generator_of(const Attrs& attrs) {
  return attrs.get<EnumAttr>("rng_algorithm").value == "THREE_FRY" ? BitGenerator::kThreeFry : BitGenerator::kPhilox;
}

void verify_state(const OpView& op) {
  const TensorType& state = op.operand_type(0);
  const bool may_have_three = generator_of(op.attrs()) == BitGenerator::kPhilox;
  const bool fits = state.dtype == DType::kU64 && (state.shape[0] == 2 || (state.shape[0] == 3 && may_have_three));
  if (fits) return;
  fail<UnsupportedError>(op.name(), "the state must be two ui64, or three for PHILOX, to run it", state.text(),
                         "convert it with stablehlo.bitcast_convert");
}

// The operands after the state are the indices of the first element of a part, one per dim.
void run_generator(KernelContext& context, BitGenerator generator, const Dims& shape, bool is_part) {
  const NdArray state = context.operand(0).contiguous();
  std::array<uint64_t, 3> numbers{};
  const auto count = static_cast<size_t>(state.size());
  std::memcpy(numbers.data(), state.data(), count * sizeof(uint64_t));
  const NdArray next = context.allocate_result(0), bits = context.allocate_result(1);
  Dims start(shape.size(), 0);
  for (size_t dim = 0; is_part && dim < shape.size(); ++dim) {
    start[dim] = context.operand(1 + dim).scalar_at().integer;
  }
  generate_bits(context, generator, {numbers.data(), count}, shape, start, bits);
  const auto blocks = static_cast<uint64_t>(block_count(generator, shape, item_size(bits.dtype())));
  numbers[1] += blocks;
  // The carry into the upper half of the counter.
  if (count == 3 && numbers[1] < blocks) ++numbers[2];
  std::memcpy(next.data(), numbers.data(), count * sizeof(uint64_t));
}

std::optional<Kernel> prepare_rng_bit_generator(const OpView& op, const KernelTypes& types) {
  // Bits depend on the shape, so shards cannot be merged into one call of another shape.
  if (types.results[1].shape != op.result_type(1).shape) return std::nullopt;
  return [generator = generator_of(op.attrs()), shape = op.result_type(1).shape](KernelContext& context) {
    run_generator(context, generator, shape, false);
  };
}

// A device generates its part of the bits: they depend only on the state and on the global index.
void partition_rng_bit_generator(PartitionContext& context) {
  const std::vector<DimLayout> dims = context.result_layout(1).dims();
  const auto is_sharded = [](const DimLayout& dim) { return !dim.axes.empty(); };
  if (std::ranges::none_of(dims, is_sharded)) return partition_by_rule(context);
  Builder& builder = context.builder();
  std::vector<ValueId> operands{context.operand(0)};
  for (const DimLayout& dim : dims) {
    // The kernel gets the first global index of its part, and the whole shape as an attribute.
    operands.push_back(is_sharded(dim) ? build_convert(builder, context.shard_offset(dim), DType::kI64)
                                       : build_scalar(builder, scalar_of(DType::kI64, 0)));
  }
  const OpView op = context.op();
  const Attrs attrs{{"rng_algorithm", *op.attrs().find("rng_algorithm")}, {"shape", op.result_type(1).shape}};
  set_results(context, builder.create_op("shardwise.random_bits", operands, attrs, local_result_types(context)));
}

// Each example has a state of its own.
void batch_rng_bit_generator(BatchContext& context) {
  const OpView op = context.op();
  Builder& builder = context.builder();
  std::array<std::vector<ValueId>, 2> rows;
  const std::array types{builder.context().tensor(op.result_type(0).dtype, op.result_type(0).shape),
                         builder.context().tensor(op.result_type(1).dtype, op.result_type(1).shape)};
  // The op takes one state, so a batch is one op for each example.
  for (int64_t example = 0; example < context.size(); ++example) {
    const ValueId state = build_row(builder, context.operand(0), example);
    const OpId made = builder.create_op(op.def(), {&state, 1}, attrs_of(op), types);
    for (size_t i = 0; i < 2; ++i) {
      const ValueId row = builder.module().result(made, static_cast<uint32_t>(i));
      rows[i].push_back(build_reshape(builder, row, with_leading(1, op.result_type(i).shape)));
    }
  }
  for (size_t i = 0; i < 2; ++i) {
    const TensorType type{op.result_type(i).dtype, with_leading(0, op.result_type(i).shape)};
    context.set_result(i, rows[i].empty() ? build_zeros(builder, type) : build_concatenate(builder, rows[i], 0));
  }
}

// ---- random_bits: one device's part of them ------------------------------------------------------------------------

void infer_random_bits(const InferContext& op, std::vector<TypeId>& results) {
  const auto ndim = static_cast<size_t>(op.declared_result(1).ndim());
  op.expect_operands(1 + ndim);
  op.attr<EnumAttr>("rng_algorithm");
  expect_list(op, "shape", static_cast<int64_t>(ndim));
  for (size_t dim = 0; dim < ndim; ++dim) expect_scalar(op, 1 + dim, DType::kI64);
  infer_declared(op, results);
}

// Blocks of a dim are larger than its end: what is after it is padding.
std::optional<Kernel> prepare_random_bits(const OpView& op, const KernelTypes& types) {
  if (types.results[1].shape != op.result_type(1).shape) return std::nullopt;
  return [generator = generator_of(op.attrs()), shape = op.attrs().get<IntArray>("shape")](KernelContext& context) {
    run_generator(context, generator, shape, true);
  };
}

// ---- rng -----------------------------------------------------------------------------------------------------------

// Whether the op runs once, and main shows when: not in a loop, and not in a function that is called.
bool runs_once(const OpView& op) {
  const Module& module = op.module();
  RegionId region = module.op(op.id()).parent;
  while (const OpId owner = module.region(region).op) {
    if (module.op(owner).def->regions == Regions::kLoop) return false;
    region = module.op(owner).parent;
  }
  return region == module.main().body;
}

void verify_rng(const OpView& op) {
  if (runs_once(op)) return;
  constexpr const Refusal& kRefusal = refusals::kRngInLoop;
  fail<UnsupportedError>(str(kRefusal.name, " ", kRefusal.condition), refused_because(kRefusal), {}, kRefusal.way_out);
}

// Adds the ops of its kind that come before it in the order of the program. Whether it has been found.
bool count_before(const OpView& op, RegionId region, int64_t& count) {
  for (const OpId other : op.module().region(region).ops) {
    if (other == op.id()) return true;
    if (op.module().op(other).def == &op.def()) ++count;
    for (const RegionId inner : op.module().regions(other)) {
      if (count_before(op, inner, count)) return true;
    }
  }
  return false;
}

// Each op draws from a stream of its own. Its number is its place in main, which dead ops, ids and the sizes of
// functions do not change. All are decomposed at once, and the ops that go stay in the lists of their regions
// meanwhile.
int64_t number_of(const OpView& op) {
  int64_t count = 0;
  const bool is_found = count_before(op, op.module().main().body, count);
  check_internal(is_found, "an op that runs once is in main");
  return count;
}

Term random_bits(Builder& builder, DType dtype, const Dims& shape, int64_t stream) {
  NdArray state = NdArray::empty(DType::kU64, {2});
  // "Shardwis" in ASCII, a fixed key, so that each run draws the same numbers.
  const std::array<uint64_t, 2> numbers{0x5368617264776973u + static_cast<uint64_t>(stream), 0};
  std::memcpy(state.data(), numbers.data(), sizeof(numbers));
  const ValueId constant = build_constant(builder, state);
  const std::array types{builder.context().tensor(DType::kU64, Dims{2}), builder.context().tensor(dtype, shape)};
  const Attrs attrs{{"rng_algorithm", EnumAttr{"stablehlo", "rng_algorithm", "THREE_FRY"}}};
  const OpId made = builder.create_op("stablehlo.rng_bit_generator", {&constant, 1}, attrs, types);
  return {&builder, builder.module().result(made, 1)};
}

// In [0, 1): the bits of a mantissa after those of 1, less 1.
Term unit_interval(Builder& builder, DType dtype, const Dims& shape, int64_t stream) {
  const bool is_double = dtype == DType::kF64;
  const DType unsigned_dtype = is_double ? DType::kU64 : DType::kU32;
  const auto number = [&](uint64_t value) {
    return Term{&builder, build_splat(builder, shape, Scalar::of_uint(unsigned_dtype, value))};
  };
  const Term bits = random_bits(builder, unsigned_dtype, shape, stream)
                        .op("stablehlo.shift_right_logical", number(is_double ? 12 : 9))
                        .op("stablehlo.or", number(is_double ? 0x3FF0000000000000u : 0x3F800000u));
  const TypeId type = builder.context().tensor(is_double ? DType::kF64 : DType::kF32, shape);
  const Term one_to_two{&builder, builder.create("stablehlo.bitcast_convert", {bits.id}, {}, {type})};
  return one_to_two + -1.0;
}

void decompose_rng(DecomposeContext& context) {
  const OpView op = context.op();
  Builder& builder = context.builder();
  const TensorType type = op.result_type();
  if (!runs_once(op)) return;
  const bool is_normal = op.attrs().get<EnumAttr>("rng_distribution").value == "NORMAL";
  const int64_t stream = number_of(op);
  const auto all = [&](size_t i, DType dtype) {
    const ValueId scalar = build_convert(builder, context.operand(i), dtype);
    return Term{&builder, build_broadcast(builder, scalar, type.shape, {})};
  };
  if (type.dtype == DType::kBool) {  // the bounds can only be both
    const Term bits = random_bits(builder, DType::kU32, type.shape, stream);
    const Term top = bits.op("stablehlo.shift_right_logical",
                             Term{&builder, build_splat(builder, type.shape, Scalar::of_uint(DType::kU32, 31))});
    return context.set_result(0, build_convert(builder, top.id, type.dtype));
  }
  if (is_integer(type.dtype)) {
    // Signed bounds wrap around to uint64 and back, and the difference is right either way.
    const Term low = all(0, DType::kU64), count = all(1, DType::kU64) - low;
    const Term bits = random_bits(builder, DType::kU64, type.shape, stream);
    const Term drawn = low + bits.op("stablehlo.remainder", count);
    return context.set_result(0, build_convert(builder, drawn.id, type.dtype));
  }
  const DType wide = computed_in(type.dtype);
  const Term unit = unit_interval(builder, wide, type.shape, stream), first = all(0, wide), second = all(1, wide);
  // The smallest argument of erf_inv is just above -1, whose value is -infinity.
  const Term place = unit * 2.0 + (wide == DType::kF64 ? -1 + std::ldexp(1.0, -53) : -1 + std::ldexp(1.0, -24));
  const Term drawn =
      is_normal ? first + second * (place.op("chlo.erf_inv") * std::sqrt(2.0)) : first + unit * (second - first);
  context.set_result(0, build_convert(builder, drawn.id, type.dtype));
}

// ---- the family ----------------------------------------------------------------------------------------------------

// Of Threefry: 20 rounds of an addition, a rotation and an xor, and 5 additions of keys, for two words. Philox takes
// fewer.
OpCost cost_of_bits(const OpView& op, const LocalTypes& types) {
  constexpr int64_t kOperationsPerWord = (20 * 3 + 5 * 3) / 2;
  OpCost cost = cost_by_rule(op, types);
  const int64_t words = ceil_div(types.result(1).byte_quantity(), 4);
  cost.vector = saturated_product(words, kOperationsPerWord);
  return cost;
}

// `partition` makes them, after batching; a text may hold them earlier.
void batch_random_bits(BatchContext& context) { refuse_op(context.op(), "batched"); }

constexpr OpDef kRng =
    composed_op("stablehlo.rng", infer_rng, no_rule, decompose_rng,
                "operands `,` `distribution` `=` $rng_distribution attr-dict `:` functional-type",
                "Random numbers of a fixed stream, the same in each run (StableHLO rng).", {.side_effect = true});

constexpr OpDef kRngOps[] = {
    without_gradient(runnable_if(kRng, verify_rng), "the numbers are drawn, not computed"),
    {.name = "stablehlo.rng_bit_generator",
     .infer = infer_rng_bit_generator,
     .rule = rule_rng_bit_generator,
     .partition = partition_rng_bit_generator,
     .prepare = prepare_rng_bit_generator,
     .cost = cost_of_bits,
     .vjp = not_differentiable,
     .batch = batch_rng_bit_generator,
     .verify_runnable = verify_state,
     .no_vjp_reason = "random bits have no derivative",
     .format = "operands `,` `algorithm` `=` $rng_algorithm attr-dict `:` functional-type",
     .doc = "Random bits, and the state after them (StableHLO rng_bit_generator)."},
    {.name = "shardwise.random_bits",
     .infer = infer_random_bits,
     .rule = no_rule,
     .prepare = prepare_random_bits,
     .cost = cost_of_bits,
     .vjp = not_differentiable,
     .batch = batch_random_bits,
     .no_vjp_reason = "random bits have no derivative",
     .doc = "The part of a result of rng_bit_generator that begins at some index, and the state after all of it."},
};
static_assert(all_complete(kRngOps));

}  // namespace

std::span<const OpDef> rng_ops() { return kRngOps; }

}  // namespace shardwise
