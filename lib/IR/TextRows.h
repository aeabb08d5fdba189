// Reads the actions of a program from text.
#pragma once

#include "TextCursor.h"
#include "ppcc/IR/HeadChecks.h"

#include "llvm/ADT/DenseMap.h"

#include <array>

namespace ppcc {

/// Reads what stands behind the head, into a program whose head is complete.
class TextRows {
public:
  /// `text` is behind the head of a program that stands in a file called
  /// `fileName`.
  TextRows(TextCursor text, llvm::StringRef fileName, Program &program,
           DiagnosticEngine &diags);

  /// Reads all ranks. O(bytes).
  void read();

private:
  static constexpr uint16_t noKind = 0xFFFF;

  void rank();
  /// Begins the list of the rank and of those that were left out before it;
  /// false, and a report, when it cannot be.
  bool beginRank(uint32_t rank, SourceRange at);
  void row();
  void phase();
  void loop();
  bool loopHead(Loop &loop, bool &good, SourceRange at);
  void loopBody();
  void endLoop(Loop loop, SourceRange at);
  void group();

  bool beginsRankCell() const;
  bool cell(bool joined);
  bool cellParts(Action &action);
  bool place(Action &action, KindId kind, uint32_t stage, uint32_t microbatch,
             std::optional<uint32_t> peer, llvm::StringRef cell);
  bool placePeer(Action &action, const Pipe &pipe, std::optional<uint32_t> peer,
                 llvm::StringRef cell);
  bool placeWhole(Action &action, uint32_t stage, SourceRange at);
  bool setSite(Action &action, uint32_t site, const char *from);
  void skipCell();
  bool skippedCell();
  bool atCellEnd() const;
  std::optional<KindId> kindOf(llvm::StringRef letters) const;
  bool noAction(const char *from, llvm::StringRef unknownLetters = {});

  TextCursor text;
  Program &program;
  DiagnosticEngine &diags;
  OwnSites ownSites;
  std::array<uint16_t, 256> kindOfLetter;
  PhaseId nowPhase;
  /// By kind and stage: the rank's cells without a microbatch.
  llvm::DenseMap<std::pair<uint32_t, uint32_t>, uint32_t> wholeCells;
  uint32_t lastPipe = 0;
  bool appending = false; ///< The rank exists, so that its actions count.
  std::optional<Loop> inLoop;
  uint64_t extraRows = 0; ///< That loops add when they are written out.
};

} // namespace ppcc
