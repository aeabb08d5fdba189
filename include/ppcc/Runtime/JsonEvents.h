// Takes apart program.json while it is parsed. Needs nlohmann-json.
#pragma once

#include "ppcc/Runtime/Error.h"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace ppcc::rt::detail {

template <class... Parts> [[noreturn]] void refuseJson(const Parts &...parts) {
  throw Error(concat("program.json: ", parts...));
}
template <class... Parts> void requireJson(bool good, const Parts &...parts) {
  if (!good)
    refuseJson(parts...);
}
[[noreturn]] inline void refuseType(const std::string &section) {
  refuseJson("the value of `", section, "` is of another form");
}

/// A row has so many numbers at most.
inline constexpr size_t maxNumbers = 64;

/// Takes values of JSON for what they must be.
class JsonValues {
public:
  using json = nlohmann::json;

protected:
  static uint32_t checkedRange(int64_t value, uint32_t limit,
                               const char *what) {
    requireJson(value >= 0 && value <= int64_t(limit), what, ": ", value,
                " is not in 0..", limit);
    return static_cast<uint32_t>(value);
  }
  uint32_t checkedRange(const json &value, uint32_t limit,
                        const char *what) const {
    return checkedRange(integer(value), limit, what);
  }
  static uint16_t stage(int64_t value, const char *what) {
    return static_cast<uint16_t>(checkedRange(value, Row::noPeer - 1, what));
  }
  int64_t integer(const json &value) const {
    if (!value.is_number_integer())
      refuseType(section);
    return value.get<int64_t>();
  }
  const std::string &string(const json &value) const {
    if (!value.is_string())
      refuseType(section);
    return value.get_ref<const std::string &>();
  }
  const json &items(const json &value) const {
    if (!value.is_array())
      refuseType(section);
    return value;
  }
  /// The numbers of a list of `least` to `most`; `message` else.
  std::vector<int64_t> numbers(const json &value, size_t minCount,
                               size_t maxCount, const char *message) const {
    std::vector<int64_t> result;
    for (const json &number : items(value))
      result.push_back(integer(number));
    requireJson(result.size() >= minCount && result.size() <= maxCount,
                message);
    return result;
  }
  /// The value of a key of an object; null when there is none.
  const json *find(const json &object, const char *key) const {
    if (!object.is_object())
      refuseType(section);
    auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
  }

  std::string section; ///< The key that is being read.
};

/// The events of the parser. Of the file one value at a time is there: that of
/// a key at the top, or one row of `actions`.
///
/// `reader.begins(key)` says whether the value of a key at the top is wanted,
/// and `take(key, value)` then gets it; for `actions` it is `beginActions()`,
/// and then `beginRank()` and `addRow(numbers)` for each.
template <class Reader> class JsonEvents {
public:
  using json = nlohmann::json;
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;

  explicit JsonEvents(Reader &reader) : reader(reader) {}

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_float(number_float_t value, const string_t &) {
    return put(value);
  }
  bool binary(binary_t &) { return put(nullptr); }
  bool string(string_t &value) { return put(std::move(value)); }
  bool number_unsigned(number_unsigned_t value) {
    if (!skips && value > uint64_t(INT64_MAX))
      refuseJson("a number is too large");
    return number_integer(static_cast<int64_t>(value));
  }
  bool number_integer(number_integer_t value) {
    if (skips || !inActions || depth != rowDepth)
      return put(value);
    if (row.size() == maxNumbers)
      refuseJson("a list of `actions` is too long");
    row.push_back(value);
    return true;
  }

  bool start_object(size_t) {
    if (depth++ == 0)
      return true;
    return open(json::object());
  }
  bool start_array(size_t) {
    requireJson(depth++ != 0, "it is not an object");
    if (!inActions || skips || depth > rowDepth)
      return open(json::array());
    if (depth == 2)
      reader.beginActions();
    else if (depth == 3)
      reader.beginRank();
    row.clear();
    return true;
  }
  bool key(string_t &name) {
    if (depth == 1) {
      section = name;
      inActions = name == "actions";
      skips = !reader.beginKey(name);
    } else if (!skips) {
      requireJson(!values.back().value.contains(name), "there are two keys `",
                  name, "` in `", section, "`");
      values.back().key = name;
    }
    return true;
  }
  bool end_object() { return --depth == 0 || close(); }
  bool end_array() {
    bool isRow = depth == rowDepth;
    --depth;
    if (!inActions || skips)
      return close();
    if (isRow)
      reader.addRow(row);
    return true;
  }

  bool parse_error(size_t position, const std::string &,
                   const nlohmann::detail::exception &error) {
    throw Error(concat("program.json, byte ", position, ": ", error.what()));
  }

private:
  static constexpr size_t maxDepth = 64, rowDepth = 4;

  /// A value that is not complete, and the key that comes next in it.
  struct Open {
    json value;
    std::string key;
  };

  bool open(json value) {
    requireJson(depth <= maxDepth, "it is nested too deeply");
    if (skips)
      return true;
    if (inActions)
      refuseType(section);
    values.push_back({std::move(value), {}});
    return true;
  }
  bool close() {
    if (skips)
      return true;
    json value = std::move(values.back().value);
    values.pop_back();
    return put(std::move(value));
  }
  bool put(json value) {
    if (skips)
      return true;
    if (inActions || depth == 0)
      refuseType(section);
    if (values.empty())
      reader.onValue(section, value);
    else if (Open &outer = values.back(); outer.value.is_array())
      outer.value.push_back(std::move(value));
    else
      outer.value[outer.key] = std::move(value);
    return true;
  }

  Reader &reader;
  std::string section; ///< The key at the top.
  bool inActions = false, skips = false;
  size_t depth = 0;
  std::vector<Open> values; ///< From the outermost in.
  std::vector<int64_t> row;
};

} // namespace ppcc::rt::detail
