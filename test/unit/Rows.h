// Programs from rows of cells, one string a rank, and back.
#pragma once

#include "ppcc/Emit/Emitter.h"
#include "ppcc/IR/Program.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

#include <gtest/gtest.h>

#include <map>

namespace ppcc {

/// The cells of one rank, with blanks between them.
using CellRows = std::vector<std::string>;

/// A program of one pipe whose stages are on the ranks that run them. Cells as
/// `--emit=actions` prints them.
inline Program programFromRows(const CellRows &rows) {
  Program program;
  program.editHead().numRanks = rows.size();
  std::map<uint32_t, RankId> rankOfStage;
  uint32_t microbatches = 0;
  for (uint32_t rank = 0; rank != rows.size(); ++rank) {
    program.editRows().beginRank();
    for (llvm::StringRef item : llvm::split(rows[rank], ' ')) {
      if (item.empty())
        continue;
      llvm::StringRef members =
          item.consume_front("(")
              ? item.take_until([](char c) { return c == ')'; })
              : item;
      bool joined = false;
      for (llvm::StringRef cell : llvm::split(members, ';')) {
        Action action;
        bool bad = cell.consumeInteger(10, action.stage.value);
        llvm::StringRef mnemonic =
            cell.take_while([](char c) { return !llvm::isDigit(c); });
        bad |= cell.drop_front(mnemonic.size())
                   .getAsInteger(10, action.microbatch);
        if (bad || !program.kinds().find(mnemonic)) {
          ADD_FAILURE() << "no cell: " << item.str();
          continue;
        }
        action.kind = *program.kinds().find(mnemonic);
        action.joined = std::exchange(joined, true);
        program.editRows().append(action);
        rankOfStage[action.stage.value] = RankId(rank);
        microbatches = std::max(microbatches, action.microbatch + 1);
      }
    }
  }
  Pipe pipe;
  pipe.name = "main";
  pipe.numMicrobatches = microbatches;
  for (auto [stage, rank] : rankOfStage)
    pipe.rankOfStage.push_back(rank);
  program.editHead().pipes.push_back(std::move(pipe));
  return program;
}

/// What an emitter writes, and the diagnostics that it reports, one a line,
/// after it.
inline std::string emitted(llvm::StringRef format, const Program &program,
                           EmitOptions options = {}) {
  std::string text, errors;
  SourceManager sources(llvm::vfs::getRealFileSystem());
  DiagnosticEngine diags([&](const Diagnostic &diagnostic) {
    errors +=
        fmt::format("{}: {}\n", diagnostic.info().code, diagnostic.message);
  });
  EmitContext context{diags, sources, options};
  llvm::raw_string_ostream out(text);
  bool good = emitProgram(*findEmitter(format), program, out, context);
  EXPECT_EQ(good, errors.empty());
  return text + errors;
}

/// `--emit=actions` of the rows.
inline std::string actionsText(const CellRows &rows) {
  std::string text;
  for (size_t rank = 0; rank != rows.size(); ++rank)
    text += fmt::format("rank {}: {}\n", rank, rows[rank]);
  return text;
}

} // namespace ppcc
