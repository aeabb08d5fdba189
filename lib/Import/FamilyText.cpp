#include "FamilyText.h"

#include "ppcc/Basic/Diagnostics/Import.h"
#include "ppcc/IR/Text.h"

using namespace ppcc;
using proof::Affine;

/// No number in a formula is larger.
static constexpr uint64_t most = uint64_t(1) << 40;

/// Takes a formula, such as `2 n + j - 3`, from the front.
static std::optional<Affine> takeFormula(StringRef &text) {
  Affine sum;
  for (bool isFirst = true;; isFirst = false) {
    StringRef rest = text.ltrim();
    bool minus = rest.consume_front("-");
    if (!minus && !rest.consume_front("+") && !isFirst)
      return sum;
    rest = rest.ltrim();
    StringRef digits = rest.take_while(llvm::isDigit);
    uint64_t number = 1;
    if (!digits.empty() && (digits.getAsInteger(10, number) || number > most))
      return std::nullopt;
    rest = rest.drop_front(digits.size());
    StringRef behind = rest.ltrim(' ');
    StringRef name = behind.take_while(llvm::isAlnum);
    int64_t term = minus ? -int64_t(number) : number;
    if (name == "n" || name == "j") {
      (name == "n" ? sum.n : sum.j) += term;
      rest = behind.drop_front();
    } else if (digits.empty()) {
      return std::nullopt;
    } else {
      sum.c += term;
    }
    text = rest;
  }
}

/// The text up to the end of the block that begins in it, which it is moved
/// behind; all of it where there is no end.
static StringRef takeBlock(StringRef &text) {
  size_t depth = 0, at = 0;
  for (bool isString = false; at != text.size(); ++at) {
    char c = text[at];
    if (isString && c == '\\' && at + 1 != text.size())
      ++at;
    else if (c == '"')
      isString = !isString;
    else if (isString)
      continue;
    else if (text.substr(at, 2) == "//")
      at = std::min(text.find('\n', at), text.size()) - 1;
    else if (c == '{')
      ++depth;
    else if (c == '}' && --depth == 0)
      break;
  }
  StringRef block = text.take_front(at + 1);
  text = text.drop_front(block.size());
  return block;
}

std::string FamilyText::split(StringRef text, std::string &free,
                              std::vector<std::string> &transports,
                              std::vector<FamilyText> &families) {
  StringRef head = takeBlock(text);
  if (!head.consume_back("}"))
    return "the head has no end";
  StringRef proven = head.split("\n  proven [").second.split(']').first;
  for (StringRef name : llvm::split(proven, ' '))
    if (!name.trim().empty())
      transports.push_back(name.trim().str());
  while (!(text = text.ltrim()).empty()) {
    FamilyText one;
    one.head = head;
    if (!text.consume_front("family "))
      return "`family` is to come next, not `" +
             text.take_until([](char c) { return c == '\n'; })
                 .take_front(40)
                 .str() +
             "`";
    auto [name, rest] = text.split(" = ");
    text = rest;
    auto values = takeFormula(text);
    proof::Claim &claim = one.claim;
    if (!values || values->j != 0 || values->n < 0 || values->c < 1)
      return "no values of `" + name.take_front(40).str() + "` are told";
    claim.from = values->c;
    claim.modulus = std::max<int64_t>(values->n, 1);
    claim.residue = claim.from % claim.modulus;
    if (values->n == 0)
      claim.to = claim.from;
    else if (!text.consume_front(", n in 0.."))
      return "the range of `n` is not told";
    uint64_t count;
    if (!text.consumeInteger(10, count)) {
      if (count < 1 || count > most)
        return "a range of `n` is too small, or too large";
      claim.to = claim.from + claim.modulus * int64_t(count - 1);
    }
    text = text.ltrim();
    claim.verdict = text.take_while(llvm::isAlpha).str();
    text = text.drop_front(claim.verdict.size()).ltrim();
    if (claim.verdict == "right" && text.starts_with("{")) {
      one.body = takeBlock(text);
      if (!one.body.consume_front("{") || !one.body.consume_back("}"))
        return "a family has no end";
    } else if (text.consume_front("\"")) {
      size_t end = text.find("\"\n");
      claim.reason = text.take_front(end).str();
      text = text.drop_front(std::min(text.size(), claim.reason.size() + 1));
    } else {
      return "neither a program nor a reason is told";
    }
    free = name.str();
    families.push_back(one);
  }
  return families.empty() ? "there is no family" : "";
}

std::optional<Program> FamilyText::at(int64_t n, int64_t j,
                                      ImportContext &context) const {
  std::string items, rows, ranges;
  auto value = [&](StringRef &text) {
    auto formula = takeFormula(text);
    return formula ? fmt::format("{}", int64_t(formula->at(n, j)))
                   : std::string("?");
  };
  std::vector<std::string> microbatches; // Of each pipe.
  for (StringRef line : llvm::split(body, '\n')) {
    StringRef item = line.ltrim(), before;
    if (item.starts_with("param ") && item.contains(": int = ")) {
      std::tie(before, item) = item.split(": int = ");
      items += "  " + before.str() + ": int = " + value(item) + "\n";
    } else if (item.starts_with("microbatches ")) {
      item = item.drop_front(item.rfind('"') + 1);
      std::string first = value(item);
      item.consume_front("..");
      microbatches.push_back(first + ".." + value(item));
    } else if (item.starts_with("param ") || item.starts_with("site ") ||
               item.starts_with("preconnect ")) {
      items += line.str() + "\n";
    } else if (item.starts_with("loop j in 0..n + 1 {")) {
      rows += "loop 1 advance 0 {\n";
    } else if (item.starts_with("phase ")) {
      rows += line.str() + "\n";
    } else {
      // In brackets behind letters.
      for (size_t at; (at = line.find('[')) != StringRef::npos;) {
        rows += line.take_front(at);
        line = line.drop_front(at + 1);
        rows += value(line);
        line.consume_front("]");
      }
      rows += line.str() + "\n";
    }
  }
  // The pipes of the head, with their microbatches.
  size_t pipe = 0;
  std::string text;
  for (StringRef line : llvm::split(head, '\n')) {
    constexpr StringRef none = "\" microbatches 0..0";
    size_t at = line.find(none);
    if (line.ltrim().starts_with("pipe ") && at != StringRef::npos &&
        pipe != microbatches.size())
      text += (line.take_front(at) + "\" microbatches " + microbatches[pipe++] +
               line.drop_front(at + none.size()) + "\n")
                  .str();
    else
      text += line.str() + "\n";
  }
  text += items + "}\n" + rows;
  std::string name = fmt::format(
      "{} (n = {}, j = {})", context.sources.name(context.file).str(), n, j);
  uint32_t file = context.sources.add(
      name, llvm::MemoryBuffer::getMemBufferCopy(text, name));
  return parseProgram(file, context.sources, context.diags);
}

bool FamilyText::read(ImportContext &context, proof::Template &rows) const {
  auto first = at(1, 0, context);
  if (!first)
    return false;
  auto second = at(2, 0, context), turned = at(1, 1, context);
  if (!second || !turned)
    return false;
  for (auto [a, b] : llvm::zip(first->pipes(), second->pipes())) {
    auto line = [](int64_t a, int64_t b) {
      return Affine{2 * a - b, b - a, 0};
    };
    rows.pipes.push_back({line(a.firstMicrobatch, b.firstMicrobatch),
                          line(a.numMicrobatches, b.numMicrobatches)});
  }
  ArrayRef<Loop> loops = first->loops();
  for (RankId rank : first->ranks()) {
    auto &ofRank = rows.ranks.emplace_back();
    for (ActionId id : first->rows(rank)) {
      Action action = (*first)[id];
      while (!loops.empty() && loops.front().end <= id)
        loops = loops.drop_front();
      bool turns = !loops.empty() && loops.front().begin <= id;
      int64_t one = action.microbatch, two = (*second)[id].microbatch,
              next = (*turned)[id].microbatch;
      ofRank.push_back({action.kind, action.pipe, action.stage, action.peer,
                        action.joined,
                        turns ? uint32_t(first->loops().size() - loops.size())
                              : proof::noWindow,
                        Affine{2 * one - two, two - one, next - one}, 0,
                        action.phase, action.site});
    }
  }
  return true;
}
