// Changes inputs by tokens, and schedules by sentences of the grammar.
#include "Mutator.h"

#include "ppcc/Editor/Editor.h"

#include <fstream>
#include <iterator>

using namespace ppcc;

namespace {

/// A part of a rule of the grammar: a choice between sequences, repeated or
/// left out as its suffix says.
struct Part {
  enum class Kind { Text, Rule, Choice } kind = Kind::Text;
  std::string text; ///< Of a keyword, or the name of a rule or token.
  std::vector<std::vector<Part>> choices;
  char suffix = ' '; ///< `?`, `*`, `+`
};

/// grammar/Schedule.g4, as far as sentences need it.
class Grammar {
public:
  Grammar() {
    std::ifstream file(PPCC_SOURCE_ROOT "/grammar/Schedule.g4");
    std::string text{std::istreambuf_iterator(file), {}};
    size_t tokensBegin = text.find("\nINT "), begin = text.find("\nfile ");
    assert(begin < tokensBegin && tokensBegin != std::string::npos);
    for (auto left = StringRef(text).slice(begin, tokensBegin); !left.empty();)
      if (std::string token = next(left); token == "//")
        left = left.drop_until([](char c) { return c == '\n'; });
      else if (!token.empty())
        tokens.push_back(std::move(token));
    while (at != tokens.size()) {
      std::string name = tokens[at];
      at += 2; // With the colon.
      rules[name] = choices();
      names.push_back(name);
      ++at;
    }
  }

  /// A sentence of the rule, or of any.
  std::string sentence(Random &random, StringRef rule = "") const {
    std::string text;
    write(rules.at(rule.empty() ? names[random() % names.size()] : rule.str()),
          random, 2 + random() % 7, text);
    return text;
  }

private:
  /// A word, a literal with its quotes, an operator; the labels of parts are
  /// left out.
  static std::string next(StringRef &left) {
    left = left.ltrim();
    if (left.starts_with("<")) // <assoc=right>
      left = left.drop_front(left.find('>') + 1).ltrim();
    size_t size = 1;
    if (left.starts_with("'"))
      size = left.find('\'', 1) + 1;
    else if (editor::isWordCharacter(left.empty() ? ' ' : left.front()))
      size = left.take_while(editor::isWordCharacter).size();
    else if (left.starts_with("//") || left.starts_with("+="))
      size = 2;
    std::string token = left.take_front(size).str();
    left = left.drop_front(std::min(size, left.size()));
    return token;
  }

  std::vector<std::vector<Part>> choices() {
    std::vector<std::vector<Part>> all(1);
    for (; at != tokens.size(); ++at) {
      const std::string &token = tokens[at];
      bool isLabel = at + 1 < tokens.size() &&
                     (tokens[at + 1] == "=" || tokens[at + 1] == "+=");
      if (token == ";" || token == ")")
        break;
      if (token == "|")
        all.emplace_back();
      else if (token == "?" || token == "*" || token == "+")
        all.back().back().suffix = token[0];
      else if (isLabel)
        ++at;
      else if (token == "(") {
        ++at;
        all.back().push_back({Part::Kind::Choice, "", choices()});
      } else if (token[0] == '\'')
        all.back().push_back(
            {Part::Kind::Text, token.substr(1, token.size() - 2), {}});
      else
        all.back().push_back({Part::Kind::Rule, token, {}});
    }
    return all;
  }

  static std::string terminal(StringRef name, Random &random) {
    static constexpr StringRef usual[] = {"F", "B", "I", "W", "r", "s", "i",
                                          "m", "P", "M", "x", "p", "f", "c"};
    if (name == "INT")
      return number(random);
    if (name == "FLOAT")
      return random() % 4 ? "0.5" : "1e" + number(random);
    if (name == "STRING")
      return "\"std.pp\"";
    return (random() % 2
                ? usual[random() % std::size(usual)]
                : editor::words[random() % std::size(editor::words)].name)
        .str();
  }

  /// The first choice of a rule ends soonest.
  void write(const std::vector<std::vector<Part>> &choices, Random &random,
             unsigned depth, std::string &text) const {
    const auto &chosen = choices[depth == 0 ? 0 : random() % choices.size()];
    for (const Part &part : chosen) {
      size_t times = 1;
      if (part.suffix == '?')
        times = depth != 0 && random() % 2;
      else if (part.suffix != ' ')
        times = (part.suffix == '+') + (depth != 0 ? random() % 3 : 0);
      for (; times != 0 && text.size() < 2000; --times) {
        auto rule = rules.find(part.text);
        if (part.kind == Part::Kind::Choice)
          write(part.choices, random, depth - (depth != 0), text);
        else if (part.kind == Part::Kind::Rule && rule != rules.end())
          write(rule->second, random, depth - (depth != 0), text);
        else
          text += (part.kind == Part::Kind::Rule ? terminal(part.text, random)
                                                 : part.text) +
                  ' ';
      }
    }
  }

  std::vector<std::string> tokens; ///< While the rules are read.
  size_t at = 0;
  std::map<std::string, std::vector<std::vector<Part>>> rules;
  std::vector<std::string> names;
};

} // namespace

std::string ppcc::number(Random &random) {
  static constexpr StringRef usual[] = {"0",
                                        "1",
                                        "2",
                                        "3",
                                        "4",
                                        "8",
                                        "-1",
                                        "255",
                                        "256",
                                        "32767",
                                        "65534",
                                        "65535",
                                        "65536",
                                        "1048576",
                                        "2147483647",
                                        "-2147483648",
                                        "4294967294",
                                        "4294967295",
                                        "4294967296",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "18446744073709551615",
                                        "1000000000000000000000",
                                        "1e308",
                                        "0.1"};
  return usual[random() % 3 ? random() % 6 : random() % std::size(usual)].str();
}

std::string ppcc::changeTokens(StringRef text, bool isSchedule,
                               Random &random) {
  static const Grammar grammar;
  std::vector<editor::Token> tokens = editor::tokenize(text);
  auto begin = [&](size_t token) {
    return token == tokens.size() ? text.end() : tokens[token].text.begin();
  };
  // Some tokens in a row, mostly few; often up to where one like the first
  // stands, as in a list of statements.
  auto range = [&] {
    size_t from = random() % (tokens.size() + 1);
    size_t most = tokens.size() - from;
    size_t size = std::min<size_t>(most, random() % (random() % 4 ? 4 : 40));
    for (size_t to = from; random() % 2 && to != tokens.size(); ++to)
      if (StringRef(";,}]\n").contains(tokens[to].text)) {
        size = to + 1 - from;
        break;
      }
    return std::pair(begin(from), begin(from + size));
  };
  auto [from, to] = range();
  auto [otherFrom, otherTo] = range();
  std::string other(otherFrom, otherTo);
  switch (random() % (isSchedule ? 9 : 6)) {
  case 0: // Left out.
    other.clear();
    break;
  case 1: // Twice.
    other = std::string(from, to) + std::string(from, to);
    break;
  case 2: // Moved, or written over others.
    break;
  case 3:
    to = from;
    break;
  case 4:
  case 5: { // Another number.
    std::vector<StringRef> numbers;
    for (const editor::Token &token : tokens)
      if (token.kind == editor::TokenKind::Number)
        numbers.push_back(token.text);
    if (numbers.empty())
      break;
    StringRef chosen = numbers[random() % numbers.size()];
    from = chosen.begin(), to = chosen.end();
    int64_t value;
    other = random() % 2 || chosen.getAsInteger(10, value)
                ? number(random)
                : std::to_string(uint64_t(value) + random() % 5 - 2);
    break;
  }
  case 6: // Something of the language.
    other = grammar.sentence(random);
    break;
  default: {
    static constexpr const char *rules[] = {
        "item",        "statements",  "expr", "actionStmt",
        "declaration", "sectionBody", "expr"};
    other = grammar.sentence(random, rules[random() % std::size(rules)]);
    if (random() % 2)
      to = from;
  }
  }
  return std::string(text.begin(), from) + other + std::string(to, text.end());
}
