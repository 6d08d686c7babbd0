// SPDX-License-Identifier: Apache-2.0
//
// A vector of a few numbers that needs no memory of its own until it has more than `N` of them. The compiler makes millions of
// lists of one or two mesh axes, and most of the time for them was that of the allocator.
//
//   using AxisList = SmallVector<AxisRef, 2>;
//   AxisList list{x, y};                                          // inside the object
//   list.push_back(z);                                            // on the heap from here on
//   erase_if(list, [](const AxisRef& ref) { return ref.size == 1; });   // found by its argument, as that of std::vector is
//
// As in std::vector, a change of size makes iterators invalid; a move makes those of a short list invalid, too.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace shardwise {

template <class T, uint32_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;
  using size_type = size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() {}  // constants of it need no initializer
  explicit SmallVector(size_t count, const T& value = T()) { resize(count, value); }
  SmallVector(std::initializer_list<T> values) { append(values.begin(), values.size()); }
  template <std::input_iterator Iterator>
  SmallVector(Iterator first, Iterator last) {
    insert(end(), first, last);
  }
  SmallVector(const SmallVector& other) { append(other.data(), other.size()); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this == &other) return *this;
    clear();
    append(other.data(), other.size());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this == &other) return *this;
    heap_.reset();
    take(other);
    return *this;
  }
  ~SmallVector() = default;

  T* data() { return heap_ ? heap_.get() : inside(); }
  const T* data() const { return heap_ ? heap_.get() : inside(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  auto rbegin() { return std::reverse_iterator(end()); }
  auto rend() { return std::reverse_iterator(begin()); }
  auto rbegin() const { return std::reverse_iterator(end()); }
  auto rend() const { return std::reverse_iterator(begin()); }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void reserve(size_t count) {
    if (count > capacity_) grow(count);
  }
  void resize(size_t count, const T& value = T()) {
    const T added = value;  // it may be one of the elements
    reserve(count);
    if (count > size_) std::fill(data() + size_, data() + count, added);
    size_ = static_cast<uint32_t>(count);
  }
  void clear() { size_ = 0; }
  void push_back(const T& value) {
    const T added = value;
    if (size_ == capacity_) grow(size_ + 1);
    data()[size_++] = added;
  }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    push_back(T{std::forward<Args>(args)...});
    return back();
  }
  void pop_back() { --size_; }

  T* insert(const T* at, const T& value) {
    const T added = value;
    return insert(at, &added, &added + 1);
  }
  template <std::input_iterator Iterator>
  T* insert(const T* at, Iterator first, Iterator last) {
    const auto place = at - begin();
    const size_t before = size_;
    if constexpr (std::is_same_v<std::remove_const_t<std::remove_pointer_t<Iterator>>, T>) {
      append(first, static_cast<size_t>(last - first));
    } else {
      for (; first != last; ++first) push_back(*first);
    }
    std::rotate(begin() + place, begin() + before, end());
    return begin() + place;
  }
  T* erase(const T* at) { return erase(at, at + 1); }
  T* erase(const T* first, const T* last) {
    T* const to = begin() + (first - begin());
    std::copy(last, static_cast<const T*>(end()), to);
    size_ -= static_cast<uint32_t>(last - first);
    return to;
  }
  template <std::input_iterator Iterator>
  void assign(Iterator first, Iterator last) {
    *this = SmallVector(first, last);
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const SmallVector& a, const SmallVector& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }
  template <class Predicate>
  friend size_t erase_if(SmallVector& list, Predicate predicate) {
    const size_t before = list.size();
    list.erase(std::remove_if(list.begin(), list.end(), std::move(predicate)), list.end());
    return before - list.size();
  }
  friend size_t erase(SmallVector& list, const T& value) {
    return erase_if(list, [added = value](const T& element) { return element == added; });
  }

 private:
  T* inside() { return reinterpret_cast<T*>(inside_); }
  const T* inside() const { return reinterpret_cast<const T*>(inside_); }

  // `values` may be elements of this list.
  void append(const T* values, size_t count) {
    if (count == 0) return;
    if (size_ + count > capacity_) {
      const std::unique_ptr<T[]> kept = grow(size_ + count);
      std::memcpy(data() + size_, values, count * sizeof(T));
      size_ += static_cast<uint32_t>(count);
      return;
    }
    std::memmove(data() + size_, values, count * sizeof(T));
    size_ += static_cast<uint32_t>(count);
  }
  // Returns the memory that it had before, in which arguments may be.
  std::unique_ptr<T[]> grow(size_t count) {
    const size_t capacity = std::max<size_t>(count, 2 * size_t{capacity_});
    auto larger = std::make_unique_for_overwrite<T[]>(capacity);
    if (size_ > 0) std::memcpy(larger.get(), data(), size_ * sizeof(T));
    std::swap(heap_, larger);
    capacity_ = static_cast<uint32_t>(capacity);
    return larger;
  }
  void take(SmallVector& other) noexcept {
    heap_ = std::move(other.heap_);
    capacity_ = std::exchange(other.capacity_, N);
    size_ = std::exchange(other.size_, 0);
    if (!heap_ && size_ > 0) std::memcpy(inside_, other.inside_, size_ * sizeof(T));
  }

  std::unique_ptr<T[]> heap_;
  uint32_t size_ = 0, capacity_ = N;
  alignas(T) std::byte inside_[N * sizeof(T)];
};

}  // namespace shardwise
