// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/program_dump.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <exception>
#include <fstream>
#include <random>
#include <string>
#include <system_error>

#include "shardwise/base/error.h"
#include "shardwise/base/settings.h"
#include "shardwise/base/text.h"
#include "shardwise/text/printer.h"

namespace shardwise {
namespace {

// File systems limit names, and a module may be named after a function of any length.
constexpr size_t kLongestName = 60;

std::string padded(int number, size_t digits) {
  const std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

// A module may have any name; a file may not.
std::string file_name(std::string_view name) {
  std::string out(name.substr(0, kLongestName));
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '_' && c != '-'; }, '_');
  return out;
}

bool write(const Module& module, const std::filesystem::path& path) {
  std::ofstream file(path);
  file << print(module, {.locations = true});
  // A full disk shows only when the buffer is written.
  file.close();
  return static_cast<bool>(file);
}

}  // namespace

std::filesystem::path new_dump_folder(const Module& module) {
  // Programs are numbered in the order of compiling, also when several threads compile.
  static std::atomic<int> programs = 0;
  if (settings().dump_dir.empty()) return {};
  const std::string name = file_name(module.name);
  std::filesystem::path folder = settings().dump_dir;
  folder /= padded(++programs, 4) + (name.empty() ? "" : "_" + name);
  return folder;
}

std::string numbered(int number, std::string_view name) { return str(padded(number, 2), "_", name); }

void dump(const Module& module, const std::filesystem::path& folder, std::string_view name) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::filesystem::path path = folder / str(name, ".mlir");
  if (error || !write(module, path)) {
    fail<Error>("SHARDWISE_DUMP_DIR", "its files must be writable", path.string(), "correct or unset it");
  }
}

std::filesystem::path keep_for_report(const Module& module, const std::filesystem::path& folder,
                                      std::string_view pass) {
  std::filesystem::path own = folder;
  if (folder.empty()) {
    // Folders for temporary files are shared: a name that nobody can guess, in a folder that is the user's own.
    std::random_device random;
    own = std::filesystem::temp_directory_path() /
          str("shardwise_bug_", std::to_string(random()), std::to_string(random()));
    // False if it exists: somebody else's folder is not written to.
    if (!std::filesystem::create_directory(own)) return {};
  } else {
    std::filesystem::create_directories(folder);
  }
  const std::filesystem::path path = own / str("before_", pass, ".mlir");
  return write(module, path) ? path : std::filesystem::path();
}

}  // namespace shardwise
