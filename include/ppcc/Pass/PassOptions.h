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
class PassDraft {
public:
  virtual ~PassDraft() = default;
  /// Sets option number `option` of the pass; false when `value` is none.
  virtual bool set(size_t option, StringRef value) = 0;
  virtual std::unique_ptr<Pass> finish() = 0;
};

/// Makes the passes of one name.
struct PassFactory {
  std::vector<PassOptionInfo> options;
  std::function<std::unique_ptr<PassDraft>()> draft;
};

/// The factory of a pass `P` that is constructed from `Options`, which the
/// table describes. The table must live as long as the program runs.
template <class P, class Options>
PassFactory passFactory(ArrayRef<PassOption<Options>> table) {
  struct Draft final : PassDraft {
    explicit Draft(ArrayRef<PassOption<Options>> table) : table(table) {}
    bool set(size_t option, StringRef value) override {
      return table[option].set(options, value);
    }
    std::unique_ptr<Pass> finish() override {
      return std::make_unique<P>(options);
    }

    ArrayRef<PassOption<Options>> table;
    Options options;
  };
  PassFactory factory;
  for (const PassOption<Options> &option : table)
    factory.options.push_back(option.info);
  factory.draft = [table] { return std::make_unique<Draft>(table); };
  return factory;
}

/// The factory of a pass `P` without options.
template <class P> PassFactory passFactory() {
  struct Draft final : PassDraft {
    bool set(size_t, StringRef) override { return false; }
    std::unique_ptr<Pass> finish() override { return std::make_unique<P>(); }
  };
  return {{}, [] { return std::make_unique<Draft>(); }};
}

} // namespace ppcc
