// Runs the ANTLR parser and turns its tree into ours.
#include "ppcc/Parse/Parser.h"
#include "ppcc/Basic/Diagnostics/Files.h"
#include "ppcc/Basic/Diagnostics/Syntax.h"
#include "ppcc/Support/Decimal.h"

#include "Lexing.h"
#include "ScheduleLexer.h"
#include "ScheduleParser.h"

#include "llvm/Support/ConvertUTF.h"

using namespace ppcc;
using namespace ppcc::ast;
using grammar::ScheduleLexer;
using grammar::ScheduleParser;

namespace {

/// Keeps no tokens among the children of a rule: those that mean something have
/// a name in the grammar.
class TokenFreeParser final : public ScheduleParser {
public:
  using ScheduleParser::ScheduleParser;

  antlr4::Token *consume() override {
    antlr4::Token *token = getCurrentToken();
    if (token->getType() != antlr4::Token::EOF)
      getInputStream()->consume();
    return token;
  }

  /// Behind the grammar, words that begin with a string are another node.
  static constexpr size_t RuleTextItem = SIZE_MAX;
  using TextItemContext = WordsItemContext;
};

/// What stands in a rule: rules alone.
auto children(antlr4::ParserRuleContext *tree) {
  return llvm::map_range(tree->children, [](antlr4::tree::ParseTree *child) {
    return static_cast<antlr4::ParserRuleContext *>(child);
  });
}

using IncompleteRules = llvm::DenseSet<antlr4::ParserRuleContext *>;

/// Finds the rules that a syntax error leaves incomplete, and removes the
/// tokens that ANTLR has put in the place of missing ones.
bool findIncomplete(antlr4::ParserRuleContext *tree, IncompleteRules &found) {
  llvm::erase_if(tree->children, [](antlr4::tree::ParseTree *child) {
    return dynamic_cast<antlr4::tree::TerminalNode *>(child);
  });
  bool isIncomplete = tree->exception != nullptr;
  for (antlr4::ParserRuleContext *child : children(tree))
    isIncomplete |= findIncomplete(child, found);
  isIncomplete &= !isList(tree->getRuleIndex());
  if (isIncomplete)
    found.insert(tree);
  return isIncomplete;
}

/// Builds nodes from the parse tree of a file: each field from what its rule
/// has under the same name. Lists lack what is incomplete; of a statement, its
/// bodies stay.
struct TreeBuilder {
  using P = TokenFreeParser;
  using Tree = antlr4::ParserRuleContext;
  template <class T> using To = std::type_identity<T>;

  Context &context;
  const IncompleteRules &incomplete;
  DiagnosticEngine &diags;

  File file(uint32_t source, P::FileContext *rule) {
    return {source, field(To<ArrayRef<Import>>(), rule->imports),
            field(To<Body>(), rule->items),
            field(To<ArrayRef<Schedule>>(), rule->schedules)};
  }

  template <class T> ArrayRef<T> copy(const SmallVectorImpl<T> &values) {
    return context.copy(ArrayRef<T>(values));
  }
  /// What `make` makes of each of `from`.
  template <class From, class Make> auto list(const From &from, Make make) {
    using T = decltype(make(*std::begin(from)));
    SmallVector<T> values;
    for (auto *each : from)
      if constexpr (std::is_same_v<T, const Stmt *>)
        values.push_back(isIncomplete(each) ? bodiesOf(each) : make(each));
      else if (!isIncomplete(each))
        values.push_back(make(each));
    return copy(values);
  }

  bool isIncomplete(Tree *tree) const { return incomplete.contains(tree); }
  bool isIncomplete(antlr4::Token *) const { return false; }

  /// The bodies of a statement, under a condition that holds.
  const Stmt *bodiesOf(Tree *tree) {
    SourceRange range = rangeOf(tree->getStart());
    SmallVector<Branch> branches;
    auto add = [&](auto add, Tree *tree) -> void {
      for (Tree *child : children(tree))
        if (child->getRuleIndex() == P::RuleStatements ||
            child->getRuleIndex() == P::RuleSectionBody)
          branches.push_back(
              {context.make<BoolExpr>(range, true), field(To<Body>(), child)});
        else
          add(add, child);
    };
    add(add, tree);
    if (branches.empty())
      branches.push_back({context.make<BoolExpr>(range, true), {}});
    return context.make<IfStmt>(range, copy(branches));
  }

  static SourceRange rangeOf(Tree *tree) {
    return {ppcc::rangeOf(tree->getStart()).begin,
            ppcc::rangeOf(tree->getStop()).end};
  }
  static SourceRange rangeOf(antlr4::Token *token) {
    return ppcc::rangeOf(token);
  }
  /// Where a statement is: its first word or, of actions and places, all of it
  /// but the semicolon.
  static SourceRange rangeOfTree(Tree *tree) {
    SourceRange first = rangeOf(tree->getStart());
    size_t rule = tree->getRuleIndex();
    if (rule != P::RuleActionStmt && rule != P::RulePlaceStmt)
      return first;
    return {first.begin, rangeOf(tree->getStop()).begin};
  }

  // ---- Nodes ----

  // A record or node of any rule that has its fields.
#define NODE(Name, Suffix, Label)                                              \
  template <class Rule>                                                        \
  const Name##Suffix *field(To<const Name##Suffix *>, Rule *rule) {            \
    return context.keep(Name##Suffix{{Name##Suffix::ofKind, 0, rangeOfTree(rule)},
#define RECORD(Name, Label)                                                    \
  template <class Rule> Name field(To<Name>, Rule *rule) {                     \
    return Name(Name{
#define FIELD(Type, Name, ...) field(To<Type>(), rule->Name),
#define END                                                                    \
  });                                                                          \
  }
#include "ppcc/AST/AST.def"

  const Stmt *statement(Tree *tree) {
    size_t rule = tree->getRuleIndex();
    if (rule == P::RuleWordsItem)
      if (auto *words = static_cast<P::WordsItemContext *>(tree);
          words->entries.front()->getStart()->getType() == P::STRING)
        return field(To<const TextItem *>(), words);
    switch (rule) {
    case P::RuleChoice:
      return conditional(tree);
#define EXPR(Name)
#define NODE(Name, Suffix, Label)                                              \
  case P::Rule##Name##Suffix:                                                  \
    return field(To<const Name##Suffix *>(),                                   \
                 static_cast<P::Name##Suffix##Context *>(tree));
#include "ppcc/AST/AST.def"
    }
    llvm_unreachable("all statements are above");
  }

  // ---- Fields ----

  bool field(To<bool>, antlr4::Token *token) { return token; }
  Identifier field(To<Identifier>, antlr4::Token *token) {
    bool isThere = token && token->getTokenIndex() != INVALID_INDEX;
    return isThere ? Identifier{textOf(token), rangeOf(token)} : Identifier{};
  }
  /// A string without its quotes and escapes.
  StringRef field(To<StringRef>, antlr4::Token *token) {
    std::string value;
    StringRef text = token ? textOf(token).drop_front().drop_back() : "";
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        value += text[i];
        continue;
      }
      size_t known = StringRef("nt\\\"").find(text[++i]);
      if (known == StringRef::npos)
        diags.report<diag::BadEscape>(rangeOf(token),
                                      firstCharacter(text.drop_front(i)));
      else
        value += "\n\t\\\""[known];
    }
    return context.copy(StringRef(value));
  }
  static StringRef firstCharacter(StringRef text) {
    return text.take_front(
        llvm::getNumBytesForUTF8(static_cast<llvm::UTF8>(text.front())));
  }
  const Expr *field(To<const Expr *>, P::ExprContext *rule) {
    return rule ? expr(rule) : nullptr;
  }
  const Expr *field(To<const Expr *>, P::DimContext *rule) {
    return field(To<const Expr *>(), rule->expr());
  }
  /// The one statement of an item.
  template <class Item> const Stmt *field(To<const Stmt *>, Item *item) {
    return statement(*children(item).begin());
  }
  template <class T, class Rule>
  ArrayRef<T> field(To<ArrayRef<T>>, const std::vector<Rule *> &rules) {
    return list(rules, [&](Rule *rule) { return field(To<T>(), rule); });
  }
  template <class T, class Rule>
    requires requires(Rule *rule) { rule->list; }
  ArrayRef<T> field(To<ArrayRef<T>>, Rule *rule) {
    return rule ? field(To<ArrayRef<T>>(), rule->list) : ArrayRef<T>();
  }
  Body field(To<Body>, Tree *body) {
    return list(children(body), [&](Tree *child) { return statement(child); });
  }

  // ---- What is not as its rule ----

  const IfStmt *field(To<const IfStmt *>, P::IfStmtContext *rule) {
    return conditional(rule);
  }
  const IfStmt *conditional(Tree *tree) {
    SmallVector<Branch> branches;
    const Expr *condition = nullptr;
    for (Tree *child : children(tree))
      if (child->getRuleIndex() == P::RuleExpr)
        condition = expr(static_cast<P::ExprContext *>(child));
      else
        branches.push_back(
            {std::exchange(condition, nullptr), field(To<Body>(), child)});
    return context.make<IfStmt>(rangeOfTree(tree), copy(branches));
  }

  Import field(To<Import>, P::ImportDeclContext *rule) {
    return {field(To<StringRef>(), rule->path), rangeOf(rule->path)};
  }

  /// `on rank NAME` gives each rank a name.
  const OnRankItem *field(To<const OnRankItem *>, P::OnRankItemContext *rule) {
    const Expr *ranks = expr(rule->ranks);
    auto *name = rule->isSeveral ? nullptr : dyn_cast<NameExpr>(ranks);
    Identifier variable;
    if (name)
      variable = {name->name, std::exchange(ranks, nullptr)->range};
    if (rule->condition && !name)
      diags.report<diag::UnexpectedToken>(rangeOf(rule->ranks),
                                          rule->isSeveral ? "list" : "number",
                                          "the name of a rank before `where`");
    return context.make<OnRankItem>(rangeOfTree(rule),
                                    rule->isSeveral != nullptr, variable,
                                    field(To<const Expr *>(), rule->condition),
                                    ranks, field(To<Body>(), rule->body));
  }

  /// Without a range there is a count, which is an end.
  const MicrobatchesItem *field(To<const MicrobatchesItem *> to,
                                P::MicrobatchesItemContext *rule) {
    if (!rule->end)
      std::swap(rule->first, rule->end);
    return field<P::MicrobatchesItemContext>(to, rule);
  }

  const TextItem *field(To<const TextItem *>, P::WordsItemContext *rule) {
    antlr4::Token *string = rule->entries.front()->getStart();
    SourceRange quoted = rangeOf(string);
    Identifier name = field(To<Identifier>(), rule->name),
               value{textOf(string).drop_front().drop_back(),
                     {quoted.begin.advanced(1), SourceLoc{quoted.end.raw - 1}}};
    SmallVector<StringRef> stages;
    if (name.text == "layout")
      if (auto layout = parseLayout(value.text, value.range.begin, diags))
        for (const std::string &stage : *layout)
          stages.push_back(context.copy(stage));
    return context.make<TextItem>(rangeOfTree(rule), name, value, copy(stages));
  }

  Entry field(To<Entry>, P::EntryContext *rule) {
    std::string text;
    for (antlr4::Token *part : rule->parts)
      text += textOf(part);
    SourceRange range = rangeOf(rule->getStart());
    if (!rule->parts.empty())
      range.end = rangeOf(rule->parts.back()).end;
    return {{context.copy(StringRef(text)), range},
            field(To<ArrayRef<Entry>>(), rule->group),
            field(To<const Expr *>(), rule->count)};
  }

  Parameter field(To<Parameter> to, P::ParameterContext *rule) {
    Parameter result = field<P::ParameterContext>(to, rule);
    if (rule->isList) {
      result.type.text = context.copy(StringRef(result.type.text.str() + "[]"));
      result.type.range.end = rangeOf(rule->isList).end.advanced(1);
    }
    return result;
  }

  PropertyValue field(To<PropertyValue>, P::PropertyValueContext *rule) {
    if (!rule->set)
      return {field(To<Identifier>(), rule->keyword),
              rule->children.empty() ? nullptr : expr(rule->expr(0))};
    return {{},
            context.make<CallExpr>(rangeOf(rule),
                                   field(To<Identifier>(), rule->set),
                                   field(To<Exprs>(), rule->args))};
  }

  GraphLink field(To<GraphLink>, P::GraphLinkContext *rule) {
    return {rangeOf(rule), field(To<Identifier>(), rule->part),
            field(To<Identifier>(), rule->name),
            field(To<Identifier>(), rule->lane)};
  }

  // ---- Expressions ----

  const Expr *expr(P::ExprContext *ctx) {
    SourceRange where = rangeOf(ctx);
    if (ctx->atom)
      return atom(where, ctx->atom);
    Exprs parts = list(children(ctx), [&](Tree *child) {
      return expr(static_cast<P::ExprContext *>(child));
    });
    if (ctx->callee)
      return context.make<CallExpr>(where, field(To<Identifier>(), ctx->callee),
                                    parts);
    if (ctx->name)
      return context.make<ListForExpr>(where, parts[0],
                                       field(To<Identifier>(), ctx->name),
                                       parts[1], parts[2]);
    if (ctx->list)
      return context.make<ListExpr>(where, parts);
    if (ctx->at)
      return context.make<IndexExpr>(where, parts[0], parts[1]);
    if (!ctx->op)
      return parts[0]; // In parentheses.
    if (parts.size() == 3)
      return context.make<ConditionalExpr>(where, parts[0], parts[1], parts[2]);
    StringRef op = textOf(ctx->op);
    if (parts.size() == 1)
      return context.make<UnaryExpr>(
          where, op == "-" ? UnaryOp::Negate : UnaryOp::Not, parts[0]);
    return context.make<BinaryExpr>(where, parts[0], binaryOp(op),
                                    rangeOf(ctx->op), parts[1]);
  }

  const Expr *atom(SourceRange where, antlr4::Token *token) {
    StringRef text = textOf(token);
    int64_t integer = 0;
    std::optional<double> number;
    auto reportBad = [&] {
      constexpr size_t shown = 40;
      diags.report<diag::BadNumber>(
          where, text.size() <= shown ? text.str()
                                      : text.take_front(shown).str() + "...");
    };
    switch (token->getType()) {
    case P::INT:
      if (text.getAsInteger(10, integer))
        reportBad();
      return context.make<IntExpr>(where, integer);
    case P::FLOAT:
      number = decimal::parseFloat(text);
      if (!number)
        reportBad();
      return context.make<FloatExpr>(where, number.value_or(0));
    case P::ID:
      return context.make<NameExpr>(where, text);
    default:
      if (text == "ranks")
        return context.make<NameExpr>(where, text);
      return context.make<BoolExpr>(where, text == "true");
    }
  }

  /// Of other languages' operators, in a tree of what is right, the last.
  static BinaryOp binaryOp(StringRef text) {
    BinaryOp op = BinaryOp::Add;
    while (spelling(op) != text && op != BinaryOp::Or)
      op = BinaryOp(unsigned(op) + 1);
    return op;
  }
};

} // namespace

/// Reports the first byte that makes the file something else than text.
static bool checkText(uint32_t source, const SourceManager &sources,
                      DiagnosticEngine &diags) {
  StringRef text = sources.text(source);
  auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.begin()), *at = begin;
  bool legal = llvm::isLegalUTF8String(
      &at, reinterpret_cast<const llvm::UTF8 *>(text.end()));
  size_t nul = text.find('\0');
  if (legal && nul == StringRef::npos)
    return true;
  size_t offset = legal ? nul : std::min<size_t>(at - begin, nul);
  return diags.report<diag::NotText>(
      Location(), sources.name(source), offset,
      fmt::format("0x{:02x}", static_cast<unsigned char>(text[offset])));
}

std::optional<File> ppcc::parseFile(uint32_t source,
                                    const SourceManager &sources,
                                    Context &context, DiagnosticEngine &diags,
                                    bool keepsRest) {
  if (!checkText(source, sources, diags))
    return std::nullopt;
  size_t before = diags.errorCount();
  antlr4::ANTLRInputStream input(sources.text(source).str());
  ScheduleLexer lexer(&input);
  lexer.removeErrorListeners();
  TokenOrigin origin(source, sources, lexer);
  TokenList tokens = lex(lexer, origin, diags);
  if (tokens.empty())
    return std::nullopt;

  antlr4::ListTokenSource list(std::move(tokens));
  antlr4::CommonTokenStream stream(&list);
  TokenFreeParser parser(&stream);
  parser.removeErrorListeners();
  parser.setErrorHandler(std::make_shared<SyntaxErrors>(diags));
  auto *tree = parser.file();
  IncompleteRules incomplete;
  if (diags.errorCount() != before) {
    if (!keepsRest)
      return std::nullopt;
    findIncomplete(tree, incomplete);
    DiagnosticEngine unheard([](const Diagnostic &) {});
    return TreeBuilder{context, incomplete, unheard}.file(source, tree);
  }
  File file = TreeBuilder{context, incomplete, diags}.file(source, tree);
  if (diags.errorCount() != before && !keepsRest)
    return std::nullopt;
  return file;
}

std::vector<StringRef> ppcc::keywords() {
  static ScheduleLexer lexer(nullptr);
  static const std::vector<std::string> names = [] {
    std::vector<std::string> words;
    const antlr4::dfa::Vocabulary &all = lexer.getVocabulary();
    for (size_t type = 1; type <= all.getMaxTokenType(); ++type) {
      std::string literal(all.getLiteralName(type)); // ANTLR 4.9 gives a copy.
      StringRef word = StringRef(literal).trim('\'');
      if (!word.empty() && llvm::all_of(word, llvm::isAlpha))
        words.push_back(word.str());
    }
    return words;
  }();
  return {names.begin(), names.end()};
}
