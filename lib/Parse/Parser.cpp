// Runs the ANTLR parser and turns its tree into ours.
#include "ppcc/Parse/Parser.h"
#include "ppcc/Basic/Diagnostics/Files.h"
#include "ppcc/Basic/Diagnostics/Syntax.h"

#include "Lexing.h"
#include "ScheduleLexer.h"
#include "ScheduleParser.h"
#include "SyntaxErrors.h"

#include "llvm/Support/ConvertUTF.h"

using namespace ppcc;
using namespace ppcc::ast;
using grammar::ScheduleLexer;
using grammar::ScheduleParser;

namespace {

/// Keeps no tokens among the children of a rule: those that mean something have
/// a name in the grammar.
class LeanParser final : public ScheduleParser {
public:
  using ScheduleParser::ScheduleParser;

  antlr4::Token *consume() override {
    antlr4::Token *token = getCurrentToken();
    if (token->getType() != antlr4::Token::EOF)
      getInputStream()->consume();
    return token;
  }
};

/// What stands in a rule: rules alone.
auto children(antlr4::ParserRuleContext *tree) {
  return llvm::map_range(tree->children, [](antlr4::tree::ParseTree *child) {
    return static_cast<antlr4::ParserRuleContext *>(child);
  });
}

/// Builds nodes from the parse tree of a file without syntax errors.
class TreeBuilder {
  using P = ScheduleParser;
  using Tree = antlr4::ParserRuleContext;

public:
  TreeBuilder(Context &context, DiagnosticEngine &diags)
      : context(context), diags(diags) {}

  File file(uint32_t source, P::FileContext *ctx) {
    SmallVector<Import> imports;
    SmallVector<const Stmt *> declarations;
    SmallVector<Schedule> schedules;
    for (Tree *child : children(ctx))
      if (auto *import = as<P::ImportDeclContext>(child, P::RuleImportDecl))
        imports.push_back({string(import->path), rangeOf(import->path)});
      else if (auto *s = as<P::ScheduleContext>(child, P::RuleSchedule))
        schedules.push_back(
            {identifier(s->name), parameters(s), items(s->item())});
      else
        declarations.push_back(statement(child));
    return {source, copy(imports), copy(declarations), copy(schedules)};
  }

private:
  // ---- Trees ----

  /// The rule that `tree` is, or null.
  template <class Rule> static Rule *as(Tree *tree, size_t index) {
    return tree->getRuleIndex() == index ? static_cast<Rule *>(tree) : nullptr;
  }
  template <class Rule> static Rule *to(Tree *tree) {
    return static_cast<Rule *>(tree);
  }

  /// The expressions of a rule in order, null behind the last, and its last
  /// body.
  struct Parts {
    SmallVector<const Expr *, 3> exprs;
    Body body;
    const Expr *operator[](size_t i) const {
      return i < exprs.size() ? exprs[i] : nullptr;
    }
  };
  Parts partsOf(Tree *tree) {
    Parts parts;
    for (Tree *child : children(tree))
      if (child->getRuleIndex() == P::RuleExpr)
        parts.exprs.push_back(expr(to<P::ExprContext>(child)));
      else if (child->getRuleIndex() == P::RuleBody ||
               child->getRuleIndex() == P::RuleSectionBody)
        parts.body = body(child);
    return parts;
  }

  template <class T> ArrayRef<T> copy(const SmallVectorImpl<T> &values) {
    return context.copy(ArrayRef<T>(values));
  }
  /// What `make` makes of each of `from`.
  template <class From, class Make> auto list(const From &from, Make make) {
    SmallVector<decltype(make(*std::begin(from)))> values;
    for (auto *each : from)
      values.push_back(make(each));
    return copy(values);
  }

  // ---- Tokens ----

  static SourceRange rangeOf(Tree *tree) {
    return {ppcc::rangeOf(tree->getStart()).begin,
            ppcc::rangeOf(tree->getStop()).end};
  }
  static SourceRange rangeOf(antlr4::Token *token) {
    return ppcc::rangeOf(token);
  }

  static Identifier identifier(antlr4::Token *token) {
    return token ? Identifier{textOf(token), rangeOf(token)} : Identifier{};
  }

  static StringRef firstCharacter(StringRef text) {
    return text.take_front(
        llvm::getNumBytesForUTF8(static_cast<llvm::UTF8>(text.front())));
  }

  StringRef string(antlr4::Token *token) {
    if (!token)
      return "";
    StringRef text = textOf(token).drop_front().drop_back();
    std::string value;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        value += text[i];
        continue;
      }
      switch (text[++i]) {
      case 'n':
        value += '\n';
        break;
      case 't':
        value += '\t';
        break;
      case '\\':
      case '"':
        value += text[i];
        break;
      default:
        diags.report<diag::BadEscape>(rangeOf(token),
                                      firstCharacter(text.drop_front(i)));
      }
    }
    return context.copy(StringRef(value));
  }

  // ---- Statements ----

  Body body(Tree *ctx) {
    return list(children(ctx), [&](Tree *child) { return statement(child); });
  }

  template <class Item> Body items(const std::vector<Item *> &items) {
    return list(items,
                [&](Item *item) { return statement(*children(item).begin()); });
  }

  template <class T, class... Fields>
  const T *make(Tree *tree, const Fields &...fields) {
    return context.make<T>(rangeOf(tree->getStart()), fields...);
  }
  /// The name that a statement gives or takes.
  template <class Rule> static Identifier name(Tree *tree) {
    return identifier(to<Rule>(tree)->name);
  }

  const Stmt *statement(Tree *tree) {
    switch (tree->getRuleIndex()) {
    case P::RuleAction:
      return action(to<P::ActionContext>(tree));
    case P::RuleIfElse:
    case P::RuleChoice:
      return ifElse(tree);
    case P::RuleInsert:
      return insert(to<P::InsertContext>(tree));
    case P::RuleDeclared:
      return declared(to<P::DeclaredContext>(tree));
    case P::RuleSetting:
    case P::RuleTensors:
    case P::RuleWords:
    case P::RuleNamed:
    case P::RuleChain:
    case P::RulePlace:
      return ofSection(tree);
    default:
      return statement(tree, partsOf(tree));
    }
  }

  const Stmt *statement(Tree *tree, const Parts &parts) {
    const Expr *first = parts[0], *second = parts[1];
    Body body = parts.body;
    switch (tree->getRuleIndex()) {
    case P::RuleLet:
      return make<LetStmt>(tree, name<P::LetContext>(tree), first);
    case P::RuleForLoop:
      return make<ForStmt>(tree, name<P::ForLoopContext>(tree), first, second,
                           body);
    case P::RuleLoop:
      if (textOf(to<P::LoopContext>(tree)->what) == "while")
        return make<WhileStmt>(tree, first, body);
      return make<RepeatStmt>(tree, first, body);
    case P::RulePhase:
      return make<PhaseStmt>(tree, name<P::PhaseContext>(tree), body);
    case P::RuleOverlap:
      return make<OverlapStmt>(tree, body);
    case P::RuleDefer:
      return defer(to<P::DeferContext>(tree), parts);
    case P::RuleDrain:
      return make<DrainStmt>(tree, name<P::DrainContext>(tree), first);
    case P::RuleEdge:
      return make<EdgeStmt>(tree, to<P::EdgeContext>(tree)->no != nullptr,
                            first, second);

    case P::RuleMicrobatches:
      if (to<P::MicrobatchesContext>(tree)->range)
        return make<MicrobatchesItem>(tree, first, second, parts[2]);
      return make<MicrobatchesItem>(tree, nullptr, first, second);
    case P::RuleSlices:
      return make<SlicesItem>(tree, first);
    case P::RulePlacement:
      return make<PlacementItem>(tree, name<P::PlacementContext>(tree),
                                 copy(parts.exprs));
    case P::RulePlacementDecl: {
      auto *decl = to<P::PlacementDeclContext>(tree);
      return make<PlacementDeclItem>(tree, identifier(decl->name),
                                     decl->parameters() ? parameters(decl)
                                                        : ArrayRef<Parameter>(),
                                     placementBody(decl));
    }
    case P::RuleStages:
      return make<StagesItem>(tree, first);
    case P::RuleStageMap:
      return make<StageMapItem>(tree, name<P::StageMapContext>(tree), first);
    case P::RuleRequire:
      return make<RequireItem>(tree, first,
                               string(to<P::RequireContext>(tree)->message));
    case P::RuleRanks:
      return make<RanksItem>(tree, first);
    case P::RuleFunction:
      return make<FunctionItem>(tree, name<P::FunctionContext>(tree), first,
                                parameters(tree));
    case P::RuleBlock:
      return make<BlockItem>(tree, name<P::BlockContext>(tree),
                             parameters(tree), body);
    case P::RulePipe:
      return make<PipeItem>(tree, name<P::PipeContext>(tree),
                            items(to<P::PipeContext>(tree)->pipeItem()));
    case P::RuleBackward:
      return make<BackwardItem>(tree, first);
    case P::RuleOnRank:
      return onRank(to<P::OnRankContext>(tree), first, body);
    case P::RulePattern:
      return make<PatternItem>(
          tree, list(to<P::PatternContext>(tree)->names, identifier), body);
    case P::RuleComm:
      return make<CommItem>(
          tree, list(children(tree), [&](Tree *c) { return words(c); }));
    case P::RuleActionDecl:
      return make<ActionKindItem>(
          tree, name<P::ActionDeclContext>(tree),
          list(children(tree), [&](Tree *c) { return property(c); }));
    case P::RuleUseSchedule:
      return make<UseScheduleItem>(tree, name<P::UseScheduleContext>(tree),
                                   arguments(*children(tree).begin()));
    case P::RuleRuleDecl:
      return make<RuleItem>(
          tree, name<P::RuleDeclContext>(tree), parameters(tree),
          list(to<P::RuleDeclContext>(tree)->insert(),
               [&](P::InsertContext *c) { return insert(c); }));
    default:
      assert(tree->getRuleIndex() == P::RuleApply && "an unknown statement");
      return make<ApplyItem>(tree, name<P::ApplyContext>(tree),
                             arguments(*children(tree).begin()));
    }
  }

  Body placementBody(P::PlacementDeclContext *decl) {
    SmallVector<const Stmt *> items;
    for (Tree *child : children(decl))
      if (child->getRuleIndex() != P::RuleParameters)
        items.push_back(statement(child));
    return copy(items);
  }

  /// `on rank NAME` gives a name to the number of each rank.
  const Stmt *onRank(P::OnRankContext *ctx, const Expr *ranks, Body body) {
    auto *name = dyn_cast<NameExpr>(ranks);
    if (ctx->several || !name)
      return make<OnRankItem>(ctx, ctx->several != nullptr, Identifier{}, ranks,
                              body);
    return make<OnRankItem>(ctx, false, Identifier{name->name, name->range},
                            static_cast<const Expr *>(nullptr), body);
  }

  const Stmt *defer(P::DeferContext *ctx, const Parts &parts) {
    const Expr *lag = ctx->lag ? parts[0] : nullptr;
    const Expr *cap = ctx->cap ? parts[ctx->lag ? 1 : 0] : nullptr;
    return make<DeferStmt>(ctx, identifier(ctx->name), identifier(ctx->fill),
                           lag, identifier(ctx->word), cap, parts.body);
  }

  const Stmt *ifElse(Tree *tree) {
    SmallVector<Branch> branches;
    const Expr *condition = nullptr;
    for (Tree *child : children(tree))
      if (auto *c = as<P::ExprContext>(child, P::RuleExpr))
        condition = expr(c);
      else
        branches.push_back({std::exchange(condition, nullptr), body(child)});
    return make<IfStmt>(tree, copy(branches));
  }

  const Stmt *action(P::ActionContext *ctx) {
    return context.make<ActionStmt>(withoutSemicolon(ctx),
                                    identifier(ctx->name),
                                    arguments(ctx->arguments()));
  }

  static SourceRange withoutSemicolon(Tree *tree) {
    SourceRange whole = rangeOf(tree);
    whole.end.raw -= 1;
    return whole;
  }

  ArrayRef<Argument> arguments(Tree *ctx) {
    return list(children(ctx), [&](Tree *child) {
      auto *argument = to<P::ArgumentContext>(child);
      return Argument{identifier(argument->label), expr(argument->expr())};
    });
  }

  /// Of a declaration, whose first child they are.
  ArrayRef<Parameter> parameters(Tree *declaration) {
    return list(children(*children(declaration).begin()), [&](Tree *tree) {
      auto *parameter = to<P::ParameterContext>(tree);
      Identifier type = identifier(parameter->type);
      if (parameter->list) {
        type.text = context.copy(StringRef(type.text.str() + "[]"));
        type.range.end = rangeOf(parameter->list).end.advanced(1);
      }
      auto optional = [&](P::ExprContext *ctx) {
        return ctx ? expr(ctx) : nullptr;
      };
      return Parameter{identifier(parameter->name), type,
                       optional(parameter->least), optional(parameter->end),
                       optional(parameter->value)};
    });
  }

  const InsertItem *insert(P::InsertContext *ctx) {
    Parts parts = partsOf(ctx);
    return make<InsertItem>(
        ctx, identifier(ctx->name), identifier(ctx->side),
        list(ctx->names, identifier), ctx->per != nullptr,
        identifier(ctx->word), ctx->distance ? parts[0] : nullptr,
        list(ctx->binding(),
             [](P::BindingContext *binding) {
               return InsertBinding{identifier(binding->what),
                                    identifier(binding->variable)};
             }),
        ctx->when ? parts.exprs.back() : nullptr);
  }

  ActionProperty property(Tree *tree) {
    auto *ctx = to<P::PropertyContext>(tree);
    return {identifier(ctx->name),
            list(ctx->propertyValue(), [&](P::PropertyValueContext *value) {
              Parts parts = partsOf(value);
              if (value->set)
                return PropertyValue{{},
                                     context.make<CallExpr>(
                                         rangeOf(value), identifier(value->set),
                                         copy(parts.exprs))};
              return PropertyValue{identifier(value->keyword), parts[0]};
            })};
  }

  // ---- Models and clusters ----

  const Stmt *declared(P::DeclaredContext *ctx) {
    Identifier name = identifier(ctx->name);
    ArrayRef<Parameter> params =
        ctx->name ? parameters(ctx) : ArrayRef<Parameter>();
    Body items = body(ctx->sectionBody());
    if (textOf(ctx->what) == "model")
      return make<ModelItem>(ctx, name, params, items);
    return make<ClusterItem>(ctx, name, params, items);
  }

  /// A setting of a model or a cluster.
  const Stmt *ofSection(Tree *tree) {
    switch (tree->getRuleIndex()) {
    case P::RuleSetting: {
      auto *c = to<P::SettingContext>(tree);
      return make<SettingItem>(c, identifier(c->name), identifier(c->subject),
                               identifier(c->node), identifier(c->inPipe),
                               identifier(c->over), identifier(c->variable),
                               expr(c->expr()));
    }
    case P::RuleTensors: {
      auto *c = to<P::TensorsContext>(tree);
      Parts parts = partsOf(c);
      return make<TensorsItem>(
          c, identifier(c->name), identifier(c->inPipe),
          identifier(c->variable), parts[0], parts[1],
          list(c->tensor(), [&](P::TensorContext *tensor) {
            return TensorDecl{
                identifier(tensor->name),
                list(tensor->dim(), [&](Tree *dim) { return partsOf(dim)[0]; }),
                identifier(tensor->type)};
          }));
    }
    case P::RuleWords: {
      auto *c = to<P::WordsContext>(tree);
      antlr4::Token *first = c->entry(0)->getStart();
      return first->getType() == P::STRING
                 ? static_cast<const Stmt *>(text(c, first))
                 : words(c);
    }
    case P::RuleChain: {
      auto *c = to<P::ChainContext>(tree);
      return make<ChainStmt>(
          c, identifier(c->name), list(c->link(), [](P::LinkContext *link) {
            return GraphLink{rangeOf(link), identifier(link->part),
                             identifier(link->name), identifier(link->lane)};
          }));
    }
    case P::RulePlace: {
      auto *c = to<P::PlaceContext>(tree);
      return context.make<PlaceStmt>(withoutSemicolon(c),
                                     identifier(c->modifier),
                                     identifier(c->part), identifier(c->node));
    }
    default: {
      auto *c = to<P::NamedContext>(tree);
      return make<NamedItem>(c, identifier(c->what), list(c->names, identifier),
                             body(c->sectionBody()));
    }
    }
  }

  const WordsItem *words(Tree *tree) {
    auto *ctx = to<P::WordsContext>(tree);
    return make<WordsItem>(ctx, identifier(ctx->name), entries(ctx->entry()),
                           list(ctx->tail(), [&](P::TailContext *c) {
                             return Tail{identifier(c->name),
                                         list(c->names, identifier)};
                           }));
  }

  ArrayRef<Entry> entries(const std::vector<P::EntryContext *> &trees) {
    return list(trees, [&](P::EntryContext *c) {
      std::string text;
      for (antlr4::Token *part : c->parts)
        text += textOf(part);
      SourceRange range = rangeOf(c->getStart());
      if (!c->parts.empty())
        range.end = rangeOf(c->parts.back()).end;
      return Entry{{context.copy(StringRef(text)), range},
                   entries(c->entry()),
                   partsOf(c)[0]};
    });
  }

  const TextItem *text(P::WordsContext *ctx, antlr4::Token *token) {
    SourceRange quoted = rangeOf(token);
    Identifier name = identifier(ctx->name),
               value{textOf(token).drop_front().drop_back(),
                     {quoted.begin.advanced(1), SourceLoc{quoted.end.raw - 1}}};
    SmallVector<StringRef> stages;
    if (name.text == "layout")
      if (auto layout = parseLayout(value.text, value.range.begin, diags))
        for (const std::string &stage : *layout)
          stages.push_back(context.copy(stage));
    return make<TextItem>(ctx, name, value, copy(stages));
  }

  // ---- Expressions ----

  const Expr *expr(P::ExprContext *ctx) {
    SourceRange where = rangeOf(ctx);
    if (ctx->atom)
      return atom(where, ctx->atom);
    SmallVector<const Expr *, 3> parts = partsOf(ctx).exprs;
    if (ctx->callee)
      return context.make<CallExpr>(where, identifier(ctx->callee),
                                    copy(parts));
    if (ctx->name)
      return context.make<ListForExpr>(where, parts[0], identifier(ctx->name),
                                       parts[1], parts[2]);
    if (ctx->list)
      return context.make<ListExpr>(where, copy(parts));
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
    return context.make<BinaryExpr>(where, binaryOp(op), rangeOf(ctx->op),
                                    parts[0], parts[1]);
  }

  const Expr *atom(SourceRange where, antlr4::Token *token) {
    StringRef text = textOf(token);
    int64_t integer = 0;
    double number = 0;
    switch (token->getType()) {
    case P::INT:
      if (text.getAsInteger(10, integer))
        diags.report<diag::BadNumber>(where, text);
      return context.make<IntExpr>(where, integer);
    case P::FLOAT:
      if (text.getAsDouble(number) || std::isinf(number))
        diags.report<diag::BadNumber>(where, text);
      return context.make<FloatExpr>(where, number);
    case P::ID:
      return context.make<NameExpr>(where, text);
    default:
      if (text == "ranks")
        return context.make<NameExpr>(where, text);
      return context.make<BoolExpr>(where, text == "true");
    }
  }

  static BinaryOp binaryOp(StringRef text) {
    BinaryOp op = BinaryOp::Add;
    while (spelling(op) != text)
      op = BinaryOp(unsigned(op) + 1);
    return op;
  }

  Context &context;
  DiagnosticEngine &diags;
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
      Place(), sources.name(source), offset,
      fmt::format("0x{:02x}", static_cast<unsigned char>(text[offset])));
}

std::optional<File> ppcc::parseFile(uint32_t source,
                                    const SourceManager &sources,
                                    Context &context, DiagnosticEngine &diags) {
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
  LeanParser parser(&stream);
  parser.removeErrorListeners();
  parser.setErrorHandler(std::make_shared<SyntaxErrors>(diags));
  auto *tree = parser.file();
  if (diags.errorCount() != before)
    return std::nullopt;
  File file = TreeBuilder(context, diags).file(source, tree);
  if (diags.errorCount() != before)
    return std::nullopt;
  return file;
}

std::vector<StringRef> ppcc::keywords() {
  static ScheduleLexer lexer(nullptr);
  static const std::vector<std::string> names = [] {
    std::vector<std::string> words;
    const antlr4::dfa::Vocabulary &all = lexer.getVocabulary();
    for (size_t type = 1; type <= all.getMaxTokenType(); ++type) {
      StringRef word = StringRef(all.getLiteralName(type)).trim('\'');
      if (!word.empty() && llvm::all_of(word, llvm::isAlpha))
        words.push_back(word.str());
    }
    return words;
  }();
  return {names.begin(), names.end()};
}
