// Runs the ANTLR parser and turns its tree into ours.
#include "ppcc/Parse/Parser.h"

#include "Lexing.h"
#include "ScheduleLexer.h"
#include "ScheduleParser.h"
#include "SyntaxErrors.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ConvertUTF.h"

#include <cmath>

using namespace ppcc;
using namespace ppcc::ast;
using grammar::ScheduleLexer;
using grammar::ScheduleParser;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

namespace {

/// Builds nodes from the parse tree of a file without syntax errors.
class TreeBuilder {
  using P = ScheduleParser;
  using Tree = antlr4::ParserRuleContext;

public:
  TreeBuilder(const Offsets &offsets, Context &context, DiagnosticEngine &diags)
      : offsets(offsets), context(context), diags(diags) {}

  File file(P::FileContext *ctx) {
    SmallVector<Import> imports;
    for (auto *decl : ctx->importDecl())
      imports.push_back(
          {string(decl->STRING()), range(decl->STRING()->getSymbol())});
    SmallVector<const Item *> items;
    SmallVector<Schedule> schedules;
    for (antlr4::tree::ParseTree *child : ctx->children) {
      if (auto *fn = dynamic_cast<P::FunctionContext *>(child))
        items.push_back(function(fn));
      else if (auto *b = dynamic_cast<P::BlockContext *>(child))
        items.push_back(block(b));
      else if (auto *a = dynamic_cast<P::ActionDeclContext *>(child))
        items.push_back(actionKind(a));
      else if (auto *r = dynamic_cast<P::RuleDeclContext *>(child))
        items.push_back(rule(r));
      else if (auto *w = dynamic_cast<P::ApplyContext *>(child))
        items.push_back(apply(w));
      else if (auto *s = dynamic_cast<P::ScheduleContext *>(child))
        schedules.push_back(schedule(s));
    }
    return {0, copy(imports), copy(items), copy(schedules)};
  }

private:
  template <class T> ArrayRef<T> copy(const llvm::SmallVectorImpl<T> &values) {
    return context.copy(ArrayRef<T>(values));
  }
  SourceRange range(antlr4::Token *token) { return offsets.range(token); }
  SourceRange range(Tree *tree) {
    return {offsets.range(tree->getStart()).begin,
            offsets.range(tree->getStop()).end};
  }
  SourceRange firstWord(Tree *tree) { return offsets.range(tree->getStart()); }

  Identifier identifier(antlr4::Token *token) {
    return token ? Identifier{context.copy(StringRef(token->getText())),
                              range(token)}
                 : Identifier{};
  }
  Identifier identifier(antlr4::tree::TerminalNode *node) {
    return identifier(node ? node->getSymbol() : nullptr);
  }

  static StringRef firstCharacter(StringRef text) {
    return text.take_front(
        llvm::getNumBytesForUTF8(static_cast<llvm::UTF8>(text.front())));
  }

  StringRef string(antlr4::tree::TerminalNode *node) {
    if (!node)
      return "";
    std::string quoted = node->getText();
    StringRef text = StringRef(quoted).drop_front().drop_back();
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
        diags.report<diag::BadEscape>(range(node->getSymbol()),
                                      firstCharacter(text.drop_front(i)));
      }
    }
    return context.copy(StringRef(value));
  }

  // ---- Declarations ----

  ArrayRef<Parameter> parameters(P::ParametersContext *ctx) {
    if (!ctx)
      return {};
    SmallVector<Parameter> params;
    for (auto *param : ctx->parameter())
      params.push_back(
          {identifier(param->ID()),
           param->type() ? identifier(param->type()->getStart()) : Identifier{},
           optional(param->expr())});
    return copy(params);
  }

  const FunctionItem *function(P::FunctionContext *ctx) {
    return context.make<FunctionItem>(firstWord(ctx), identifier(ctx->ID()),
                                      parameters(ctx->parameters()),
                                      expr(ctx->expr()));
  }
  const BlockItem *block(P::BlockContext *ctx) {
    return context.make<BlockItem>(firstWord(ctx), identifier(ctx->ID()),
                                   parameters(ctx->parameters()),
                                   body(ctx->body()));
  }

  const ActionItem *actionKind(P::ActionDeclContext *ctx) {
    SmallVector<ActionProperty> properties;
    for (auto *property : ctx->property()) {
      SmallVector<ActionProperty::Value> values;
      for (auto *value : property->propertyValue())
        values.push_back(propertyValue(value));
      properties.push_back({identifier(property->name), copy(values)});
    }
    return context.make<ActionItem>(firstWord(ctx), identifier(ctx->ID()),
                                    copy(properties));
  }

  ActionProperty::Value propertyValue(P::PropertyValueContext *ctx) {
    if (auto *set = ctx->stageSet()) {
      SmallVector<const Expr *> stages;
      for (auto *stage : set->expr())
        stages.push_back(expr(stage));
      return {{},
              context.make<CallExpr>(range(set), identifier(set->getStart()),
                                     copy(stages))};
    }
    if (ctx->expr())
      return {{}, expr(ctx->expr())};
    return {identifier(ctx->getStart()), nullptr};
  }

  const RuleItem *rule(P::RuleDeclContext *ctx) {
    SmallVector<const InsertItem *> inserts;
    for (auto *child : ctx->insert())
      inserts.push_back(insert(child));
    return context.make<RuleItem>(firstWord(ctx), identifier(ctx->ID()),
                                  parameters(ctx->parameters()), copy(inserts));
  }

  const InsertItem *insert(P::InsertContext *ctx) {
    SmallVector<Identifier> anchors;
    P::AnchorsContext *anchor = ctx->anchors();
    for (auto *name : anchor->ID())
      anchors.push_back(identifier(name));
    if (anchor->distance)
      anchors.pop_back();
    SmallVector<InsertItem::Binding> bindings;
    for (auto *binding : ctx->binding())
      bindings.push_back(
          {identifier(binding->getStart()), identifier(binding->getStop())});
    SourceRange whole = range(ctx);
    whole.end.raw -= 1; // Without the semicolon.
    return context.make<InsertItem>(
        whole, identifier(ctx->ID(0)), identifier(ctx->side), copy(anchors),
        anchor->per != nullptr, identifier(anchor->distance),
        optional(anchor->expr()), copy(bindings), optional(ctx->expr()));
  }

  ArrayRef<ActionStmt::Argument>
  arguments(const std::vector<P::ArgumentContext *> &list) {
    SmallVector<ActionStmt::Argument> args;
    for (auto *arg : list)
      args.push_back({identifier(arg->ID()), expr(arg->expr())});
    return copy(args);
  }

  const ApplyItem *apply(P::ApplyContext *ctx) {
    return context.make<ApplyItem>(firstWord(ctx), identifier(ctx->ID()),
                                   arguments(ctx->argument()));
  }

  Schedule schedule(P::ScheduleContext *ctx) {
    SmallVector<const Item *> items;
    for (auto *child : ctx->item())
      items.push_back(item(child->children[0]));
    return {identifier(ctx->ID()), parameters(ctx->parameters()), copy(items)};
  }

  const Item *item(antlr4::tree::ParseTree *tree) {
    if (auto *c = dynamic_cast<P::MicrobatchesContext *>(tree))
      return microbatches(c);
    if (auto *c = dynamic_cast<P::PlacementContext *>(tree))
      return context.make<PlacementItem>(firstWord(c), identifier(c->ID()),
                                         optional(c->expr()));
    if (auto *c = dynamic_cast<P::StagesContext *>(tree))
      return context.make<StagesItem>(firstWord(c), expr(c->expr()));
    if (auto *c = dynamic_cast<P::SlicesContext *>(tree))
      return context.make<SlicesItem>(firstWord(c), expr(c->expr()));
    if (auto *c = dynamic_cast<P::StageMapContext *>(tree))
      return context.make<StageMapItem>(firstWord(c), identifier(c->ID()),
                                        expr(c->expr()));
    if (auto *c = dynamic_cast<P::EdgeContext *>(tree))
      return context.make<EdgeItem>(firstWord(c),
                                    c->getStart()->getText() == "no",
                                    expr(c->expr(0)), expr(c->expr(1)));
    if (auto *c = dynamic_cast<P::EdgeLoopContext *>(tree)) {
      SmallVector<const Item *> items;
      for (antlr4::tree::ParseTree *child : c->children)
        if (dynamic_cast<P::EdgeContext *>(child) ||
            dynamic_cast<P::EdgeLoopContext *>(child))
          items.push_back(item(child));
      return context.make<EdgeLoopItem>(firstWord(c), identifier(c->ID()),
                                        expr(c->expr(0)), expr(c->expr(1)),
                                        copy(items));
    }
    if (auto *c = dynamic_cast<P::ModuleContext *>(tree))
      return context.make<ModuleItem>(firstWord(c), identifier(c->ID()),
                                      expr(c->expr(0)), expr(c->expr(1)));
    if (auto *c = dynamic_cast<P::RequireContext *>(tree))
      return context.make<RequireItem>(firstWord(c), expr(c->expr()),
                                       string(c->STRING()));
    if (auto *c = dynamic_cast<P::RanksContext *>(tree))
      return context.make<RanksItem>(firstWord(c), expr(c->expr()));
    if (auto *c = dynamic_cast<P::LetContext *>(tree))
      return context.make<LetItem>(firstWord(c), identifier(c->ID()),
                                   expr(c->expr()));
    if (auto *c = dynamic_cast<P::FunctionContext *>(tree))
      return function(c);
    if (auto *c = dynamic_cast<P::BlockContext *>(tree))
      return block(c);
    if (auto *c = dynamic_cast<P::PipeContext *>(tree)) {
      SmallVector<const Item *> items;
      for (auto *child : c->pipeItem())
        items.push_back(item(child->children[0]));
      return context.make<PipeItem>(firstWord(c), identifier(c->ID()),
                                    copy(items));
    }
    if (auto *c = dynamic_cast<P::BackwardContext *>(tree))
      return context.make<BackwardItem>(firstWord(c), expr(c->expr()));
    if (auto *c = dynamic_cast<P::ModelContext *>(tree))
      return model(c);
    if (auto *c = dynamic_cast<P::CommContext *>(tree))
      return comm(c);
    if (auto *c = dynamic_cast<P::LayerContext *>(tree))
      return context.make<LayerItem>(firstWord(c), identifier(c->ID()),
                                     graphBody(c->graphBody()));
    if (auto *c = dynamic_cast<P::StageGraphContext *>(tree))
      return context.make<StageGraphItem>(firstWord(c), identifier(c->ID()),
                                          graphBody(c->graphBody()));
    if (auto *c = dynamic_cast<P::PatternContext *>(tree)) {
      SmallVector<Identifier> actions;
      for (auto *name : c->ID())
        actions.push_back(identifier(name));
      return context.make<PatternItem>(firstWord(c), copy(actions),
                                       graphBody(c->graphBody()));
    }
    if (auto *c = dynamic_cast<P::InsertContext *>(tree))
      return insert(c);
    if (auto *c = dynamic_cast<P::ApplyContext *>(tree))
      return apply(c);
    auto *c = dynamic_cast<P::OnRankContext *>(tree);
    assert(c && "an item that the builder does not know");
    return context.make<OnRankItem>(firstWord(c), identifier(c->ID()),
                                    body(c->body()));
  }

  const Item *microbatches(P::MicrobatchesContext *ctx) {
    const Expr *first = nullptr, *pad = nullptr;
    size_t next = 0;
    bool hasRange = false, hasPad = false;
    for (antlr4::tree::ParseTree *child : ctx->children) {
      hasRange |= child->getText() == "..";
      hasPad |= child->getText() == "pad";
    }
    if (hasRange)
      first = expr(ctx->expr(next++));
    const Expr *end = expr(ctx->expr(next++));
    if (hasPad)
      pad = expr(ctx->expr(next));
    return context.make<MicrobatchesItem>(firstWord(ctx), first, end, pad);
  }

  const Item *model(P::ModelContext *ctx) {
    SmallVector<ModelSetting> settings;
    for (auto *setting : ctx->modelSetting()) {
      // The names in order: the setting, perhaps its subject, then each behind
      // its keyword.
      ModelSetting result{};
      Identifier *next = &result.name;
      for (antlr4::tree::ParseTree *child : setting->children) {
        auto *token = dynamic_cast<antlr4::tree::TerminalNode *>(child);
        if (!token || token->getText() == "=")
          break;
        bool isKeyword =
            token->getText() == "pipe" || token->getText() == "stage";
        if (token->getText() == ".") {
          next = &result.node;
        } else if (!isKeyword) {
          *next = identifier(token);
          next = &result.subject;
        } else {
          next =
              token->getText() == "pipe" ? &result.pipe : &result.stageVariable;
        }
      }
      result.value = expr(setting->expr());
      settings.push_back(result);
    }
    for (auto *scale : ctx->modelScale())
      settings.push_back({identifier(scale->name),
                          identifier(scale->subject),
                          {},
                          {},
                          {},
                          identifier(scale->word),
                          identifier(scale->variable),
                          expr(scale->expr())});
    SmallVector<ModelTensors> tensors;
    for (auto *clause : ctx->modelTensors())
      tensors.push_back(modelTensors(clause));
    SmallVector<ModelText> texts;
    for (auto *text : ctx->modelText())
      texts.push_back(modelText(text));
    return context.make<ModelItem>(firstWord(ctx), copy(settings),
                                   copy(tensors), copy(texts));
  }

  ModelTensors modelTensors(P::ModelTensorsContext *ctx) {
    SmallVector<TensorDecl> tensors;
    for (auto *tensor : ctx->tensor()) {
      SmallVector<const Expr *> dims;
      for (auto *dim : tensor->dim())
        dims.push_back(optional(dim->expr()));
      tensors.push_back(
          {identifier(tensor->ID(0)), identifier(tensor->ID(1)), copy(dims)});
    }
    bool hasRange = !ctx->expr().empty();
    return {identifier(ctx->name),
            identifier(ctx->pipeName),
            identifier(ctx->variable),
            hasRange ? expr(ctx->expr(0)) : nullptr,
            hasRange ? expr(ctx->expr(1)) : nullptr,
            copy(tensors)};
  }

  ModelText modelText(P::ModelTextContext *ctx) {
    ModelText result{identifier(ctx->ID()), {}, {}};
    SourceRange quoted = range(ctx->STRING()->getSymbol());
    result.text.range = {quoted.begin.advanced(1),
                         SourceLoc{quoted.end.raw - 1}};
    result.text.text = context.copy(
        StringRef(ctx->STRING()->getText()).drop_front().drop_back());
    if (result.name.text != "layout")
      return result;
    SmallVector<StringRef> stages;
    if (auto layout =
            parseLayout(result.text.text, result.text.range.begin, diags))
      for (const std::string &stage : *layout)
        stages.push_back(context.copy(stage));
    result.stages = copy(stages);
    return result;
  }

  const Item *comm(P::CommContext *ctx) {
    SmallVector<CommSetting> settings;
    for (auto *setting : ctx->commSetting()) {
      SmallVector<Identifier> values;
      for (auto *value : setting->commValue())
        values.push_back(
            {context.copy(StringRef(value->getText())), range(value)});
      settings.push_back({identifier(setting->ID()), copy(values)});
    }
    return context.make<CommItem>(firstWord(ctx), copy(settings));
  }

  // ---- Graphs ----

  GraphBody graphBody(P::GraphBodyContext *ctx) {
    SmallVector<const GraphStmt *> statements;
    for (auto *child : ctx->graphStatement())
      statements.push_back(graphStatement(child->children[0]));
    return copy(statements);
  }

  const GraphStmt *graphStatement(antlr4::tree::ParseTree *tree) {
    if (auto *c = dynamic_cast<P::ChainContext *>(tree)) {
      SmallVector<GraphLink> links;
      for (auto *child : c->link())
        links.push_back(link(child));
      return context.make<ChainStmt>(firstWord(c), identifier(c->ID()),
                                     copy(links));
    }
    if (auto *c = dynamic_cast<P::UseLayerContext *>(tree))
      return context.make<UseLayerStmt>(firstWord(c), identifier(c->ID()));
    if (auto *c = dynamic_cast<P::PerLayerContext *>(tree))
      return context.make<PerLayerStmt>(firstWord(c),
                                        graphBody(c->graphBody()));
    if (auto *c = dynamic_cast<P::PlaceContext *>(tree)) {
      auto names = c->ID();
      SourceRange whole = range(c);
      whole.end.raw -= 1; // Without the semicolon.
      return context.make<PlaceStmt>(
          whole, names.size() == 3 ? identifier(names[0]) : Identifier{},
          identifier(names[names.size() - 2]), identifier(names.back()));
    }
    if (auto *c = dynamic_cast<P::GraphIfContext *>(tree)) {
      SmallVector<GraphIfStmt::Branch> branches;
      auto conditions = c->expr();
      auto bodies = c->graphBody();
      for (size_t i = 0; i != bodies.size(); ++i)
        branches.push_back(
            {i < conditions.size() ? expr(conditions[i]) : nullptr,
             graphBody(bodies[i])});
      return context.make<GraphIfStmt>(firstWord(c), copy(branches));
    }
    if (auto *c = dynamic_cast<P::GraphRepeatContext *>(tree))
      return context.make<GraphRepeatStmt>(firstWord(c), expr(c->expr()),
                                           graphBody(c->graphBody()));
    auto *c = dynamic_cast<P::GraphForContext *>(tree);
    assert(c && "a statement of a graph that the builder does not know");
    return context.make<GraphForStmt>(firstWord(c), identifier(c->ID()),
                                      expr(c->expr(0)), expr(c->expr(1)),
                                      graphBody(c->graphBody()));
  }

  /// The names in order: perhaps the part, the node, perhaps the lane; or the
  /// direction of the layers.
  GraphLink link(P::LinkContext *ctx) {
    GraphLink result{range(ctx), false, {}, {}, {}, {}};
    Identifier *place = &result.name;
    for (antlr4::tree::ParseTree *child : ctx->children) {
      std::string text = child->getText();
      if (text == "layer") {
        result.isLayers = true;
        place = &result.direction;
      } else if (text == ".") {
        result.part = result.name;
      } else if (auto *lane = dynamic_cast<P::LaneContext *>(child)) {
        result.lane = {context.copy(StringRef(text)), range(lane)};
      } else if (text != "per" && text != "@") {
        *place = identifier(dynamic_cast<antlr4::tree::TerminalNode *>(child));
      }
    }
    return result;
  }

  // ---- Statements ----

  Body body(P::BodyContext *ctx) {
    SmallVector<const Stmt *> statements;
    for (auto *child : ctx->statement())
      statements.push_back(statement(child->children[0]));
    return copy(statements);
  }

  const Stmt *statement(antlr4::tree::ParseTree *tree) {
    if (auto *c = dynamic_cast<P::ActionContext *>(tree)) {
      SourceRange whole = range(c);
      whole.end.raw -= 1; // Without the semicolon.
      return context.make<ActionStmt>(whole, identifier(c->ID()),
                                      arguments(c->argument()));
    }
    if (auto *c = dynamic_cast<P::LetContext *>(tree))
      return context.make<LetStmt>(firstWord(c), identifier(c->ID()),
                                   expr(c->expr()));
    if (auto *c = dynamic_cast<P::PhaseContext *>(tree))
      return context.make<PhaseStmt>(firstWord(c), identifier(c->ID()),
                                     body(c->body()));
    if (auto *c = dynamic_cast<P::RepeatContext *>(tree))
      return context.make<RepeatStmt>(firstWord(c), expr(c->expr()),
                                      body(c->body()));
    if (auto *c = dynamic_cast<P::ForLoopContext *>(tree))
      return context.make<ForStmt>(firstWord(c), identifier(c->ID()),
                                   expr(c->expr(0)), expr(c->expr(1)),
                                   body(c->body()));
    if (auto *c = dynamic_cast<P::WhileLoopContext *>(tree))
      return context.make<WhileStmt>(firstWord(c), expr(c->expr()),
                                     body(c->body()));
    if (auto *c = dynamic_cast<P::IfElseContext *>(tree)) {
      SmallVector<IfStmt::Branch> branches;
      auto conditions = c->expr();
      auto bodies = c->body();
      for (size_t i = 0; i != bodies.size(); ++i)
        branches.push_back(
            {i < conditions.size() ? expr(conditions[i]) : nullptr,
             body(bodies[i])});
      return context.make<IfStmt>(firstWord(c), copy(branches));
    }
    if (auto *c = dynamic_cast<P::OverlapContext *>(tree))
      return context.make<OverlapStmt>(firstWord(c), body(c->body()));
    if (auto *c = dynamic_cast<P::DeferContext *>(tree))
      return context.make<DeferStmt>(firstWord(c), identifier(c->ID()),
                                     optional(c->expr()), body(c->body()));
    auto *c = dynamic_cast<P::DrainContext *>(tree);
    assert(c && "a statement that the builder does not know");
    return context.make<DrainStmt>(firstWord(c), identifier(c->ID()),
                                   optional(c->expr()));
  }

  // ---- Expressions ----

  const Expr *optional(P::ExprContext *ctx) {
    return ctx ? expr(ctx) : nullptr;
  }

  const Expr *expr(P::ExprContext *ctx) {
    SourceRange where = range(ctx);
    if (auto *c = dynamic_cast<P::GroupContext *>(ctx))
      return expr(c->expr());
    if (auto *c = dynamic_cast<P::IntContext *>(ctx)) {
      std::string text = c->getText();
      int64_t value = 0;
      if (StringRef(text).getAsInteger(10, value))
        diags.report<diag::BadNumber>(where, text);
      return context.make<IntExpr>(where, value);
    }
    if (auto *c = dynamic_cast<P::FloatContext *>(ctx)) {
      std::string text = c->getText();
      double value = 0;
      if (StringRef(text).getAsDouble(value) || std::isinf(value))
        diags.report<diag::BadNumber>(where, text);
      return context.make<FloatExpr>(where, value);
    }
    if (auto *c = dynamic_cast<P::BoolContext *>(ctx))
      return context.make<BoolExpr>(where, c->value->getText() == "true");
    if (auto *c = dynamic_cast<P::NameContext *>(ctx))
      return context.make<NameExpr>(where, identifier(c->ID()).text);
    if (auto *c = dynamic_cast<P::CallContext *>(ctx)) {
      SmallVector<const Expr *> args;
      for (auto *arg : c->expr())
        args.push_back(expr(arg));
      return context.make<CallExpr>(where, identifier(c->ID()), copy(args));
    }
    if (auto *c = dynamic_cast<P::NegateContext *>(ctx))
      return context.make<UnaryExpr>(where, UnaryOp::Negate, expr(c->expr()));
    if (auto *c = dynamic_cast<P::NotContext *>(ctx))
      return context.make<UnaryExpr>(where, UnaryOp::Not, expr(c->expr()));
    if (auto *c = dynamic_cast<P::BinaryContext *>(ctx)) {
      const Expr *lhs = expr(c->expr(0)), *rhs = expr(c->expr(1));
      return context.make<BinaryExpr>(where, binaryOp(c->op->getText()),
                                      range(c->op), lhs, rhs);
    }
    auto *c = dynamic_cast<P::ConditionalContext *>(ctx);
    assert(c && "an expression that the builder does not know");
    const Expr *condition = expr(c->expr(0)), *then = expr(c->expr(1)),
               *otherwise = expr(c->expr(2));
    return context.make<ConditionalExpr>(where, condition, then, otherwise);
  }

  static BinaryOp binaryOp(StringRef text) {
    return llvm::StringSwitch<BinaryOp>(text)
        .Case("+", BinaryOp::Add)
        .Case("-", BinaryOp::Sub)
        .Case("*", BinaryOp::Mul)
        .Case("/", BinaryOp::Div)
        .Case("%", BinaryOp::Mod)
        .Case("==", BinaryOp::Eq)
        .Case("!=", BinaryOp::Ne)
        .Case("<", BinaryOp::Lt)
        .Case("<=", BinaryOp::Le)
        .Case(">", BinaryOp::Gt)
        .Case(">=", BinaryOp::Ge)
        .Case("and", BinaryOp::And)
        .Case("or", BinaryOp::Or);
  }

  const Offsets &offsets;
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
  diags.report<diag::NotText>(
      Place(), sources.name(source), offset,
      fmt::format("0x{:02x}", static_cast<unsigned char>(text[offset])));
  return false;
}

std::optional<File> ppcc::parseFile(uint32_t source,
                                    const SourceManager &sources,
                                    Context &context, DiagnosticEngine &diags) {
  if (!checkText(source, sources, diags))
    return std::nullopt;
  size_t before = diags.errorCount();
  StringRef text = sources.text(source);
  Offsets offsets(source, sources);

  antlr4::ANTLRInputStream input(text.str());
  ScheduleLexer lexer(&input);
  lexer.removeErrorListeners();
  TokenList tokens = lex(lexer, offsets, text, diags);
  if (tokens.empty())
    return std::nullopt;

  antlr4::ListTokenSource list(std::move(tokens));
  antlr4::CommonTokenStream stream(&list);
  ScheduleParser parser(&stream);
  parser.removeErrorListeners();
  parser.setErrorHandler(std::make_shared<SyntaxErrors>(offsets, diags));
  auto *tree = parser.file();
  if (diags.errorCount() != before)
    return std::nullopt;
  File file = TreeBuilder(offsets, context, diags).file(tree);
  file.source = source;
  if (diags.errorCount() != before)
    return std::nullopt;
  return file;
}
