// Walks over JSON text, value by value, without keeping any.
#include "JsonCursor.h"

#include "llvm/Support/JSON.h"

using namespace ppcc;

/// Beyond this nothing that a program means is nested.
static constexpr unsigned maxDepth = 64;

bool JsonCursor::fail(StringRef why) {
  if (!failed()) {
    problem = why;
    problemPlace = StringRef(at, at != end);
  }
  return false;
}

char JsonCursor::peek() {
  while (at != end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
    ++at;
  return going() && at != end ? *at : 0;
}

bool JsonCursor::accept(char c) {
  if (peek() != c || at == end)
    return false;
  ++at;
  return true;
}

bool JsonCursor::expect(char c, StringRef what) {
  return accept(c) || (going() && fail(what));
}

/// What stands between brackets, the first of which has been taken.
bool JsonCursor::list(char close, function_ref<bool()> item) {
  const char *from = at - 1;
  if (++depth > maxDepth)
    return fail("it is nested more than 64 deep");
  if (!accept(close)) {
    do {
      if (!going() || !item() || !going())
        return false;
    } while (accept(','));
    if (!expect(close,
                close == ']' ? "expected `,` or `]`" : "expected `,` or `}`"))
      return false;
  }
  --depth;
  lastToken = StringRef(from, at - from);
  return true;
}

bool JsonCursor::array(function_ref<void()> visit) {
  if (peek() != '[') {
    skip();
    return false;
  }
  ++at;
  return list(']', [&] {
    visit();
    return true;
  });
}

bool JsonCursor::object(function_ref<void(StringRef)> visit) {
  if (peek() != '{') {
    skip();
    return false;
  }
  ++at;
  return list('}', [&] {
    if (peek() != '"')
      return going() && fail("expected a key in double quotes");
    auto key = takeString();
    if (!key || !expect(':', "expected `:`"))
      return false;
    visit(*key);
    return true;
  });
}

std::optional<int64_t> JsonCursor::integer() {
  char first = peek();
  if (first != '-' && !llvm::isDigit(first)) {
    skip();
    return std::nullopt;
  }
  bool isInteger = false;
  if (!takeNumber(isInteger) || !isInteger)
    return std::nullopt;
  int64_t value;
  if (lastToken.getAsInteger(10, value))
    value = first == '-' ? INT64_MIN : INT64_MAX;
  return value;
}

std::optional<std::string> JsonCursor::string() {
  if (peek() == '"')
    return takeString();
  skip();
  return std::nullopt;
}

std::optional<bool> JsonCursor::boolean() {
  skip();
  if (going() && (lastToken == "true" || lastToken == "false"))
    return lastToken == "true";
  return std::nullopt;
}

std::optional<StringRef> JsonCursor::scalar() {
  char first = peek();
  skip();
  if (!going() || first == '[' || first == '{')
    return std::nullopt;
  return lastToken;
}

void JsonCursor::skip() {
  char first = peek();
  if (first == '[')
    array([&] { skip(); });
  else if (first == '{')
    object([&](StringRef) { skip(); });
  else
    takeScalar();
}

void JsonCursor::expectEnd() {
  if (peek() != 0 || (going() && at != end))
    fail("something stands behind the last `}`");
}

bool JsonCursor::takeScalar() {
  char first = peek();
  bool isInteger;
  if (first == '"')
    return takeString().has_value();
  if (first == '-' || llvm::isDigit(first))
    return takeNumber(isInteger);
  return takeWord();
}

std::optional<std::string> JsonCursor::takeString() {
  const char *from = at;
  bool isPlain = true;
  while (++at != end && *at != '"') {
    if (*at == '\\' && at + 1 != end)
      ++at;
    isPlain &= llvm::isPrint(*at) && *at != '\\' && at[-1] != '\\';
  }
  if (at == end) {
    fail("a string has no end");
    return std::nullopt;
  }
  ++at;
  lastToken = StringRef(from, at - from);
  if (isPlain)
    return lastToken.drop_front().drop_back().str();
  auto value = llvm::json::parse(lastToken);
  if (value && value->getAsString())
    return value->getAsString()->str();
  llvm::consumeError(value.takeError());
  at = from;
  fail("a string is not UTF-8, or has an escape that JSON does not know");
  return std::nullopt;
}

bool JsonCursor::takeNumber(bool &isInteger) {
  const char *from = at;
  auto digits = [&] {
    const char *first = at;
    while (at != end && llvm::isDigit(*at))
      ++at;
    return at != first;
  };
  if (*at == '-')
    ++at;
  bool leadingZero = at != end && *at == '0';
  const char *firstDigit = at;
  bool good = digits() && !(leadingZero && at - firstDigit > 1);
  isInteger = true;
  if (good && at != end && *at == '.') {
    ++at;
    isInteger = false;
    good = digits();
  }
  if (good && at != end && (*at == 'e' || *at == 'E')) {
    ++at;
    isInteger = false;
    if (at != end && (*at == '+' || *at == '-'))
      ++at;
    good = digits();
  }
  if (!good) {
    at = from;
    return fail("expected a number");
  }
  lastToken = StringRef(from, at - from);
  return true;
}

bool JsonCursor::takeWord() {
  peek();
  for (StringRef word : {"true", "false", "null"}) {
    if (!going() || !StringRef(at, end - at).starts_with(word))
      continue;
    lastToken = StringRef(at, word.size());
    at += word.size();
    return true;
  }
  return going() && fail(at == end ? "the text ends here" : "expected a value");
}
