// Keeps what analyses found out about a program until it changes.
#pragma once

#include "ppcc/IR/Program.h"

#include <map>
#include <memory>
#include <typeindex>

namespace ppcc {

/// The analyses of one program, each made when it is first asked for.
class AnalysisCache {
public:
  /// The analysis `A`, which is constructed from the program and, when it names
  /// another analysis as `A::Needs`, from that.
  template <class A> const A &get(const Program &program) {
    auto &entry = entries[typeid(A)];
    if (entry)
      return *static_cast<const A *>(entry.get());
    if constexpr (requires { typename A::Needs; })
      entry = std::make_shared<A>(program, get<typename A::Needs>(program));
    else
      entry = std::make_shared<A>(program);
    return *static_cast<const A *>(entry.get());
  }

  /// Forgets all; call it when the program has changed.
  void clear() { entries.clear(); }

private:
  std::map<std::type_index, std::shared_ptr<void>> entries;
};

} // namespace ppcc
