// SPDX-License-Identifier: Apache-2.0
//
// Functions of matrices, vectors and numbers, applied to each problem of a batch. A row is data:
//
//   {"lapack_spotrf_ffi", "T n n -> T n n, I", "uplo=LU", …}       of 8 matrices: T [8, 4, 4] -> T [8, 4, 4], I [8]
//
// The signature has a tensor between commas: its elements (T: those of the call, R: their real type, C: their complex
// type, I: int32), then a letter for each dim after the batch. Equal letters are equal sizes; k is min(m, n) and l is
// n - 1 unless an operand binds them. Options have a name and what they may be: letters of LAPACK (uplo=LU), an integer
// (low#) or a boolean (left?).
//
// The batch is split over devices, and so is a dim that the row names as free. Each problem is one call of LAPACK,
// so that its bits do not depend on the problems beside it.
#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// Attributes of a call by name; letters are their codes, as in JAX's texts.
class CallOptions {
 public:
  void set(std::string name, int64_t value) { values_.emplace_back(std::move(name), value); }
  const int64_t* find(std::string_view name) const;
  int64_t number(std::string_view name) const;
  char letter(std::string_view name) const { return static_cast<char>(number(name)); }

 private:
  std::vector<std::pair<std::string, int64_t>> values_;
};

// Sizes by the letter of the signature.
class CallSizes {
 public:
  CallSizes() { sizes_.fill(-1); }
  int64_t& operator[](char letter) { return sizes_[static_cast<size_t>(letter - 'a')]; }
  int64_t operator[](char letter) const { return sizes_[static_cast<size_t>(letter - 'a')]; }

 private:
  std::array<int64_t, 26> sizes_;
};

// One problem: copies of its operands in LAPACK's column-major order, and its part of the results. Calls that can take
// transposed matrices need no such copies: to LAPACK, the rows of a matrix are the columns of its transpose.
class Problem {
 public:
  Problem(const CallOptions& options, const CallSizes& sizes, std::span<const NdArray> operands,
          std::span<const NdArray> results, size_t batch_rank, int64_t index)
      : options_(options),
        sizes_(sizes),
        operands_(operands),
        results_(results),
        batch_rank_(batch_rank),
        index_(index) {}

  char letter(std::string_view option) const { return options_.letter(option); }
  int64_t number(std::string_view option) const { return options_.number(option); }
  int size(char letter) const { return static_cast<int>(sizes_[letter]); }
  template <class T>
  std::vector<T> load(size_t operand) const {
    std::vector<T> copy(static_cast<size_t>(core_size(operands_[operand])));
    load(operands_[operand], reinterpret_cast<std::byte*>(copy.data()));
    return copy;
  }
  // An operand in row-major order: its own memory if that is dense, else a copy in `room`.
  template <class T>
  const T* rows(size_t operand, std::vector<T>& room) const {
    const NdArray& array = operands_[operand];
    if (array.is_contiguous()) return reinterpret_cast<const T*>(first_item(array));
    room.resize(static_cast<size_t>(core_size(array)));
    copy_rows(array, reinterpret_cast<std::byte*>(room.data()));
    return room.data();
  }
  // The memory of a result, in row-major order, with a copy of an operand.
  template <class T>
  T* result_from(size_t result, size_t operand) const {
    copy_rows(operands_[operand], at(results_[result]));
    return reinterpret_cast<T*>(at(results_[result]));
  }
  // The first rows and columns of a column-major matrix with `leading` rows, or of a vector.
  template <class T>
  void store(size_t result, const std::vector<T>& from, int leading) const {
    store(results_[result], reinterpret_cast<const std::byte*>(from.data()), leading);
  }
  template <class T>
  void store(size_t result, const T& number) const {
    std::memcpy(at(results_[result]), &number, sizeof(T));
  }
  void store_info(size_t result, int info) const { store(result, static_cast<int32_t>(info)); }
  template <class T>
  void fill(size_t result, T value) const {
    auto* to = reinterpret_cast<T*>(at(results_[result]));
    std::fill_n(to, core_size(results_[result]), value);
  }

 private:
  int64_t core_size(const NdArray& array) const;
  std::byte* at(const NdArray& result) const;
  const std::byte* first_item(const NdArray& operand) const;
  void load(const NdArray& from, std::byte* to) const;
  void copy_rows(const NdArray& from, std::byte* to) const;
  void store(const NdArray& to, const std::byte* from, int64_t leading) const;

  const CallOptions& options_;
  const CallSizes& sizes_;
  std::span<const NdArray> operands_, results_;
  size_t batch_rank_;
  int64_t index_;
};

using Solve = void (*)(const Problem& problem);
// By element type: float, double, complex64, complex128. Null: the call does not take it.
using SolveByType = std::array<Solve, 4>;

struct BatchedCall {
  std::string name;
  std::string_view signature;
  std::string_view options = {};
  SolveByType solve = {};
  // Checks the conditions that the signature cannot state.
  bool (*fits)(const CallSizes& sizes, const CallOptions& options) = nullptr;
  char (*free_dim)(const CallOptions& options) = nullptr;  // a dim that may be split, or 0
  CallOptions (*read)(const Attrs& attrs) = nullptr;       // null: those of JAX's mhlo.backend_config
};

// The fields of an op or of a custom call. `rule` has no factors where the types do not fit.
void check(const BatchedCall& call, const OpView& op);  // ShapeError for types and options that do not fit
ShardingRule rule(const BatchedCall& call, const OpView& op);
std::optional<Kernel> prepare(const BatchedCall& call, const OpView& op, const KernelTypes& types);
OpCost cost(const BatchedCall& call, const OpView& op, const LocalTypes& types);

// A row for the four types, of a lambda `[]<class T>(const Problem&)`.
template <auto solve>
constexpr SolveByType solve_by_type() {
  return {[](const Problem& p) { solve.template operator()<float>(p); },
          [](const Problem& p) { solve.template operator()<double>(p); },
          [](const Problem& p) { solve.template operator()<std::complex<float>>(p); },
          [](const Problem& p) { solve.template operator()<std::complex<double>>(p); }};
}

}  // namespace shardwise
