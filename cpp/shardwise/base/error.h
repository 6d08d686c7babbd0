// SPDX-License-Identifier: Apache-2.0
//
// The errors of the package. A message states the requirement, the value found, and the fix:
//
//   fail<ShapeError>("stablehlo.add", "operands must have the same shape", "tensor<4xf32> and tensor<5xf32>",
//                    "broadcast one of them first");
//   // ShapeError: stablehlo.add: operands must have the same shape, got tensor<4xf32> and tensor<5xf32>;
//   //             broadcast one of them first (at train.py:31)
//
// The code that knows the user's line appends it (`Error::at`). Bindings translate each class to a Python exception of
// the same name, which is also a ValueError or a TypeError. InternalError is a bug in shardwise.
#pragma once

#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace shardwise {

class Error : public std::runtime_error {
 public:
  explicit Error(std::string message) : std::runtime_error(message), message_(std::move(message)) {}

  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const { return message_; }

  // Appends the user's location once. Later calls are ignored, because the innermost location is the most precise.
  void at(std::string_view location);

 private:
  std::string message_;
  bool located_ = false;
};

class MeshError : public Error {
  using Error::Error;
};
class ShardingError : public Error {
  using Error::Error;
};
class ShapeError : public Error {
  using Error::Error;
};
class DTypeError : public Error {
  using Error::Error;
};
class UnsupportedError : public Error {
  using Error::Error;
};
class InternalError : public Error {
  using Error::Error;
};

// A buffer that does not fit into memory, or a program that does not fit into its limit. The allocator knows the size, and the code that runs an op adds the op:
//
//   catch (const OutOfMemoryError& error) { throw error.named("stablehlo.add", "tensor<4x8xf32> on 2 devices"); }
class OutOfMemoryError : public Error {
 public:
  // `bytes` is 0 when the size is unknown.
  OutOfMemoryError(std::string_view subject, std::string_view buffer, int64_t bytes);
  explicit OutOfMemoryError(std::string message) : Error(std::move(message)) {}
  OutOfMemoryError named(std::string_view subject, std::string_view buffer) const { return {subject, buffer, bytes_}; }

 private:
  int64_t bytes_ = 0;
};

class ParseError : public Error {
 public:
  ParseError(std::string message, int line, int column);
  explicit ParseError(std::string message) : Error(std::move(message)) {}  // of what has no lines, such as a dict
  int line() const { return line_; }
  int column() const { return column_; }

 private:
  int line_ = 0;  // from 1; 0 is unknown
  int column_ = 0;
};

// "<subject>: <must_hold>, got <got>; <way_out>"; `got` and `way_out` may be empty.
std::string error_message(std::string_view subject, std::string_view must_hold, std::string_view got,
                          std::string_view way_out);

template <class E>
[[noreturn]] void fail(std::string_view subject, std::string_view must_hold, std::string_view got = {},
                       std::string_view way_out = {}) {
  throw E(error_message(subject, must_hold, got, way_out));
}

// Checks an invariant of shardwise itself. When `condition` is false, throws InternalError with the C++ source
// position.
void check_internal(bool condition, std::string_view what,
                    std::source_location where = std::source_location::current());

}  // namespace shardwise
