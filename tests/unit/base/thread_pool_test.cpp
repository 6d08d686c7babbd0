// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

namespace shardwise {
namespace {

class ThreadPool : public ::testing::Test {
 protected:
  void SetUp() override { set_thread_count(4); }  // also on a machine with fewer processors
  void TearDown() override { set_thread_count(0); }
};

int64_t sum_below(int64_t count, int64_t grain) {
  std::atomic<int64_t> sum{0};
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    int64_t part = 0;
    for (int64_t i = begin; i < end; ++i) part += i;
    sum += part;
  });
  return sum;
}

TEST_F(ThreadPool, VisitsEveryIndexOnce) {
  for (int64_t count : {0, 1, 2, 3, 7, 64, 1000, 100003}) {
    for (int64_t grain : {0, 1, 3, 64, 200000}) {
      std::vector<int> visits(static_cast<size_t>(count), 0);
      parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        EXPECT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      EXPECT_EQ(std::accumulate(visits.begin(), visits.end(), int64_t{0}), count);
      EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), count);
    }
  }
}

TEST_F(ThreadPool, ChunksAreWholeGrains) {
  parallel_for(1000, 48, [](int64_t begin, int64_t end) {
    EXPECT_EQ(begin % 48, 0);
    EXPECT_TRUE(end % 48 == 0 || end == 1000);
  });
}

TEST_F(ThreadPool, UsesSeveralThreads) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> waiting{0};
  parallel_for(4, 1, [&](int64_t begin, int64_t end) {
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    waiting += static_cast<int>(end - begin);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (waiting < 2 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  });
  EXPECT_GE(threads.size(), 2U);
  EXPECT_LE(threads.size(), 4U);
}

TEST_F(ThreadPool, RunsManySmallJobs) {
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(sum_below(16, 1), 120);
}

TEST_F(ThreadPool, RunsNestedCallsInline) {
  std::atomic<int64_t> total{0};
  parallel_for(8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto outer = std::this_thread::get_id();
      parallel_for(100, 1, [&](int64_t inner_begin, int64_t inner_end) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        total += inner_end - inner_begin;
      });
    }
  });
  EXPECT_EQ(total, 800);
}

TEST_F(ThreadPool, ServesSeveralUsersAtOnce) {
  std::vector<std::thread> users;
  std::atomic<int> right{0};
  for (int u = 0; u < 4; ++u) {
    users.emplace_back([&] {
      for (int i = 0; i < 300; ++i) right += sum_below(1000, 10) == 499500;
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(right, 1200);
}

TEST_F(ThreadPool, HandsExceptionsToTheCaller) {
  for (int64_t bad : {0, 17, 99}) {
    const auto run = [&] {
      parallel_for(100, 1, [&](int64_t begin, int64_t end) {
        if (begin <= bad && bad < end) throw std::runtime_error("chunk failed");
      });
    };
    EXPECT_THROW(run(), std::runtime_error);
    EXPECT_EQ(sum_below(1000, 1), 499500);  // and serves on
  }
}

TEST_F(ThreadPool, InterruptsLongWorkOfOneThreadOrMore) {
  for (int threads : {1, 4}) {
    for (bool nested : {false, true}) {
      set_thread_count(threads);
      std::atomic<int64_t> done{0};
      const auto work = [&](int64_t begin, int64_t end) { done += end - begin; };
      const auto long_work = [&] { parallel_for(int64_t{1} << 40, int64_t{1} << 10, work); };
      const auto caller = std::this_thread::get_id();
      const std::function<void()> check = [&] {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        if (done > int64_t{1} << 22) throw std::runtime_error("interrupted");
      };
      const auto run = [&] {
        const InterruptScope scope(check);
        if (nested) {
          parallel_for(8, 1, [&](int64_t, int64_t) { long_work(); });
        } else {
          long_work();
        }
      };
      EXPECT_THROW(run(), std::runtime_error);
      EXPECT_LT(done, int64_t{nested ? 8 : 1} << 40);  // not all of the work
      EXPECT_EQ(sum_below(1000, 1), 499500);           // and nobody asks any more
    }
  }
}

TEST_F(ThreadPool, TakesAConstFunctionAndAFunctionPointer) {
  static std::atomic<int64_t> total{0};
  const auto add = [](int64_t begin, int64_t end) { total += end - begin; };
  parallel_for(50, 1, add);
  void (*pointer)(int64_t, int64_t) = add;
  parallel_for(50, 1, pointer);
  EXPECT_EQ(total, 100);
}

TEST_F(ThreadPool, CountsThreads) {
  EXPECT_EQ(thread_count(), 4);
  set_thread_count(1);
  const auto caller = std::this_thread::get_id();
  parallel_for(100, 1, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(end - begin, 100);
  });
  set_thread_count(0);
  EXPECT_GE(thread_count(), 1);
}

TEST_F(ThreadPool, DoesNotSpinWhenIdle) {
  sum_below(1000, 1);
  const auto cpu = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const double before = cpu();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu() - before, 0.05);
}

// ThreadSanitizer does not support new threads in the child of a process with threads.
#ifndef __SANITIZE_THREAD__
TEST_F(ThreadPool, WorksInTheChildOfAFork) {
  sum_below(1000, 1);  // the parent's threads exist
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a hang becomes a failure
    bool right = true;
    for (int i = 0; i < 100; ++i) right = right && sum_below(1000, 1) == 499500;
    _exit(right ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(sum_below(1000, 1), 499500);  // the parent's pool is untouched
}
#endif

}  // namespace
}  // namespace shardwise
