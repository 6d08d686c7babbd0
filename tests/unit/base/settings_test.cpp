// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/settings.h"

#include <map>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

Settings read(const std::map<std::string, std::string>& environment) {
  return read_settings([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

std::string message_of(const std::map<std::string, std::string>& environment) {
  try {
    read(environment);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Settings, HaveDefaults) {
  const Settings none = read({});
  EXPECT_EQ(none.log, 0);
  EXPECT_EQ(none.dump_dir, "");
  EXPECT_FALSE(none.verify);
  EXPECT_EQ(none.threads, 0);
  EXPECT_FALSE(none.full_traceback);
}

TEST(Settings, AreReadFromTheEnvironment) {
  const Settings all = read({{"SHARDWISE_LOG", "2"},
                             {"SHARDWISE_DUMP_DIR", "/tmp/dump"},
                             {"SHARDWISE_VERIFY", "1"},
                             {"SHARDWISE_THREADS", "16"},
                             {"SHARDWISE_TRACEBACK", "full"}});
  EXPECT_EQ(all.log, 2);
  EXPECT_EQ(all.dump_dir, "/tmp/dump");
  EXPECT_TRUE(all.verify);
  EXPECT_EQ(all.threads, 16);
  EXPECT_TRUE(all.full_traceback);
  EXPECT_EQ(read({{"SHARDWISE_LOG", ""}}).log, 0);
}

TEST(Settings, RefuseWhatIsNoNumber) {
  EXPECT_EQ(message_of({{"SHARDWISE_THREADS", "many"}}),
            "SHARDWISE_THREADS: must be an integer from 0 to 1024, got \"many\"; correct or unset it");
  EXPECT_NE(message_of({{"SHARDWISE_THREADS", "-1"}}), "no error");
  EXPECT_NE(message_of({{"SHARDWISE_THREADS", "4 "}}), "no error");
  EXPECT_NE(message_of({{"SHARDWISE_VERIFY", "2"}}), "no error");
  EXPECT_NE(message_of({{"SHARDWISE_LOG", "99999999999999999999"}}), "no error");
}

TEST(Settings, RefuseAnUnknownChoice) {
  EXPECT_EQ(message_of({{"SHARDWISE_TRACEBACK", "on"}}),
            "SHARDWISE_TRACEBACK: must be \"full\" or empty, got \"on\"; correct or unset it");
  EXPECT_FALSE(read({{"SHARDWISE_TRACEBACK", ""}}).full_traceback);
}

TEST(Settings, TableNamesEveryVariable) {
  std::map<std::string, int> asked;
  read_settings([&](const char* name) -> const char* {
    ++asked[name];
    return nullptr;
  });
  EXPECT_EQ(asked.size(), settings_table().size());
  for (const SettingRow& row : settings_table()) EXPECT_EQ(asked[std::string(row.name)], 1) << row.name;
}

}  // namespace
}  // namespace shardwise
