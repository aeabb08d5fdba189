// What others work out about an object, kept with it.
#pragma once

#include "ppcc/Support/LLVM.h"
#include <typeindex>

namespace ppcc {

/// Values by type and name, each made when it is first asked for. They speak of
/// the object that holds them as it stands: who changes it clears them, and a
/// copy begins without. Not for several threads at once.
class AnalysisCache {
public:
  AnalysisCache() = default;
  AnalysisCache(const AnalysisCache &) noexcept {}
  AnalysisCache(AnalysisCache &&other) noexcept { other.clear(); }
  AnalysisCache &operator=(AnalysisCache) noexcept {
    clear();
    return *this;
  }

  /// The value of this type and name, else what `make` gives.
  template <class Make>
  const std::invoke_result_t<Make> &get(const std::string &name, Make make) {
    using Value = std::invoke_result_t<Make>;
    std::shared_ptr<void> &value = values[{typeid(Value), name}];
    if (!value)
      value = std::shared_ptr<Value>(new Value(make()));
    return *static_cast<const Value *>(value.get());
  }
  void clear() { values.clear(); }

private:
  std::map<std::pair<std::type_index, std::string>, std::shared_ptr<void>>
      values;
};

} // namespace ppcc
