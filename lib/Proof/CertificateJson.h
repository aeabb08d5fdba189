// What readers of certificates share: is there what should be?
#pragma once

#include "ppcc/Support/JsonDepth.h"

#include "llvm/Support/JSON.h"

namespace ppcc::proof {
namespace json = llvm::json;

/// Why a file is no certificate.
struct InvalidCertificate {
  std::string why;
};
[[noreturn]] inline void refuse(std::string why) {
  throw InvalidCertificate{std::move(why)};
}

/// No model has more of anything.
constexpr int64_t maxItems = 0xFFFE;

template <class Found> Found require(Found found, StringRef key) {
  if (!found)
    refuse(fmt::format("`{}` is missing, or something else", key));
  return found;
}
inline std::string string(const json::Object &from, StringRef key) {
  return require(from.getString(key), key)->str();
}
inline int64_t integer(const json::Object &from, StringRef key, int64_t min,
                       int64_t max) {
  int64_t value = *require(from.getInteger(key), key);
  if (value < min || value > max)
    refuse(fmt::format("`{}` is out of range", key));
  return value;
}
inline const json::Array &array(const json::Object &from, StringRef key,
                                size_t max = maxItems) {
  const json::Array &items = *require(from.getArray(key), key);
  if (items.size() > max)
    refuse(fmt::format("`{}` has too many items", key));
  return items;
}
inline const json::Object &object(const json::Object &from, StringRef key) {
  return *require(from.getObject(key), key);
}
inline bool isNull(const json::Object &from, StringRef key) {
  return require(from.get(key), key)->kind() == json::Value::Null;
}
inline void checkKeys(const json::Object &from, ArrayRef<StringRef> keys) {
  for (const auto &[key, value] : from)
    if (!llvm::is_contained(keys, StringRef(key)))
      refuse(fmt::format("`{}` is not a key", StringRef(key)));
}

/// The object of a file of this format.
inline json::Value parse(StringRef text, StringRef format) {
  if (isJsonDeeper(text, 64))
    refuse("it has more than 64 levels of nesting");
  auto value = json::parse(text);
  if (!value)
    refuse(llvm::toString(value.takeError()));
  if (string(*require(value->getAsObject(), "format"), "format") != format)
    refuse(fmt::format("it is not a {}", format));
  return std::move(*value);
}

} // namespace ppcc::proof
