// Writes the parameters of a program as JSON.
#include "JsonParts.h"

using namespace ppcc;

/// The text is a number as JSON writes it: `-12`, `0.5`, `1e9`.
static bool isJsonNumber(StringRef text) {
  auto digits = [&] {
    size_t before = text.size();
    text = text.drop_while(llvm::isDigit);
    return text.size() != before;
  };
  text.consume_front("-");
  if (!text.consume_front("0") && !digits())
    return false;
  if (text.consume_front(".") && !digits())
    return false;
  if (text.consume_front_insensitive("e")) {
    if (!text.consume_front("-"))
      text.consume_front("+");
    if (!digits())
      return false;
  }
  return text.empty();
}

bool ppcc::isJsonLiteral(const ProgramParam &param) {
  if (param.type == "bool")
    return param.value == "true" || param.value == "false";
  return (param.type == "int" || param.type == "float") &&
         isJsonNumber(param.value);
}

void ppcc::putParams(JsonFields &fields, const Program &program) {
  for (const ProgramParam &param : program.params())
    if (isJsonLiteral(param))
      fields.raw(param.name, param.value);
    else
      fields(param.name, param.value);
}
