// The open texts, and the parameters of requests about them.
#pragma once

#include "Analysis.h"

namespace ppcc::lsp {

/// A text that is open.
struct Document {
  std::string uri, path;
  TextPtr text;
  int64_t version = 0;
  std::unique_ptr<Analysis> analysis; ///< Made when it is asked for.
  /// What its last compilation gave: of which version, and values by the bytes
  /// where names are declared.
  int64_t compiledVersion = -1;
  llvm::json::Object values;
  int64_t chunks = 0;
  llvm::json::Array published;
  bool isSaved = false; ///< To be compiled as the command line does.
};

/// The part of a message that is an object; an empty one for none.
const llvm::json::Object &objectIn(const llvm::json::Object &message,
                                   StringRef key);

struct DocumentParams {
  DocumentParams(Document &document, const llvm::json::Object &)
      : document(document) {}
  Document &document;
};
struct PositionParams : DocumentParams {
  PositionParams(Document &document, const llvm::json::Object &params)
      : DocumentParams(document, params),
        offset(document.text->offset(params.getObject("position"))) {}
  size_t offset;
};
struct RenameParams : PositionParams {
  RenameParams(Document &document, const llvm::json::Object &params)
      : PositionParams(document, params),
        newName(params.getString("newName").value_or("")) {}
  std::string newName;
};
struct RangeParams : DocumentParams {
  RangeParams(Document &document, const llvm::json::Object &params)
      : DocumentParams(document, params),
        begin(document.text->offset(
            objectIn(params, "range").getObject("start"))),
        end(document.text->offset(objectIn(params, "range").getObject("end"))) {
  }
  size_t begin, end;
};

} // namespace ppcc::lsp
