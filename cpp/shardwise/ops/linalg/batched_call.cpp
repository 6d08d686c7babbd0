// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/linalg/batched_call.h"

#include <algorithm>
#include <limits>

#include "shardwise/base/error.h"
#include "shardwise/base/moved_item.h"
#include "shardwise/base/quantity.h"
#include "shardwise/base/strided_copy.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ir/rule/rule_builder.h"

namespace shardwise {
namespace {

constexpr double kParallelFlops = 1 << 20;  // a piece of the batch below that is not worth a thread
constexpr int64_t kTile = 16;               // rows and columns that are transposed together

// ---- signatures ----------------------------------------------------------------------------------------------------

struct TensorPattern {
  char elements = 0;
  std::string dims;
};

struct Signature {
  std::vector<TensorPattern> operands, results;
};

// "T m n, I k" is {T, "mn"}, {I, "k"}: capital letters are element types, the others are sizes.
std::vector<TensorPattern> parse_tensors(std::string_view text) {
  std::vector<TensorPattern> tensors(1);
  for (const char c : text) {
    if (c == ',') {
      tensors.push_back({});
    } else if (c >= 'A' && c <= 'Z') {
      tensors.back().elements = c;
    } else if (c != ' ') {
      tensors.back().dims += c;
    }
  }
  return tensors;
}

Signature parse_signature(std::string_view text) {
  const size_t arrow = text.find("->");
  return {parse_tensors(text.substr(0, arrow)), parse_tensors(text.substr(arrow + 2))};
}

// The place in SolveByType.
std::optional<size_t> element_index(DType dtype) {
  switch (dtype) {
    case DType::kF32: return 0;
    case DType::kF64: return 1;
    case DType::kC64: return 2;
    case DType::kC128: return 3;
    default: return std::nullopt;
  }
}

DType dtype_of(char elements, DType of_call) {
  const bool is_wide = of_call == DType::kF64 || of_call == DType::kC128;
  switch (elements) {
    case 'R': return is_wide ? DType::kF64 : DType::kF32;
    case 'C': return is_wide ? DType::kC128 : DType::kC64;
    case 'I': return DType::kI32;
    default: return of_call;
  }
}

std::string types_text(std::span<const TensorType> types) {
  return join(types, ", ", [](const TensorType& type) { return type.text(); });
}

struct Binding {
  Signature signature;
  CallSizes sizes;
  CallOptions options;
  size_t batch_rank = 0;
  size_t element = 0;
};

// Why the types do not fit; the error is of dtypes or of shapes.
struct Mismatch {
  std::string must_hold, got;
  bool is_dtype = false;
};

// The dtypes that a call takes: those of its kernels.
std::string element_names(const BatchedCall& call) {
  std::vector<std::string> names;
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    if (call.solve[*element_index(dtype)] != nullptr) names.emplace_back(mlir_name(dtype));
  }
  return join(names, ", ");
}

class Binder {
 public:
  Binder(const BatchedCall& call, const KernelTypes& types, CallOptions options) : types_(types) {
    binding_.signature = parse_signature(call.signature);
    binding_.options = std::move(options);
  }

  // None where the types do not fit.
  std::optional<Binding> run(const BatchedCall& call) {
    const auto& [operands, results] = binding_.signature;
    if (types_.operands.size() != operands.size() || types_.results.size() != results.size()) {
      return mismatch({str("takes ", operands.size(), " operands and gives ", results.size(), " results"),
                       str(types_.operands.size(), " and ", types_.results.size())});
    }
    const TensorType& first = types_.operands[0];
    const auto element = element_index(first.dtype);
    // A row of JAX's LAPACK calls is for one type only: its name, lapack_spotrf_ffi, has the letter.
    if (!element || call.solve[*element] == nullptr) {
      return mismatch({str("operand 0 must be of ", element_names(call)), first.text(), true});
    }
    if (first.shape.size() < operands[0].dims.size()) {
      return mismatch({str("operand 0 must have at least ", operands[0].dims.size(), " dims"), first.text()});
    }
    binding_.element = *element;
    // Dims that the signature does not name are the batch; operand 0 tells how many there are.
    binding_.batch_rank = first.shape.size() - operands[0].dims.size();
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!bind(types_.operands[i], operands[i])) return wrong_tensor("operand ", i, types_.operands[i], operands[i]);
    }
    CallSizes& sizes = binding_.sizes;
    // After the operands, which may bind k and l themselves, and before the results, which only use them.
    if (sizes['k'] < 0 && sizes['m'] >= 0 && sizes['n'] >= 0) sizes['k'] = std::min(sizes['m'], sizes['n']);
    if (sizes['l'] < 0 && sizes['n'] >= 0) sizes['l'] = std::max<int64_t>(sizes['n'] - 1, 0);
    for (size_t i = 0; i < results.size(); ++i) {
      if (!bind(types_.results[i], results[i])) return wrong_tensor("result ", i, types_.results[i], results[i]);
    }
    if (call.fits != nullptr && !call.fits(sizes, binding_.options)) {
      return mismatch({"the sizes of the operands must suit the options", types_text(types_.operands)});
    }
    return std::move(binding_);
  }
  const Mismatch& why_not() const { return mismatch_; }

 private:
  std::nullopt_t mismatch(Mismatch found) {
    mismatch_ = std::move(found);
    return std::nullopt;
  }

  std::nullopt_t wrong_tensor(std::string_view what, size_t i, const TensorType& type, const TensorPattern& pattern) {
    const Dims& first = types_.operands[0].shape;
    const DType dtype = dtype_of(pattern.elements, types_.operands[0].dtype);
    std::string expected = "tensor<";
    for (size_t d = 0; d < binding_.batch_rank; ++d) expected += str(first[d], "x");
    for (const char letter : pattern.dims) {
      const int64_t size = std::as_const(binding_.sizes)[letter];
      expected += size < 0 ? "?x" : str(size, "x");
    }
    expected += str(mlir_name(dtype), ">");
    return mismatch({str(what, i, " must be ", expected), type.text(), type.dtype != dtype});
  }

  bool bind(const TensorType& type, const TensorPattern& pattern) {
    const Dims& shape = type.shape;
    const Dims& first = types_.operands[0].shape;
    const size_t batch = binding_.batch_rank;
    if (type.dtype != dtype_of(pattern.elements, types_.operands[0].dtype)) return false;
    if (shape.size() != batch + pattern.dims.size()) return false;
    if (!std::equal(first.begin(), first.begin() + static_cast<int64_t>(batch), shape.begin())) return false;
    for (size_t d = 0; d < pattern.dims.size(); ++d) {
      int64_t& size = binding_.sizes[pattern.dims[d]];
      if (size < 0) size = shape[batch + d];
      // LAPACK's integers have 32 bits.
      if (size != shape[batch + d] || size > std::numeric_limits<int32_t>::max()) return false;
    }
    return true;
  }

  const KernelTypes types_;
  Binding binding_;
  Mismatch mismatch_;
};

// ---- options -------------------------------------------------------------------------------------------------------

CallOptions read_dictionary(const Attrs& attrs) {
  CallOptions options;
  const auto* fields = attrs.find<AttrDict>("mhlo.backend_config");
  // StableHLO's own name of the dictionary.
  if (fields == nullptr) fields = attrs.find<AttrDict>("backend_config");
  if (fields == nullptr) return options;
  for (const auto& [name, value] : fields->fields) {
    if (const auto* number = std::get_if<IntAttr>(&value.base())) options.set(name, number->value);
    if (const auto* flag = std::get_if<bool>(&value.base())) options.set(name, *flag ? 1 : 0);
  }
  return options;
}

CallOptions read_options(const BatchedCall& call, const Attrs& attrs) {
  return call.read == nullptr ? read_dictionary(attrs) : call.read(attrs);
}

// Throws for an option of `call.options` that is missing or has another value.
void check_options(const BatchedCall& call, const CallOptions& options) {
  // "uplo=LU low# left?": a word is a name, the mark of its kind, and for letters those that are allowed.
  std::string_view rest = call.options;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    const size_t end = word.find_first_of("=#?");
    const std::string_view name = word.substr(0, end), letters = word.substr(end + 1);
    const int64_t* value = options.find(name);
    if (value == nullptr)
      fail<ShapeError>(call.name, str("the option ", name, " must be given in mhlo.backend_config"));
    const bool is_letter = word[end] == '=';
    if (!is_letter || (*value > 0 && *value < 128 && letters.find(static_cast<char>(*value)) != letters.npos)) continue;
    fail<ShapeError>(call.name, str("the option ", name, " must be the code of one of the letters ", letters),
                     str(*value));
  }
}

std::vector<TensorType> types_of(const OpView& op, bool results) {
  std::vector<TensorType> types;
  const size_t count = results ? op.result_count() : op.operand_count();
  for (size_t i = 0; i < count; ++i) types.push_back(results ? op.result_type(i) : op.operand_type(i));
  return types;
}

std::optional<Binding> bind(const BatchedCall& call, const OpView& op, Mismatch* why_not = nullptr) {
  const std::vector<TensorType> operands = types_of(op, false), results = types_of(op, true);
  Binder binder(call, {operands, results}, read_options(call, op.attrs()));
  std::optional<Binding> binding = binder.run(call);
  if (why_not != nullptr) *why_not = binder.why_not();
  return binding;
}

// ---- problems ------------------------------------------------------------------------------------------------------

template <class Item>
void load_items(const std::byte* from, std::byte* to, const Dims& shape, const Dims& strides) {
  auto* items = reinterpret_cast<Item*>(to);
  const auto item = [&](int64_t i, int64_t j) {
    return *reinterpret_cast<const Item*>(from + i * strides[0] + j * strides[1]);
  };
  // From row-major to LAPACK's column-major order. A tile of rows keeps the lines that are read in the cache until
  // all their columns have been written.
  for (int64_t i0 = 0; i0 < shape[0]; i0 += kTile) {
    const int64_t i1 = std::min(i0 + kTile, shape[0]);
    for (int64_t j = 0; j < shape[1]; ++j) {
      for (int64_t i = i0; i < i1; ++i) items[j * shape[0] + i] = item(i, j);
    }
  }
}

template <class Item>
void store_items(const std::byte* from, std::byte* to, const Dims& shape, int64_t leading) {
  const auto* items = reinterpret_cast<const Item*>(from);
  auto* rows = reinterpret_cast<Item*>(to);
  for (int64_t i0 = 0; i0 < shape[0]; i0 += kTile) {
    const int64_t i1 = std::min(i0 + kTile, shape[0]);
    for (int64_t j = 0; j < shape[1]; ++j) {
      for (int64_t i = i0; i < i1; ++i) rows[i * shape[1] + j] = items[j * leading + i];
    }
  }
}

// The last dims as a matrix: a vector is one column.
Dims matrix_dims(const Dims& dims, size_t batch_rank, int64_t missing) {
  Dims matrix(dims.begin() + static_cast<int64_t>(batch_rank), dims.end());
  // The size of a missing dim is 1, its stride 0.
  while (matrix.size() < 2) matrix.push_back(missing);
  return matrix;
}

}  // namespace

const int64_t* CallOptions::find(std::string_view name) const {
  for (const auto& [known, value] : values_) {
    if (known == name) return &value;
  }
  return nullptr;
}

int64_t CallOptions::number(std::string_view name) const {
  const int64_t* value = find(name);
  check_internal(value != nullptr, "an option is one of the call's row");
  return *value;
}

int64_t Problem::core_size(const NdArray& array) const {
  return element_count(DimSpan(array.shape()).subspan(batch_rank_));
}

std::byte* Problem::at(const NdArray& result) const {
  return result.data() + index_ * core_size(result) * item_size(result.dtype());
}

const std::byte* Problem::first_item(const NdArray& from) const {
  const std::byte* base = from.data();
  int64_t rest = index_;
  // The number of the problem in row-major order, as digits of the batch dims: the operand may have any strides.
  for (size_t d = batch_rank_; d-- > 0;) {
    base += rest % from.shape()[d] * from.strides()[d];
    rest /= from.shape()[d];
  }
  return base;
}

void Problem::load(const NdArray& from, std::byte* to) const {
  const std::byte* base = first_item(from);
  const Dims shape = matrix_dims(from.shape(), batch_rank_, 1), strides = matrix_dims(from.strides(), batch_rank_, 0);
  dispatch_moved(item_size(from.dtype()), [&]<class Item>() { load_items<Item>(base, to, shape, strides); });
}

void Problem::copy_rows(const NdArray& from, std::byte* to) const {
  const int64_t item = item_size(from.dtype());
  const Dims shape = matrix_dims(from.shape(), batch_rank_, 1), strides = matrix_dims(from.strides(), batch_rank_, 0);
  copy_strided(item, shape, to, row_major_strides(shape, item), first_item(from), strides);
}

void Problem::store(const NdArray& to, const std::byte* from, int64_t leading) const {
  const Dims shape = matrix_dims(to.shape(), batch_rank_, 1);
  dispatch_moved(item_size(to.dtype()), [&]<class Item>() { store_items<Item>(from, at(to), shape, leading); });
}

void check(const BatchedCall& call, const OpView& op) {
  check_options(call, read_options(call, op.attrs()));
  Mismatch wrong;
  if (bind(call, op, &wrong)) return;
  if (wrong.is_dtype) fail<DTypeError>(call.name, wrong.must_hold, wrong.got, "convert it first");
  fail<ShapeError>(call.name, wrong.must_hold, wrong.got);
}

ShardingRule rule(const BatchedCall& call, const OpView& op) {
  const std::optional<Binding> binding = bind(call, op);
  if (!binding) return {};
  RuleBuilder rule(op);
  const size_t batch = binding->batch_rank;
  for (size_t d = 0; d < batch; ++d) {
    const FactorId factor = rule.factor(op.operand_type(0).shape[d]);
    for (size_t t = 0; t < rule.tensor_count(); ++t) rule.map(t, d, factor);
  }
  // The columns of a right-hand side are independent: their dim may be sharded as well, by
  // the same factor in operand and result.
  const char free_dim = call.free_dim == nullptr ? '\0' : call.free_dim(binding->options);
  std::optional<FactorId> free;
  for (size_t t = 0; t < rule.tensor_count(); ++t) {
    const size_t operands = binding->signature.operands.size();
    const auto& pattern = t < operands ? binding->signature.operands[t] : binding->signature.results[t - operands];
    for (size_t d = 0; d < pattern.dims.size(); ++d) {
      const int64_t size = binding->sizes[pattern.dims[d]];
      const bool is_free = pattern.dims[d] == free_dim;
      if (is_free && !free) free = rule.factor(size);
      // A matrix is factored whole, so each of its dims gets a factor of its own that needs replication.
      rule.map(t, batch + d, is_free ? *free : rule.need_replication(size));
    }
  }
  return rule.build();
}

OpCost cost(const BatchedCall& call, const OpView& op, const LocalTypes& types) {
  OpCost cost;
  const std::optional<Binding> binding = bind(call, op);
  for (size_t t = 0; t < types.count(); ++t) cost.touched.push_back(types.tensor(t).byte_quantity());
  if (!binding) return cost;
  // n³ for one matrix, n²·columns for a solver.
  int64_t largest = 1;
  for (const TensorPattern& pattern : binding->signature.operands) {
    for (const char letter : pattern.dims) largest = std::max(largest, binding->sizes[letter]);
  }
  // A matrix is whole on each device, so that its dims are those of the op; the columns of a solver may be fewer.
  cost.vector = saturated_product(types.operand(0).element_quantity(), largest);
  return cost;
}

std::optional<Kernel> prepare(const BatchedCall& call, const OpView& op, const KernelTypes& types) {
  std::optional<Binding> bound = Binder(call, types, read_options(call, op.attrs())).run(call);
  if (!bound) return std::nullopt;
  int64_t count = 1;
  for (size_t d = 0; d < bound->batch_rank; ++d) count *= types.operands[0].shape[d];
  const double flops = static_cast<double>(own_cost(op).flops()) / static_cast<double>(std::max<int64_t>(count, 1));
  // Several small problems to a task.
  const auto grain = static_cast<int64_t>(kParallelFlops / std::max(flops, 1.0)) + 1;
  return [solve = call.solve[bound->element], binding = std::move(*bound), count, grain](KernelContext& context) {
    std::vector<NdArray> operands, results;
    for (size_t i = 0; i < binding.signature.operands.size(); ++i) operands.push_back(context.operand(i));
    for (size_t i = 0; i < binding.signature.results.size(); ++i) results.push_back(context.allocate_result(i));
    context.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        solve(Problem(binding.options, binding.sizes, operands, results, binding.batch_rank, i));
      }
    });
  };
}

}  // namespace shardwise
