// SPDX-License-Identifier: Apache-2.0
// Binds functions to old versions of them, so that a wheel loads on manylinux_2_34 (glibc 2.34, GLIBCXX_3.4.29) although
// it was linked against newer libraries. The linker would take the newest version of each.
//
// cpp/CMakeLists.txt links the extension with --wrap=NAME for each function here: calls of NAME, also those in static
// libraries, become calls of __wrap_NAME. Results are the same as those of the newest versions:
// - hypot: the old version also sets errno, which nothing here reads.
// - condition_variable::wait: pthread_cancel cannot unwind through the old version. Our threads are never cancelled.
#include <condition_variable>
#include <mutex>

#if !defined(__x86_64__) || !defined(__GLIBC__)
#error "the versions below are those of glibc on x86-64"
#endif

extern "C" {
double old_hypot(double x, double y) noexcept;
__asm__(".symver old_hypot, hypot@GLIBC_2.2.5");
double __wrap_hypot(double x, double y) noexcept { return old_hypot(x, y); }

// A member function is called like a function whose first argument is the object.
void old_wait(std::condition_variable* self, std::unique_lock<std::mutex>& lock) noexcept;
__asm__(".symver old_wait, _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(std::condition_variable* self,
                                                                      std::unique_lock<std::mutex>& lock) noexcept {
  old_wait(self, lock);
}
}
