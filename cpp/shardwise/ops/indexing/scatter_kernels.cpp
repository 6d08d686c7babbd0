// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "shardwise/base/moved_item.h"
#include "shardwise/base/strided_copy.h"
#include "shardwise/ops/indexing/scatter_plan.h"
#include "shardwise/ops/shared/reduce_operations.h"
#include "shardwise/ops/shared/region_tiles.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {
namespace {

using namespace reduce_loops;

constexpr std::string_view kName = "stablehlo.scatter";

template <class Op>
struct CombineRun {
  typename Op::Item* result;
  const typename Op::Item* updates;

  static typename Op::Item combined(typename Op::Item old, typename Op::Item update) {
    return Op::store(Op::combine(Op::load(old), Op::load(update)));
  }
  void one(int64_t to, int64_t from) const { result[to] = combined(result[to], updates[from]); }
  void operator()(int64_t count, int64_t to, int64_t to_stride, int64_t from, int64_t from_stride) const {
    // A loop of its own for adjacent elements, which compiles to vector code.
    if (to_stride == 1 && from_stride == 1) {
      for (int64_t i = 0; i < count; ++i) result[to + i] = combined(result[to + i], updates[from + i]);
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      auto& element = result[to + i * to_stride];
      element = combined(element, updates[from + i * from_stride]);
    }
  }
};

template <class T>
struct ReplaceRun {
  T* result;
  const T* updates;

  void one(int64_t to, int64_t from) const { result[to] = updates[from]; }
  void operator()(int64_t count, int64_t to, int64_t to_stride, int64_t from, int64_t from_stride) const {
    if (to_stride == 1 && from_stride == 1) {
      std::memcpy(result + to, updates + from, static_cast<size_t>(count) * sizeof(T));
      return;
    }
    for (int64_t i = 0; i < count; ++i) result[to + i * to_stride] = updates[from + i * from_stride];
  }
};

// One input with its updates, both row-major and of one dtype.
struct Scattering {
  KernelContext& context;
  const ScatterPlan& plan;
  NdArray result, updates;

  template <class Op>
  void combine() const {
    using Item = typename Op::Item;
    plan.run(context, [&] {
      return CombineRun<Op>{reinterpret_cast<Item*>(result.data()), reinterpret_cast<const Item*>(updates.data())};
    });
  }

  void replace() const {
    dispatch_moved(item_size(result.dtype()), [&]<class T>() {
      plan.run(context, [&] {
        return ReplaceRun<T>{reinterpret_cast<T*>(result.data()), reinterpret_cast<const T*>(updates.data())};
      });
    });
  }

  void combine(Reducer reducer) const {
    const auto run = [&]<class Op>() { combine<Op>(); };
    if (is_float(result.dtype())) return dispatch_floats(kName, result.dtype(), reducer, run);
    dispatch_integers(kName, result.dtype(), reducer, run);
  }
};

DType computed_in(const NdArray& input, Combiner combiner) {
  return combiner.replaces ? input.dtype() : computed_in(input.dtype());  // narrow floats are rounded once
}

// All results are asked for before anything is placed: a rehearsal ends there (analysis/rehearsed_kernel.h).
std::vector<NdArray> results_of(KernelContext& context, size_t inputs, Combiner combiner) {
  std::vector<NdArray> results;
  for (size_t i = 0; i < inputs; ++i) {
    const bool is_wide = computed_in(context.operand(i), combiner) != context.operand(i).dtype();
    results.push_back(is_wide ? context.allocate_result(i) : start_result_from(context, i, i));
  }
  return results;
}

void scatter_input(KernelContext& context, const ScatterPlan& plan, size_t inputs, size_t input, Combiner combiner,
                   NdArray result) {
  const DType wide = computed_in(context.operand(input), combiner);
  const bool is_wide = wide != result.dtype();
  const NdArray target = is_wide ? converted(context, context.operand(input), wide) : result;
  const NdArray updates = contiguous_array(context, converted(context, context.operand(inputs + 1 + input), wide));
  const Scattering scattering{context, plan, target, updates};
  combiner.replaces ? scattering.replace() : scattering.combine(combiner.reducer);
  if (is_wide) convert_into(context, result, target);
}

// Any other region: the window's elements as they are, and the updates, through its tile program.
// Tile programs read and write adjacent lanes. Elements of one window are distinct, so that no lane of a run needs the
// result of another one.
class RegionRun {
 public:
  RegionRun(const TileProgram& program, std::span<const NdArray> results, std::span<const NdArray> updates)
      : runner_(program),
        results_(results),
        updates_(updates),
        packed_(2 * results.size()),
        inputs_of_(packed_.size()),
        outputs_of_(results.size()) {
    for (size_t i = 0; i < results.size(); ++i) {
      packed_[i] = NdArray::empty(results[i].dtype(), {kTileLanes});
      packed_[results.size() + i] = NdArray::empty(updates[i].dtype(), {kTileLanes});
    }
  }

  void operator()(int64_t count, int64_t to, int64_t to_stride, int64_t from, int64_t from_stride) {
    for (int64_t first = 0; first < count; first += kTileLanes) {
      const int64_t lanes = std::min(kTileLanes, count - first);
      run_lanes(lanes, {to + first * to_stride, to_stride}, {from + first * from_stride, from_stride});
    }
  }

 private:
  struct Side {
    int64_t offset, stride;
    bool is_run(int64_t lanes) const { return stride == 1 || lanes == 1; }
  };

  static std::byte* at(const NdArray& array, int64_t offset) {
    return array.data() + offset * item_size(array.dtype());
  }

  // The address of `lanes` adjacent elements: in the array itself, or in a copy.
  std::byte* packed(size_t slot, const NdArray& array, Side side, int64_t lanes) {
    if (side.is_run(lanes)) return at(array, side.offset);
    const int64_t item = item_size(array.dtype()), stride = side.stride * item;
    copy_strided(item, DimSpan(&lanes, 1), packed_[slot].data(), DimSpan(&item, 1), at(array, side.offset),
                 DimSpan(&stride, 1));
    return packed_[slot].data();
  }

  void run_lanes(int64_t lanes, Side to, Side from) {
    const size_t inputs = results_.size();
    for (size_t i = 0; i < inputs; ++i) {
      // In place: a lane reads its old element before it writes the new one.
      inputs_of_[i] = outputs_of_[i] = packed(i, results_[i], to, lanes);
      inputs_of_[inputs + i] = packed(inputs + i, updates_[i], from, lanes);
    }
    runner_.run(inputs_of_, outputs_of_, lanes);
    // Only strided lanes were copied; others are in the result already.
    for (size_t i = 0; !to.is_run(lanes) && i < inputs; ++i) {
      const int64_t item = item_size(results_[i].dtype()), stride = to.stride * item;
      copy_strided(item, DimSpan(&lanes, 1), at(results_[i], to.offset), DimSpan(&stride, 1), packed_[i].data(),
                   DimSpan(&item, 1));
    }
  }

  TileRunner runner_;
  std::span<const NdArray> results_, updates_;
  std::vector<NdArray> packed_;
  std::vector<const void*> inputs_of_;
  std::vector<void*> outputs_of_;
};

void scatter_by_region(KernelContext& context, const Indexing& indexing, size_t inputs, const TileProgram& program) {
  std::vector<NdArray> results, updates;
  for (size_t i = 0; i < inputs; ++i) results.push_back(start_result_from(context, i, i));
  const ScatterPlan plan(context, indexing, inputs);
  for (size_t i = 0; i < inputs; ++i) {
    updates.push_back(contiguous_array(context, context.operand(inputs + 1 + i)));
  }
  plan.run(context, [&] { return RegionRun(program, results, updates); });
}

}  // namespace

// A merged dim must not be indexed: positions count from the beginning of one shard.
std::optional<Kernel> prepare_scatter(const OpView& op, const KernelTypes& types) {
  const Combiner combiner = scatter_combiner(op);
  Indexing indexing = scatter_indexing(op.attrs(), types);
  for (const auto* dims : {&indexing.dims.collapsed, &indexing.dims.index_map}) {
    for (const int64_t dim : *dims) {
      const auto d = static_cast<size_t>(dim);
      if (indexing.operand[d] != op.operand_type(0).shape[d]) return std::nullopt;
    }
  }
  const size_t inputs = types.results.size();
  const bool has_loop = combiner.replaces || !is_complex(types.operands[0].dtype);
  if (!combiner.known() || !has_loop) {
    return [indexing = std::move(indexing), inputs, program = region_tiles(op.module(), op.regions()[0])](
               KernelContext& context) { scatter_by_region(context, indexing, inputs, program); };
  }
  return [indexing = std::move(indexing), inputs, combiner](KernelContext& context) {
    const std::vector<NdArray> results = results_of(context, inputs, combiner);
    const ScatterPlan plan(context, indexing, inputs);
    for (size_t i = 0; i < inputs; ++i) scatter_input(context, plan, inputs, i, combiner, results[i]);
  };
}

}  // namespace shardwise
