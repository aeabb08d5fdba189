// What ppcc uses of LLVM 19's STLExtras.h, for those from 14 on.
#include_next "llvm/ADT/STLExtras.h"

#ifndef PPCC_LLVM_STLEXTRAS_H
#define PPCC_LLVM_STLEXTRAS_H

#include "llvm/Config/llvm-config.h"

#if LLVM_VERSION_MAJOR < 15
namespace llvm {
template <typename T, typename E>
constexpr bool is_contained(std::initializer_list<T> set, const E &element) {
  return std::find(set.begin(), set.end(), element) != set.end();
}
} // namespace llvm
#endif

#if LLVM_VERSION_MAJOR < 16
namespace llvm {
template <typename R> bool all_equal(R &&range) {
  auto first = adl_begin(range), end = adl_end(range);
  return first == end || std::equal(std::next(first), end, first);
}
template <typename T, typename U, typename... Rest>
auto zip_equal(T &&one, U &&other, Rest &&...rest) {
  return zip(std::forward<T>(one), std::forward<U>(other),
             std::forward<Rest>(rest)...);
}
} // namespace llvm

// `auto [index, value]` of enumerate.
namespace llvm::detail {
template <size_t I, typename R> decltype(auto) get(result_pair<R> pair) {
  if constexpr (I == 0)
    return pair.index();
  else
    return pair.value();
}
} // namespace llvm::detail
template <typename R>
struct std::tuple_size<llvm::detail::result_pair<R>>
    : std::integral_constant<size_t, 2> {};
template <size_t I, typename R>
struct std::tuple_element<I, llvm::detail::result_pair<R>> {
  using type = decltype(llvm::detail::get<I>(
      std::declval<llvm::detail::result_pair<R>>()));
};
#endif

#if LLVM_VERSION_MAJOR < 18
namespace llvm {
template <typename C, typename V> void erase(C &container, V value) {
  container.erase(std::remove(container.begin(), container.end(), value),
                  container.end());
}
} // namespace llvm
#endif

#if LLVM_VERSION_MAJOR < 19
namespace llvm {
template <typename R, typename... Order>
auto min_element(R &&range, Order... order) {
  return std::min_element(adl_begin(range), adl_end(range), order...);
}
template <typename R, typename... Order>
auto max_element(R &&range, Order... order) {
  return std::max_element(adl_begin(range), adl_end(range), order...);
}
template <typename R, typename T>
bool binary_search(R &&range, const T &value) {
  return std::binary_search(adl_begin(range), adl_end(range), value);
}
template <typename R> auto unique(R &&range) {
  return std::unique(adl_begin(range), adl_end(range));
}
} // namespace llvm
#endif

#endif
