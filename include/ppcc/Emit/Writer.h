// A buffer before a stream, for numbers and short texts by the million; JSON.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Support/Printable.h"

#include "llvm/Support/JSON.h"

#include <charconv>
#include <concepts>
#include <initializer_list>

namespace ppcc {

/// What stands between the members of an object, after their keys, and between
/// the items of their lists.
struct JsonStyle {
  StringRef between = ", ", colon = ": ", lists = ", ";
  /// With one, members and items stand on lines of their own: blanks before the
  /// members.
  uint32_t indent = 0;
};

class JsonFields;

class Writer {
public:
  /// Strings of JSON `inMarkup` cannot end the element that they stand in.
  explicit Writer(raw_ostream &out, bool inMarkup = false)
      : out(out), inMarkup(inMarkup),
        buffer(std::make_unique_for_overwrite<char[]>(capacity)),
        at(buffer.get()) {}
  ~Writer() { flush(); }
  Writer(const Writer &) = delete;
  Writer &operator=(const Writer &) = delete;

  void put(char c) {
    need(1);
    *at++ = c;
  }
  void put(StringRef text) {
    if (text.size() > capacity) {
      flush();
      out << text;
      return;
    }
    need(text.size());
    at = std::copy(text.begin(), text.end(), at);
  }
  template <std::integral Number> void put(Number value) {
    need(20);
    at = std::to_chars(at, at + 20, value).ptr;
  }
  template <class Tag> void put(Id<Tag> id) { put(id.value); }
  /// Texts, characters and numbers, one after another.
  template <class... Parts>
    requires(sizeof...(Parts) > 1)
  void put(const Parts &...parts) {
    (put(parts), ...);
  }

  // ---- JSON ----

  void json(StringRef text) {
    put('"');
    jsonPart(text);
    put('"');
  }
  /// What stands in a string.
  void jsonPart(StringRef text) {
    if (llvm::all_of(text, [](char c) {
          return c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '<';
        }))
      return put(text);
    std::string quoted;
    llvm::raw_string_ostream(quoted)
        << llvm::json::Value(llvm::json::fixUTF8(text));
    quoted = printableJson(quoted);
    for (char c : StringRef(quoted).drop_front().drop_back())
      if (c == '<' && inMarkup)
        put("\\u003c");
      else
        put(c);
  }
  void json(const std::string &text) { json(StringRef(text)); }
  void json(const char *text) { json(StringRef(text)); }
  void json(bool value) { put(value ? "true" : "false"); }
  template <class T> void json(const std::optional<T> &value) {
    value ? json(*value) : put("null");
  }
  template <std::integral Number> void json(Number value) { put(value); }
  template <class Tag> void json(Id<Tag> id) { put(id); }
  /// A list, the items of which `put` writes.
  template <class Range, class Put>
  void list(const Range &range, Put put, StringRef between = ",") {
    StringRef before = "[";
    for (const auto &item : range) {
      this->put(std::exchange(before, between));
      put(item);
    }
    this->put(before == "[" ? "[]" : "]");
  }
  /// The same on lines of their own, in a line that begins with so many blanks.
  template <class Range, class Put>
  void lines(const Range &range, Put put, uint32_t indent) {
    StringRef before = "[";
    for (const auto &item : range) {
      this->put(std::exchange(before, ","));
      newLine(indent + 1);
      put(item);
    }
    if (before == "[")
      return this->put("[]");
    newLine(indent);
    this->put(']');
  }
  void newLine(uint32_t indent) {
    put('\n');
    for (uint32_t i = 0; i != indent; ++i)
      put(' ');
  }
  void numbers(std::initializer_list<int64_t> row) {
    char before = '[';
    for (int64_t number : row) {
      put(std::exchange(before, ','), number);
    }
    put(']');
  }
  /// An object; `visit` gets what writes its members.
  template <class Visit>
  void object(Visit visit, JsonStyle style = {}, StringRef open = "{");

  /// The action as in `0F3`.
  void cell(const Program &program, const Action &action) {
    text.clear();
    appendCell(program, action, text);
    put(StringRef(text.data(), text.size()));
  }
  void cell(const Program &program, ActionId row) {
    cell(program, program[row]);
  }

private:
  static constexpr size_t capacity = size_t(1) << 16;

  void need(size_t bytes) {
    if (bytes > size_t(buffer.get() + capacity - at))
      flush();
  }
  void flush() {
    out.write(buffer.get(), at - buffer.get());
    at = buffer.get();
  }

  raw_ostream &out;
  bool inMarkup;
  std::unique_ptr<char[]> buffer;
  char *at;
  SmallVector<char, 32> text;
};

/// Writes the members of an object: a key, and after it its value.
class JsonFields {
public:
  JsonFields(Writer &writer, JsonStyle style) : writer(writer), style(style) {}

  void key(StringRef name) {
    bool isFirst = !std::exchange(begun, true);
    if (style.indent) {
      writer.put(isFirst ? "" : ",");
      writer.newLine(style.indent);
    } else if (!isFirst) {
      writer.put(style.between);
    }
    writer.json(name);
    writer.put(style.colon);
  }
  template <class Value> void operator()(StringRef name, Value &&value) {
    key(name);
    writer.json(std::forward<Value>(value));
  }
  /// Those that follow stand on lines of their own.
  void onLines() { style.between = ",\n"; }
  /// A value that is JSON already.
  void raw(StringRef name, StringRef json) {
    key(name);
    writer.put(json);
  }
  void numbers(StringRef name, std::initializer_list<int64_t> row) {
    key(name);
    writer.numbers(row);
  }
  /// An object like this one.
  template <class Visit> void object(StringRef name, Visit visit) {
    key(name);
    writer.object(visit, within(1));
  }
  /// A list, the items of which `put` writes.
  template <class Range, class Put>
  void list(StringRef name, const Range &range, Put put) {
    key(name);
    style.indent ? writer.lines(range, put, style.indent)
                 : writer.list(range, put, style.lists);
  }
  /// A list of texts and numbers.
  template <class Range> void values(StringRef name, const Range &range) {
    list(name, range, [&](const auto &item) { writer.json(item); });
  }
  /// A list of what is JSON already.
  template <class Range> void rawValues(StringRef name, const Range &range) {
    list(name, range, [&](const auto &item) { writer.put(StringRef(item)); });
  }
  /// A list of objects; `visit` gets what writes the members of one, and the
  /// item.
  template <class Range, class Visit>
  void objects(StringRef name, const Range &range, Visit visit) {
    list(name, range, [&](const auto &item) {
      writer.object([&](JsonFields &fields) { visit(fields, item); },
                    style.indent ? within(2) : JsonStyle{.lists = style.lists});
    });
  }

  /// Ends what stands on lines of its own.
  void end() {
    if (begun && style.indent)
      writer.newLine(style.indent - 1);
  }

private:
  /// For objects so many levels further in.
  JsonStyle within(uint32_t levels) const {
    JsonStyle inner = style;
    inner.indent += style.indent ? levels : 0;
    return inner;
  }

  Writer &writer;
  JsonStyle style;
  bool begun = false; ///< It has a member.
};

template <class Visit>
void Writer::object(Visit visit, JsonStyle style, StringRef open) {
  put(open);
  JsonFields fields(*this, style);
  visit(fields);
  fields.end();
  put('}');
}

/// JSON for people and for programs: members and items on lines of their own.
inline constexpr JsonStyle indentedJson{.indent = 1};

} // namespace ppcc
