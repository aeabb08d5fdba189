// Reads the actions of a program from text.
#include "TextRows.h"

#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;
using llvm::StringRef;

TextRows::TextRows(TextCursor cursor, StringRef fileName, Program &program,
                   DiagnosticEngine &diags)
    : text(cursor), program(program), diags(diags),
      ownSites(program, fileName) {
  kindOfLetter.fill(noKind);
  for (auto [i, info] : llvm::enumerate(program.kinds().rows()))
    if (info.letters.size() == 1)
      kindOfLetter[static_cast<unsigned char>(info.letters[0])] =
          static_cast<uint16_t>(i);
}

// ---- Ranks ----

void TextRows::read() {
  // A cell takes three bytes and a space at least; four is near enough to the
  // usual.
  program.editRows().reserve(
      std::min<size_t>(text.bytesLeft() / 4, UINT32_MAX));
  while (!diags.saturated() && !text.atEnd())
    rank();
  while (program.ranksBegun() < program.numRanks())
    program.editRows().beginRank();
}

void TextRows::rank() {
  SourceRange at = text.range(text.peekWord());
  if (!text.expectWord("rank"))
    return text.skipPastBrace();
  auto number = text.number("a rank", Program::maxRanks - 1);
  // The actions of a rank that cannot be are read for their errors.
  appending = number && beginRank(*number, at);
  wholeCells.clear();
  if (!text.expect("{"))
    return text.skipPastBrace();
  nowPhase = PhaseId();
  while (!diags.saturated()) {
    if (text.accept("}"))
      return;
    if (text.atEnd() || text.peekWord() == "rank") {
      text.expected("`}`, the end of `rank`");
      return;
    }
    row();
  }
}

bool TextRows::beginRank(uint32_t rank, SourceRange at) {
  if (rank >= program.numRanks()) {
    diags.report<diag::IrNoRank>(at, rank, program.numRanks());
    return false;
  }
  if (rank < program.ranksBegun()) {
    diags.report<diag::IrOutOfOrder>(
        at, "rank", rank,
        fmt::format("one above {}", program.ranksBegun() - 1));
    return false;
  }
  while (program.ranksBegun() <= rank)
    program.editRows().beginRank();
  return true;
}

// ---- Rows ----

void TextRows::row() {
  if (text.isDigitNext()) {
    cell(/*joined=*/false);
  } else if (text.acceptNext('(')) {
    group();
  } else if (text.acceptWord("phase")) {
    phase();
  } else if (text.acceptWord("loop")) {
    loop();
  } else if (beginsRankCell()) {
    cell(/*joined=*/false);
  } else {
    const char *from = text.place();
    skipCell();
    if (text.place() == from)
      text.takeOne();
    diags.report<diag::IrExpected>(text.rangeFrom(from),
                                   "an action, such as `0F3`, `phase` or "
                                   "`loop`");
  }
}

void TextRows::phase() {
  auto name = text.string("the name of a phase");
  if (!name)
    return;
  auto found = llvm::find(program.phases(), *name);
  if (found == program.phases().end() &&
      program.phases().size() > Program::maxPhases) {
    diags.report<diag::IrTooMany>(text.here(), Program::maxPhases, "phases");
    return;
  }
  nowPhase = program.editHead().phase(*name);
}

/// Behind the bracket.
void TextRows::group() {
  bool joined = false;
  do {
    text.skipSpace();
    if (text.isDigitNext() || beginsRankCell()) {
      joined |= cell(joined);
    } else {
      text.expected("an action, such as `0F3`");
      skipCell();
    }
  } while (!diags.saturated() && text.accept(";"));
  text.expect(")");
}

// ---- Loops ----

void TextRows::loop() {
  SourceRange at = text.here();
  Loop loop;
  bool good = true;
  if (!loopHead(loop, good, at))
    return text.skipPastBrace();
  if (good)
    inLoop = loop;
  loopBody();
  if (good)
    endLoop(loop, at);
}

/// `4 advance 1 {`; false when the rest cannot be read, and `good` false when
/// it is read for its errors.
bool TextRows::loopHead(Loop &loop, bool &good, SourceRange at) {
  auto count = text.number("how often it turns", UINT32_MAX - 1);
  good = count && *count != 0;
  if (count && *count == 0)
    diags.report<diag::IrExpected>(at, "a number of turns, at least 1");
  if (!count || !text.expectWord("advance"))
    return false;
  text.skipSpace();
  bool down = text.acceptNext('-');
  auto advance = text.number("what a turn adds to microbatches", INT32_MAX);
  if (!advance || !text.expect("{"))
    return false;
  if (inLoop)
    diags.report<diag::IrExpected>(at, "no loop inside of another");
  good &= !inLoop;
  loop.count = good ? *count : 1;
  loop.advance = static_cast<int32_t>(down ? -int64_t(*advance) : *advance);
  loop.begin = ActionId(program.size());
  return true;
}

void TextRows::loopBody() {
  while (!diags.saturated() && !text.accept("}")) {
    if (text.atEnd() || text.peekWord() == "rank") {
      text.expected("`}`, the end of `loop`");
      return;
    }
    row();
  }
}

void TextRows::endLoop(Loop loop, SourceRange at) {
  inLoop.reset();
  loop.end = ActionId(program.size());
  if (loop.begin == loop.end || !appending)
    return;
  uint64_t rows =
      uint64_t(loop.count - 1) * (loop.end.value - loop.begin.value);
  if (extraRows + rows + program.size() >= UINT32_MAX) {
    diags.report<diag::IrTooMany>(at, UINT32_MAX - 1, "actions");
    return;
  }
  extraRows += rows;
  program.editRows().loops.push_back(loop);
}

// ---- Cells ----

/// Whether an action of the rank stands here, which has no number in front.
bool TextRows::beginsRankCell() const {
  auto kind = program.kinds().find(text.nextWhile(TextCursor::isKindChar));
  return kind && program.kinds()[*kind].scope == KindScope::Rank;
}

/// False, and a report, when it is wrong.
bool TextRows::cell(bool joined) {
  const char *from = text.place();
  Action action;
  action.joined = joined;
  action.phase = nowPhase;
  if (!cellParts(action))
    return false;
  if (action.site == SiteId() && appending)
    action.site = ownSites.add(text.lineNumber(), text.columnOf(from));
  if (program.size() == UINT32_MAX - 1) {
    diags.report<diag::IrTooMany>(text.rangeFrom(from), UINT32_MAX - 1,
                                  "actions");
    text.stop();
    return false;
  }
  if (appending)
    program.editRows().append(action);
  return true;
}

bool TextRows::cellParts(Action &action) {
  const char *from = text.place();
  bool hasStage = text.isDigitNext();
  auto stage = hasStage ? text.digits("a stage", UINT32_MAX - 1) : 0;
  StringRef letters = text.takeWhile(TextCursor::isKindChar);
  std::optional<KindId> kind = kindOf(letters);
  if (!stage)
    return skippedCell();
  bool hasMicrobatch = text.isDigitNext();
  KindScope scope = kind ? program.kinds()[*kind].scope : KindScope::Microbatch;
  if (!kind || hasMicrobatch != (scope == KindScope::Microbatch) ||
      hasStage == (scope == KindScope::Rank))
    return noAction(from, kind ? StringRef() : letters);
  auto microbatch = hasMicrobatch
                        ? text.digits("a microbatch", Program::maxMicrobatches)
                        : std::optional(Action::noMicrobatch);
  if (!microbatch)
    return skippedCell();
  std::optional<uint32_t> peer, site;
  const KindInfo &info = program.kinds()[*kind];
  if (!info.isCompute() && text.acceptNext(info.isSend() ? '>' : '<') &&
      !(peer = text.digits("a stage", UINT32_MAX - 1)))
    return skippedCell();
  StringRef withoutSite = text.textFrom(from);
  if (text.acceptNext('@') && !(site = text.digits("a site", UINT32_MAX - 1)))
    return skippedCell();
  if (!atCellEnd())
    return noAction(from);
  return place(action, *kind, *stage, *microbatch, peer, withoutSite) &&
         (!site || setSite(action, *site, from));
}

/// Moves to where the next cell may begin.
void TextRows::skipCell() {
  text.takeWhile([](char c) {
    return !TextCursor::isSpace(c) && !StringRef("();{}").contains(c);
  });
}

/// Leaves a cell whose number was reported.
bool TextRows::skippedCell() {
  skipCell();
  return false;
}

bool TextRows::atCellEnd() const {
  return !text.isNext([](char c) {
    return !TextCursor::isSpace(c) && c != '/' &&
           !StringRef("();{}").contains(c);
  });
}

std::optional<KindId> TextRows::kindOf(StringRef letters) const {
  if (letters.size() != 1)
    return program.kinds().find(letters);
  uint16_t kind = kindOfLetter[static_cast<unsigned char>(letters[0])];
  return kind == noKind ? std::nullopt : std::optional(KindId(kind));
}

/// Reports the cell at `from`.
bool TextRows::noAction(const char *from, StringRef unknownLetters) {
  skipCell();
  llvm::SmallVector<StringRef> letters;
  for (const KindInfo &info : program.kinds().rows())
    letters.push_back(info.letters);
  std::string hint =
      unknownLetters.size() < 2 ? "" : didYouMean(unknownLetters, letters);
  diags.report<diag::IrNotAnAction>(text.rangeFrom(from),
                                    text.textFrom(from).take_front(40), hint);
  return false;
}

/// Fills in the action; reports a stage, microbatch or peer that does not
/// exist.
bool TextRows::place(Action &action, KindId kind, uint32_t stage,
                     uint32_t microbatch, std::optional<uint32_t> peer,
                     StringRef cell) {
  action.kind = kind;
  action.microbatch = microbatch;
  if (microbatch == Action::noMicrobatch)
    return placeWhole(action, stage, text.range(cell));
  if (lastPipe >= program.pipes().size() ||
      !program.pipes()[lastPipe].hasMicrobatch(microbatch)) {
    auto pipe = program.pipeOfMicrobatch(microbatch);
    if (!pipe) {
      diags.report<diag::IrNoMicrobatch>(text.range(cell), microbatch);
      return false;
    }
    lastPipe = pipe->value;
  }
  const Pipe &pipe = program.pipes()[lastPipe];
  if (inLoop &&
      !checkLastTurn(*inLoop, microbatch, pipe, text.range(cell), diags))
    return false;
  uint32_t lastStage = std::max(stage, peer.value_or(0));
  if (lastStage >= pipe.numStages()) {
    diags.report<diag::IrNoStage>(text.range(cell), lastStage, pipe.name,
                                  pipe.numStages());
    return false;
  }
  action.pipe = PipeId(lastPipe);
  action.stage = StageId(stage);
  return program.kinds()[kind].isCompute() ||
         placePeer(action, pipe, peer, cell);
}

/// Without a peer the message goes to, or comes from, the stage beside it.
bool TextRows::placePeer(Action &action, const Pipe &pipe,
                         std::optional<uint32_t> peer, StringRef cell) {
  if (!peer) {
    const KindInfo &info = program.kindOf(action);
    bool toNext = (info.isSend()) == bool(info.defines & slot::Output);
    peer = toNext ? action.stage.value + 1 : action.stage.value - 1;
    if (*peer >= pipe.numStages()) {
      diags.report<diag::IrNoPeer>(text.range(cell), cell);
      return false;
    }
  }
  action.peer = StageId(*peer);
  return true;
}

/// The same for an action of a stage or a rank. Where the rank hosts the
/// stage in several pipes, the first such cell is of the first pipe, and so
/// on.
bool TextRows::placeWhole(Action &action, uint32_t stage, SourceRange at) {
  RankId rank(std::max(program.ranksBegun(), 1u) - 1);
  if (program.kindOf(action).scope == KindScope::Rank)
    return placeOnRank(action, program.head(), rank, at, diags);
  std::optional<PipeId> other, host;
  uint32_t &seen = wholeCells[{action.kind.value, stage}];
  uint32_t number = 0;
  for (auto [i, pipe] : llvm::enumerate(program.pipes())) {
    if (stage >= pipe.numStages())
      continue;
    if (!other)
      other = PipeId(i);
    if (pipe.rankOfStage[stage] == rank && number++ <= seen)
      host = PipeId(i);
  }
  ++seen;
  if (!other) {
    const Pipe *pipe = program.pipes().empty() ? nullptr : &program.pipes()[0];
    diags.report<diag::IrNoStage>(at, stage, pipe ? pipe->name : "",
                                  pipe ? pipe->numStages() : 0);
    return false;
  }
  action.pipe = host.value_or(*other);
  action.stage = StageId(stage);
  return true;
}

bool TextRows::setSite(Action &action, uint32_t site, const char *from) {
  action.site = SiteId(site);
  if (site != 0 && site < program.sites().size() &&
      !ownSites.isOwn(action.site))
    return true;
  diags.report<diag::IrNoEntry>(text.rangeFrom(from), "site", site);
  return false;
}
