// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/known_integers.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rule/sharding_rule.h"

namespace shardwise {
namespace {

// Longer lines are not looked at: the time of a compilation does not depend on them.
constexpr int64_t kMostNumbers = int64_t{1} << 24;
constexpr int kMostNested = 64;

bool holds_integers(DType dtype) { return is_integer(dtype) || dtype == DType::kBool; }
// JAX computes the rows that it resizes to in floats, and converts them.
bool is_evaluated(DType dtype) { return holds_integers(dtype) || is_float(dtype); }

int64_t number_of(const Scalar& scalar) {
  if (!is_unsigned_integer(scalar.dtype)) return scalar.integer;
  return static_cast<int64_t>(std::min<uint64_t>(scalar.natural, std::numeric_limits<int64_t>::max()));
}

KnownIntegers any_of(DType dtype) {
  KnownIntegers any;
  if (!holds_integers(dtype)) return any;
  if (dtype == DType::kBool) return {.low = 0, .high = 1};
  if (is_unsigned_integer(dtype)) any.low = 0;
  const int bits = bit_width(dtype) - (is_signed_integer(dtype) ? 1 : 0);
  if (bits < 63) any.high = (int64_t{1} << bits) - 1;
  if (is_signed_integer(dtype) && bits < 63) any.low = -any.high - 1;
  return any;
}

KnownIntegers bounded(NdArray line, int64_t dim) {
  KnownIntegers known{.dim = line.size() == 1 ? -1 : dim};
  if (!holds_integers(line.dtype())) {
    known.line = std::move(line);
    return known;
  }
  const std::vector<int64_t> numbers = numbers_of(line);
  if (numbers.empty()) return {};
  const auto [low, high] = std::ranges::minmax_element(numbers);
  known.low = *low, known.high = *high;
  // The largest int64 also stands for larger numbers.
  if (line.dtype() == DType::kU64 && known.high == std::numeric_limits<int64_t>::max()) return {.low = 0};
  known.line = std::move(line);
  if (known.low == known.high) known.line = known.line->sliced(0, 0, 1), known.dim = -1;
  return known;
}

// The elements at some places. A dim whose elements are one in memory, as in a splat, counts as one place.
NdArray elements_at(NdArray data, const Dims& at) {
  for (int64_t d = 0; d < data.ndim(); ++d) {
    const auto dim = static_cast<size_t>(d);
    const bool is_one = at[dim] != kAnyPlace || data.strides()[dim] == 0;
    if (is_one) data = data.sliced(d, std::max<int64_t>(at[dim], 0), std::min<int64_t>(data.shape()[dim], 1));
  }
  return data;
}

NdArray as_line(const NdArray& data, size_t dim) {
  return {data.dtype(), {data.shape()[dim]}, {data.strides()[dim]}, data.data(), data.owner()};
}

// Whether elements differ along a dim. `numbers` are row-major.
bool differ_along(const std::vector<int64_t>& numbers, const Dims& shape, size_t dim) {
  int64_t inner = 1;
  for (size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t period = inner * shape[dim];
  for (int64_t i = 0; i < std::ssize(numbers); ++i) {
    const int64_t first = i / period * period + i % inner;
    if (numbers[static_cast<size_t>(i)] != numbers[static_cast<size_t>(first)]) return true;
  }
  return false;
}

// Those of a splat or of an iota, which are one line in memory.
KnownIntegers known_floats(const NdArray& places) {
  const auto dim =
      std::ranges::find_if(places.shape(), [](int64_t size) { return size != 1; }) - places.shape().begin();
  if (element_count(places.shape()) == 1) {
    return bounded(NdArray(places.dtype(), {1}, {0}, places.data(), places.owner()), -1);
  }
  const auto d = static_cast<size_t>(dim);
  return places.size() == places.shape()[d] ? bounded(as_line(places, d), dim) : KnownIntegers{};
}

KnownIntegers known_of(const NdArray& data, const Dims& at) {
  const NdArray places = elements_at(data, at);
  if (places.size() == 0 || places.size() > kMostNumbers) return any_of(data.dtype());
  if (!holds_integers(data.dtype())) return known_floats(places);
  const NdArray rows = places.contiguous();
  const NdArray flat(rows.dtype(), {rows.size()}, {item_size(rows.dtype())}, rows.data(), rows.owner());
  KnownIntegers all = bounded(flat, -1);
  if (!all.line || all.number()) return all;
  all.line.reset();
  const std::vector<int64_t> numbers = numbers_of(flat);
  int64_t dim = -1;
  for (size_t d = 0; d < rows.shape().size(); ++d) {
    if (rows.shape()[d] == 1 || !differ_along(numbers, rows.shape(), d)) continue;
    if (dim >= 0) return all;
    dim = static_cast<int64_t>(d);
  }
  NdArray line = rows;
  for (int64_t d = 0; d < rows.ndim(); ++d) {
    if (d != dim) line = line.sliced(d, 0, 1);
  }
  return bounded(as_line(line, static_cast<size_t>(dim)), dim);
}

// One call of a kernel on whole arrays.
class ArrayContext : public KernelContext {
 public:
  ArrayContext(std::vector<NdArray> operands, TensorType result)
      : operands_(std::move(operands)), type_(std::move(result)) {}
  const NdArray& operand(size_t i) const override { return operands_[i]; }
  std::optional<NdArray> take_operand(size_t) override { return std::nullopt; }
  NdArray allocate_result(size_t) override { return result_ = NdArray::empty(type_.dtype, type_.shape); }
  void set_result(size_t, NdArray view) override { result_ = std::move(view); }
  void parallel_for(int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) override {
    body(0, count);
  }
  NdArray result() { return std::move(result_); }

 private:
  std::vector<NdArray> operands_;
  TensorType type_;
  NdArray result_;
};

class Questions {
 public:
  explicit Questions(const Module& module) : module_(module) {}

  KnownIntegers of(ValueId value, const Dims& at) {
    const TensorType& type = module_.type(value);
    if (!is_evaluated(type.dtype)) return {};
    const OpId maker = module_.value(value).op;
    if (!maker) return of_argument(value, at);
    if (nested_ == kMostNested || module_.op(maker).result_count != 1) return any_of(type.dtype);
    const auto found = answers_.find({value.index, at});
    if (found != answers_.end()) return found->second;
    ++nested_;
    KnownIntegers answer = of_op(OpView(module_, maker), at);
    --nested_;
    if (!holds_integers(type.dtype)) answer.low = any_of(DType::kI64).low, answer.high = any_of(DType::kI64).high;
    const KnownIntegers any = any_of(type.dtype);
    answer.low = std::max(answer.low, any.low), answer.high = std::min(answer.high, any.high);
    return answers_.emplace(std::pair(value.index, at), std::move(answer)).first->second;
  }

 private:
  KnownIntegers of_argument(ValueId value, const Dims& at) const {
    const Value& argument = module_.value(value);
    const auto known = module_.known_arguments.find(argument.index);
    const bool is_known = argument.region == module_.main().body && known != module_.known_arguments.end();
    return is_known ? known_of(known->second, at) : any_of(module_.type(value).dtype);
  }

  class Context : public IntegersContext {
   public:
    Context(Questions& questions, const OpView& op, const Dims& at) : questions_(questions), op_(op), at_(at) {}
    const OpView& op() const override { return op_; }
    const Dims& at() const override { return at_; }
    KnownIntegers operand(size_t i, const Dims& at) override { return questions_.of(op_.operand(i), at); }
    KnownIntegers along(NdArray line, int64_t dim) const override {
      return line.size() > kMostNumbers ? any_of(line.dtype()) : bounded(std::move(line), dim);
    }

   private:
    Questions& questions_;
    const OpView& op_;
    const Dims& at_;
  };

  KnownIntegers of_op(const OpView& op, const Dims& at) {
    const Traits& traits = op.def().traits;
    if (traits.constant_like && op.operand_count() == 0) return of_constant(op, at);
    if (traits.elementwise) {
      std::optional<KnownIntegers> computed = by_kernel(op, at);
      if (computed) return std::move(*computed);
    }
    if (op.def().integers != nullptr) {
      Context context(*this, op, at);
      return op.def().integers(context);
    }
    if (traits.annotates()) return of(op.operand(0), at);
    if (traits.movement && op.operand_count() == 1 && op.regions().empty()) return by_rule(op, at);
    return any_of(op.result_type().dtype);
  }

  // An iota is one line in memory.
  KnownIntegers of_constant(const OpView& op, const Dims& at) {
    const TensorType& type = op.result_type();
    const bool is_long = std::ranges::any_of(type.shape, [](int64_t size) { return size > kMostNumbers; });
    const std::span<const TensorType> types(&type, 1);
    const std::optional<Kernel> kernel = is_long ? std::nullopt : op.def().prepare(op, {{}, types});
    if (!kernel) return any_of(type.dtype);
    ArrayContext context({}, type);
    (*kernel)(context);
    return known_of(context.result(), at);
  }

  // Operands that are known along one and the same dim.
  std::optional<KnownIntegers> by_kernel(const OpView& op, const Dims& at) {
    std::vector<NdArray> lines;
    int64_t dim = -1, count = 1;
    if (op.def().runs != Runs::kKernel) return std::nullopt;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const TensorType& type = op.operand_type(i);
      if (type.ndim() != 0 && type.shape != op.result_type().shape) return std::nullopt;
      KnownIntegers known = of(op.operand(i), type.ndim() == 0 ? Dims{} : at);
      if (!known.line || (known.dim >= 0 && dim >= 0 && known.dim != dim)) return std::nullopt;
      if (known.dim >= 0) dim = known.dim, count = known.line->size();
      lines.push_back(std::move(*known.line));
    }
    std::vector<TensorType> types;
    for (NdArray& line : lines) {
      if (line.size() != count) line = NdArray(line.dtype(), {count}, {0}, line.data(), line.owner());
      types.push_back({line.dtype(), {count}});
    }
    const TensorType result{op.result_type().dtype, {count}};
    const std::optional<Kernel> kernel =
        op.def().prepare(op, {std::span<const TensorType>(types), std::span<const TensorType>(&result, 1)});
    if (!kernel) return std::nullopt;
    ArrayContext context(std::move(lines), result);
    (*kernel)(context);
    return bounded(context.result(), dim);
  }

  // An element of the result is that of the operand where dims with the same factors have the same places.
  KnownIntegers by_rule(const OpView& op, const Dims& at) {
    const ShardingRule rule = op.def().rule(op);
    const KnownIntegers any = any_of(op.result_type().dtype);
    if (rule.empty() || rule.has_ranges()) return any;
    const size_t result = rule.result_tensor(0);
    Dims places, dims;
    for (size_t d = 0; d < rule.ndim(0); ++d) {
      places.push_back(op.operand_type(0).shape[d] == 1 ? 0 : kAnyPlace);
      dims.push_back(-1);
      if (places.back() == 0) continue;
      const auto factors = rule.dim(0, d);
      if (factors.size() != 1 || rule.factors()[factors[0]].kind != FactorKind::kPassThrough) return any;
      for (size_t r = 0; r < rule.ndim(result); ++r) {
        const auto own = rule.dim(result, r);
        if (own.size() == 1 && own[0] == factors[0]) dims.back() = static_cast<int64_t>(r);
      }
      if (dims.back() < 0) return any;  // merged with others
      places.back() = at[static_cast<size_t>(dims.back())];
    }
    KnownIntegers known = of(op.operand(0), places);
    if (known.dim >= 0) known.dim = dims[static_cast<size_t>(known.dim)];
    return known;
  }

  const Module& module_;
  std::map<std::pair<uint32_t, Dims>, KnownIntegers> answers_;
  int nested_ = 0;
};

}  // namespace

std::vector<int64_t> numbers_of(const NdArray& line) {
  std::vector<int64_t> numbers;
  numbers.reserve(static_cast<size_t>(line.size()));
  const int64_t stride = line.ndim() == 0 ? 0 : line.strides()[0];
  for (int64_t i = 0; i < line.size(); ++i) numbers.push_back(number_of(load(line.dtype(), line.data() + i * stride)));
  return numbers;
}

KnownIntegers known_integers(const Module& module, ValueId value, const Dims& at) {
  return Questions(module).of(value, at);
}

}  // namespace shardwise
