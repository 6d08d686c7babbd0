// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/error.h"

namespace shardwise {

void Error::at(std::string_view location) {
  if (located_ || location.empty()) return;
  located_ = true;
  message_.append(" (at ").append(location).append(")");
}

OutOfMemoryError::OutOfMemoryError(std::string_view subject, std::string_view buffer, int64_t bytes)
    : Error(error_message(
          subject, "its buffers must fit into memory",
          std::string(buffer) + (bytes > 0 ? (buffer.empty() ? "" : ", ") + std::to_string(bytes) + " bytes" : ""),
          "use a smaller shape, or only compile the program: sw.jit(f).lower(...).compile()")),
      bytes_(bytes) {}

namespace {

// Line and column come first, as in the messages of MLIR and of compilers, so that editors can jump there. What has no
// lines, such as a dict, is at line 0.
std::string with_position(const std::string& message, int line, int column) {
  return line == 0 ? message : std::to_string(line) + ":" + std::to_string(column) + ": " + message;
}

}  // namespace

ParseError::ParseError(std::string message, int line, int column)
    : Error(with_position(message, line, column)), line_(line), column_(column) {}

std::string error_message(std::string_view subject, std::string_view must_hold, std::string_view got,
                          std::string_view way_out) {
  std::string message(subject);
  message.append(": ").append(must_hold);
  if (!got.empty()) message.append(", got ").append(got);
  if (!way_out.empty()) message.append("; ").append(way_out);
  return message;
}

void check_internal(bool condition, std::string_view what, std::source_location where) {
  // Nothing is built before the check fails, because kernels and executors check on hot paths.
  if (condition) return;
  std::string message = "a bug in shardwise: ";
  message.append(what).append(" [").append(where.file_name()).append(":");
  message.append(std::to_string(where.line())).append("]");
  throw InternalError(std::move(message));
}

}  // namespace shardwise
