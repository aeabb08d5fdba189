// Reads the JSON that docs/program-format.md describes.
#include "JsonHead.h"
#include "JsonRows.h"

using namespace ppcc;

namespace {

class ProgramReader : JsonHead {
public:
  explicit ProgramReader(ImportContext &context)
      : JsonHead(context), rows(json, context.options.maxActions, program) {}

  /// Nothing, too, where the file is `forAll` values of a parameter.
  std::optional<Program> read(bool &isFamily) {
    enum { Always, Needed, Optional };
    isFamily = !json.object("the program",
                            {
#define HEAD(Item, Json, Need, Of) HEAD_ROWS(Item, Json, Need)
#define HEAD_JSON(Item, Json, Need, Of) HEAD_ROWS(Item, Json, Need)
#define HEAD_ROWS(Item, Json, Need)                                            \
  {Json, [&] { read##Item(Json); }, Need == Optional},
#define HEAD_DERIVED(Item, Json) {Json, [&] { keepDerived(Json); }, true},
#include "ppcc/IR/Head.def"
                            },
                            "families");
    json.expectEnd();
    isFamily &= json.isGood();
    if (isFamily || !json.isGood())
      return std::nullopt;
    program.setFacts({{}, std::move(preconnect)});
    return std::move(program);
  }

private:
  void readColumns(StringRef) { rows.readColumns(); }
  void readActions(StringRef) {
    if (isGood())
      rows.readActions(kinds.numbers());
  }
  void readLoops(StringRef) {
    if (isGood())
      rows.readLoops();
  }
  void keepDerived(StringRef key) {
    json.skip();
    context.derived.emplace_back(key, json.last());
  }

  JsonRows rows;
};

} // namespace

bool ppcc::beginsJson(StringRef text) { return text.starts_with("{"); }

std::optional<Program> ppcc::importJson(ImportContext &context) {
  bool isFamily = false;
  auto program = ProgramReader(context).read(isFamily);
  return isFamily ? importFamilies(context) : program;
}
