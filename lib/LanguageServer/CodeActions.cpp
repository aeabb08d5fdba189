// The edits that diagnostics come with.
#include "Server.h"

using namespace ppcc;
using namespace ppcc::lsp;
namespace json = llvm::json;

json::Value Server::codeActions(const RangeParams &asked) {
  const Document &document = asked.document;
  const Text &text = *document.text;
  json::Array actions;
  for (const json::Value &one : document.published) {
    const json::Object &diagnostic = *one.getAsObject();
    const json::Object &range = *diagnostic.getObject("range");
    const json::Array *fixes = diagnostic.getArray("data");
    if (!fixes || text.offset(range.getObject("start")) > asked.end ||
        text.offset(range.getObject("end")) < asked.begin)
      continue;
    for (const json::Value &fix : *fixes) {
      const json::Object &change = *fix.getAsObject();
      json::Array edits{
          edit(*change.getObject("range"), change.getString("newText")->str())};
      actions.push_back(json::Object{
          {"title", *change.get("title")},
          {"kind", "quickfix"},
          {"diagnostics", json::Array{one}},
          {"isPreferred", fixes->size() == 1},
          {"edit",
           json::Object{
               {"changes", json::Object{{document.uri, std::move(edits)}}}}}});
    }
  }
  return actions;
}
