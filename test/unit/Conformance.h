// The cases of test/conformance.
#pragma once

#include "Rows.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

namespace ppcc {

/// The rows that a case holds under a key.
inline CellRows rowsOf(const llvm::json::Object &conformanceCase,
                       llvm::StringRef key) {
  CellRows rows;
  for (const llvm::json::Value &row : *conformanceCase.getArray(key))
    rows.push_back(row.getAsString()->str());
  return rows;
}

/// Calls `visit` for each case of a conformance file.
template <class Visit> void forEachCase(llvm::StringRef name, Visit visit) {
  auto path = (PPCC_SOURCE_ROOT "/test/conformance/" + name).str();
  auto text = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(bool(text)) << path;
  for (llvm::StringRef line : llvm::split((*text)->getBuffer(), '\n')) {
    if (line.empty())
      continue;
    auto value = llvm::json::parse(line);
    ASSERT_TRUE(bool(value));
    const llvm::json::Object &object = *value->getAsObject();
    SCOPED_TRACE(object.getString("id")->str());
    visit(object);
  }
}

} // namespace ppcc
