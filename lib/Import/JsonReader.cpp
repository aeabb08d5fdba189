// Walks over JSON text, value by value, without keeping any.
#include "JsonReader.h"

#include "llvm/Support/JSON.h"
#include <charconv>

using namespace ppcc;

/// Beyond this nothing that a program means is nested.
static constexpr unsigned maxDepth = 64;

// ---- Reports ----

bool JsonReader::fail(StringRef why) {
  if (isOpen)
    diags.report<diag::ImportNotJson>(range(StringRef(at, at != end)), why);
  isOpen = false;
  return false;
}

void JsonReader::wrong(StringRef what, StringRef form) {
  if (isOpen && !diags.saturated())
    shape(diags, lastPlace(), what, form);
  isOpen &= !diags.saturated();
}

void JsonReader::tooMany(uint64_t limit, StringRef what) {
  diags.report<diag::ImportTooMany>(lastPlace(), limit, what);
  stop();
}

void JsonReader::expectEnd() {
  if (peek() != 0 || (isOpen && at != end))
    fail("unexpected text after the last `}`");
}

// ---- Values ----

char JsonReader::peek() {
  while (at != end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
    ++at;
  return isOpen && at != end ? *at : 0;
}

bool JsonReader::accept(char c) {
  bool found = peek() == c;
  at += found;
  return found;
}

/// What stands from a bracket to the other, `close`.
void JsonReader::items(char close, function_ref<void()> item) {
  const char *from = at++;
  if (++depth > maxDepth) {
    fail("it has more than 64 levels of nesting");
    return;
  }
  if (!accept(close)) {
    do
      item();
    while (accept(','));
    expect(close, close == ']' ? "expected `,` or `]`" : "expected `,` or `}`");
  }
  --depth;
  if (isOpen)
    lastToken = StringRef(from, at - from);
}

bool JsonReader::array(function_ref<void()> visit) {
  bool isArray = peek() == '[';
  if (isArray)
    items(']', visit);
  else
    skip();
  return isArray;
}

bool JsonReader::object(function_ref<void(StringRef)> visit) {
  bool isObject = peek() == '{';
  if (!isObject)
    skip();
  else
    items('}', [&] {
      if (peek() != '"')
        return void(fail("expected a key in double quotes"));
      auto key = string();
      if (key && expect(':', "expected `:`"))
        visit(*key);
    });
  return isObject;
}

std::optional<int64_t> JsonReader::integer() {
  char first = peek();
  if (first != '-' && !llvm::isDigit(first)) {
    skip();
    return std::nullopt;
  }
  bool isInteger = false;
  if (!takeNumber(isInteger) || !isInteger)
    return std::nullopt;
  int64_t value;
  auto [after, error] =
      std::from_chars(lastToken.begin(), lastToken.end(), value);
  if (error != std::errc())
    value = first == '-' ? INT64_MIN : INT64_MAX;
  return value;
}

std::optional<std::string> JsonReader::string() {
  if (peek() == '"')
    return takeString();
  skip();
  return std::nullopt;
}

std::optional<StringRef> JsonReader::scalar() {
  char first = peek();
  skip();
  if (!isOpen || first == '[' || first == '{')
    return std::nullopt;
  return lastToken;
}

void JsonReader::skip() {
  char first = peek();
  bool isInteger;
  if (first == '[')
    array([&] { skip(); });
  else if (first == '{')
    object([&](StringRef) { skip(); });
  else if (first == '"')
    takeString();
  else if (first == '-' || llvm::isDigit(first))
    takeNumber(isInteger);
  else
    takeWord();
}

/// Moves after the string that begins here; false when it has no end.
bool JsonReader::passString() {
  while (++at != end && *at != '"')
    if (*at == '\\' && at + 1 != end)
      ++at;
  return at != end && ++at;
}

StringRef JsonReader::rawValue() {
  constexpr StringRef behindScalars = ",]} \n\r\t";
  char first = peek();
  const char *from = at;
  size_t open = 0;
  if (first != '[' && first != '{' && first != '"')
    while (at != end && !behindScalars.contains(*at))
      ++at;
  else
    do {
      if (*at == '"') {
        open += !passString(); // Nothing closes that.
        continue;
      }
      open += *at == '[' || *at == '{';
      open -= *at == ']' || *at == '}';
      ++at;
    } while (open != 0 && at != end);
  if (at != from && open == 0)
    return StringRef(from, at - from);
  at = from;
  skip();
  return "";
}

std::optional<std::string> JsonReader::takeString() {
  const char *from = at;
  if (!passString()) {
    fail("a string has no end");
    return std::nullopt;
  }
  lastToken = StringRef(from, at - from);
  StringRef inner = lastToken.drop_front().drop_back();
  if (llvm::all_of(inner, llvm::isPrint) && !inner.contains('\\'))
    return inner.str();
  StringRef why =
      "a string is not UTF-8, or has an escape that JSON does not know";
  if (auto value = llvm::json::parse(lastToken); !value)
    llvm::consumeError(value.takeError());
  else if (auto string = value->getAsString(); string->contains('\0'))
    why = "a string holds the character NUL"; // A name of C++ ends there.
  else
    return string->str();
  at = from;
  fail(why);
  return std::nullopt;
}

bool JsonReader::takeNumber(bool &isInteger) {
  const char *from = at;
  auto take = [&](char one) {
    bool found = at != end && *at == one;
    at += found;
    return found;
  };
  auto digits = [&] {
    const char *first = at;
    while (at != end && llvm::isDigit(*at))
      ++at;
    return at != first;
  };
  take('-');
  bool isGood = take('0') ? !(at != end && llvm::isDigit(*at)) : digits();
  isInteger = true;
  if (isGood && take('.')) {
    isInteger = false;
    isGood = digits();
  }
  if (isGood && (take('e') || take('E'))) {
    isInteger = false;
    if (!take('+'))
      take('-');
    isGood = digits();
  }
  if (!isGood) {
    at = from;
    return fail("expected a number");
  }
  lastToken = StringRef(from, at - from);
  return true;
}

void JsonReader::takeWord() {
  for (StringRef word : {"true", "false", "null"})
    if (isOpen && StringRef(at, end - at).starts_with(word)) {
      lastToken = StringRef(at, word.size());
      at += word.size();
      return;
    }
  fail(at == end ? "the text ends here" : "expected a value");
}

// ---- Values of a form ----

int64_t JsonReader::number(StringRef what, int64_t min, int64_t max) {
  auto value = integer();
  if (value && *value >= min && *value <= max)
    return *value;
  wrong(what, max < min ? std::string("absent: there is nothing for it to name")
                        : fmt::format("an integer from {} to {}", min, max));
  return min;
}

std::string JsonReader::string(StringRef what) {
  auto value = string();
  if (!value)
    wrong(what, "a string");
  return value.value_or("");
}

bool JsonReader::boolean(StringRef what, bool otherwise) {
  auto word = scalar();
  if (word == "true" || word == "false")
    return word == "true";
  wrong(what, "true or false");
  return otherwise;
}

bool JsonReader::takeNumbers(MutableArrayRef<int64_t> values) {
  constexpr ptrdiff_t maxDigits = 10; // No number overflows.
  char before = '[';
  const char *next = peek() ? at : end;
  auto take = [&](char c) {
    bool found = next != end && *next == c;
    next += found;
    return found;
  };
  for (int64_t &value : values) {
    if (!take(std::exchange(before, ',')))
      return false;
    take(' ');
    bool isNegative = take('-');
    const char *digits = next;
    int64_t number = 0;
    while (next != end && llvm::isDigit(*next) && next - digits != maxDigits)
      number = number * 10 + (*next++ - '0');
    if (next == digits || (*digits == '0' && next - digits != 1))
      return false;
    value = isNegative ? -number : number;
  }
  if (!take(']'))
    return false;
  lastToken = StringRef(at, next - at);
  at = next;
  return true;
}

std::optional<std::vector<int64_t>> JsonReader::integers() {
  std::vector<int64_t> values;
  bool areIntegers = true;
  bool isList = array([&] {
    auto value = integer();
    areIntegers &= value.has_value();
    values.push_back(value.value_or(0));
  });
  return isList && areIntegers ? std::optional(std::move(values))
                               : std::nullopt;
}

bool JsonReader::hasKey(StringRef key) {
  JsonReader ahead = *this;
  bool found = false;
  ahead.object([&](StringRef name) {
    found |= name == key;
    found ? ahead.stop() : void(ahead.rawValue());
  });
  if (!found && !ahead.isOpen)
    stop(); // It has been reported.
  return found;
}

bool JsonReader::object(StringRef what, ArrayRef<JsonField> fields,
                        StringRef instead) {
  SmallVector<StringRef> values(fields.size());
  bool isObject = object(what, [&](StringRef name) {
    if (name == instead && !instead.empty())
      return stop();
    auto *field = findBy(fields, name, &JsonField::name);
    StringRef *value = field ? &values[field - fields.begin()] : nullptr;
    if (value && value->empty()) {
      *value = rawValue();
      return;
    }
    if (value)
      diags.report<diag::ImportJsonTwice>(lastPlace(), name);
    skip();
  });
  if (!isObject || !isOpen || diags.saturated())
    return false;
  std::vector<std::string> missing;
  for (auto [field, value] : llvm::zip(fields, values))
    if (!field.isOptional && value.empty())
      missing.push_back(fmt::format("`{}`", field.name));
  if (!missing.empty())
    return diags.report<diag::ImportJsonMissing>(lastPlace(), what,
                                                 llvm::join(missing, ", "));
  for (auto [field, value] : llvm::zip(fields, values))
    within(value, field.read);
  return true;
}

void JsonReader::within(StringRef value, function_ref<void()> read) {
  if (value.empty() || !isOpen)
    return;
  auto after = std::tuple(at, end, lastToken);
  std::tie(at, end) = std::pair(value.begin(), value.end());
  ++depth;
  read();
  if (peek(); at != end)
    fail("expected `,` or `}`");
  --depth;
  std::tie(at, end, lastToken) = after;
}
