// The options of passes: a table of names for the fields of a struct.
#pragma once

#include "ppcc/Pass/Pass.h"

namespace ppcc {

/// An option as --list-passes shows it.
struct PassOptionInfo {
  StringRef name;
  StringRef values; ///< What it may be: `sweep|late`, `N`.
  StringRef summary;
};

/// An option that is a field of `Options`.
template <class Options> struct PassOption {
  PassOptionInfo info;
  /// Stores the value; false when the text is none.
  bool (*set)(Options &options, StringRef value);
};

/// A pass that is being given its options.
struct PassBuilder {
  /// Sets option number `option` of the pass; false when `value` is none.
  std::function<bool(size_t option, StringRef value)> set;
  std::function<Pass()> finish;
};

/// Makes the passes of one name.
struct PassFactory {
  std::vector<PassOptionInfo> options;
  std::function<PassBuilder()> draft;
};

/// The factory of a pass without options.
inline PassFactory passFactory(Pass pass) {
  return {{}, [=] { return PassBuilder{nullptr, [=] { return pass; }}; }};
}

/// The factory of what `make` makes of options, which are `defaults` where the
/// table sets nothing else. The table must live as long as the program runs.
template <class Options>
PassFactory passFactory(ArrayRef<PassOption<Options>> table, Options defaults,
                        Pass (*make)(Options options)) {
  PassFactory factory;
  for (const PassOption<Options> &option : table)
    factory.options.push_back(option.info);
  factory.draft = [=] {
    auto options = std::make_shared<Options>(defaults);
    return PassBuilder{[=](size_t option, StringRef value) {
                         return table[option].set(*options, value);
                       },
                       [=] { return make(*options); }};
  };
  return factory;
}

} // namespace ppcc
