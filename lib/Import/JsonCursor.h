// Walks over JSON text, value by value, without keeping any.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// A place in JSON text. Each function takes the next value; one that asks for
/// another type than the value has passes over it. After a mistake in the JSON
/// itself the cursor has failed: nothing more is taken.
class JsonCursor {
public:
  explicit JsonCursor(StringRef text) : at(text.begin()), end(text.end()) {}

  /// The first byte of the next value, or 0 at the end.
  char peek();
  /// Calls `visit`, which takes one value, for each element.
  bool array(function_ref<void()> visit);
  /// Calls `visit`, which takes one value, for each member.
  bool object(function_ref<void(StringRef key)> visit);
  /// An integer; one that does not fit is the largest or smallest that does.
  std::optional<int64_t> integer();
  std::optional<std::string> string();
  std::optional<bool> boolean();
  /// Any value but an object or array, as written.
  std::optional<StringRef> scalar();
  /// Passes over any value.
  void skip();
  /// Checks that nothing stands behind the value.
  void expectEnd();
  /// Stops here: nothing more is taken.
  void stop() {
    at = end;
    stopped = true;
  }

  /// The text of the value taken last; of an object or array its brackets.
  StringRef last() const { return lastToken; }
  /// What is wrong with the JSON, and where.
  bool failed() const { return !problem.empty(); }
  StringRef error() const { return problem; }
  StringRef errorPlace() const { return problemPlace; }

private:
  bool fail(StringRef why);
  bool going() const { return !failed() && !stopped; }
  bool accept(char c);
  bool expect(char c, StringRef what);
  bool list(char close, function_ref<bool()> item);
  std::optional<std::string> takeString();
  bool takeNumber(bool &isInteger);
  bool takeWord();
  bool takeScalar();

  const char *at, *end;
  StringRef lastToken, problem, problemPlace;
  unsigned depth = 0;
  bool stopped = false;
};

} // namespace ppcc
