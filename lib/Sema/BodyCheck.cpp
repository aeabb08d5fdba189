// Checks statements, and the functions and blocks that they call.
#include "Checks.h"
#include "ppcc/Basic/Diagnostics/Syntax.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

class BodyChecker : Checking {
public:
  using Checking::Checking;

  void body(ast::Body statements, BodyOf of) {
    frame.evalDepth = std::max(frame.evalDepth, ++frame.nowDepth);
    Names::Scope scope(names);
    for (const ast::Stmt *s : statements)
      statement(s, of);
    --frame.nowDepth;
  }

  void statement(const ast::Stmt *stmt, BodyOf of) {
    using ast::StmtKind;
    if (!holds(of, stmt->kind)) {
      reportMisplaced(stmt, of, diags);
      return;
    }
    switch (stmt->kind) {
    case StmtKind::Let: {
      auto *s = cast<ast::LetStmt>(stmt);
      Type type = exprs.check(s->value);
      module.stmts[s->id].index =
          names.defineLocal(s->name, type, Symbol::Binder::Let);
      return;
    }
    case StmtKind::Phase:
      notInOverlap(stmt, "phase");
      return body(cast<ast::PhaseStmt>(stmt)->body, of);
    case StmtKind::Repeat:
      exprs.expect(cast<ast::RepeatStmt>(stmt)->count, Type::Int,
                   "the count of `repeat`");
      return body(cast<ast::RepeatStmt>(stmt)->body, of);
    case StmtKind::For: {
      auto *s = cast<ast::ForStmt>(stmt);
      exprs.expectInts({s->from, s->to}, "the range of `for`");
      Names::Scope scope(names);
      module.stmts[s->id].index =
          names.defineLocal(s->variable, Type::Int, Symbol::Binder::Loop);
      bool isHead = of == BodyOf::Schedule || of == BodyOf::Pipe;
      return body(s->body, isHead ? BodyOf::Edges : of);
    }
    case StmtKind::While:
      exprs.expect(cast<ast::WhileStmt>(stmt)->condition, Type::Bool,
                   "the condition of `while`");
      return body(cast<ast::WhileStmt>(stmt)->body, of);
    case StmtKind::If:
      for (const ast::Branch &branch : cast<ast::IfStmt>(stmt)->branches) {
        if (branch.condition)
          exprs.expect(branch.condition, Type::Bool, "the condition of `if`");
        body(branch.body, of);
      }
      return;
    case StmtKind::Named: {
      auto *s = cast<ast::NamedItem>(stmt);
      if (s->what.text != "each")
        diags.report<diag::UnexpectedToken>(
            s->what.range, fmt::format("`{}`", s->what.text),
            "`each`, the only block of a pattern");
      return body(s->body, BodyOf::Each);
    }
    case StmtKind::Setting:
      return exprs.expect(cast<ast::SettingItem>(stmt)->value, Type::Float,
                          "a setting of a layer");
    case StmtKind::Tensors:
      return checkTensors(*cast<ast::TensorsItem>(stmt), exprs);
    case StmtKind::Edge:
      return exprs.expectInts(
          {cast<ast::EdgeStmt>(stmt)->from, cast<ast::EdgeStmt>(stmt)->to},
          "a stage");
    case StmtKind::Overlap: {
      notInOverlap(stmt, "overlap");
      llvm::SaveAndRestore inOverlap(frame.inOverlap, true);
      return body(cast<ast::OverlapStmt>(stmt)->body, of);
    }
    case StmtKind::Defer: {
      auto *s = cast<ast::DeferStmt>(stmt);
      notInOverlap(stmt, "defer");
      module.stmts[s->id].index = deferrable(s->action);
      for (auto [word, wanted] : {std::pair(&s->fill, StringRef("fill")),
                                  std::pair(&s->capWord, StringRef("cap"))})
        if (!word->text.empty() && word->text != wanted)
          diags.report<diag::UnexpectedToken>(word->range,
                                              fmt::format("`{}`", word->text),
                                              fmt::format("`{}`", wanted));
      if (s->cap && s->fill.text.empty())
        diags.report<diag::UnexpectedToken>(s->capWord.range, "`cap`",
                                            "`fill` before it");
      exprs.expectInts({s->lag}, "the lag");
      exprs.expectInts({s->cap}, "the cap");
      return body(s->body, of);
    }
    case StmtKind::Drain: {
      auto *s = cast<ast::DrainStmt>(stmt);
      notInOverlap(stmt, "drain");
      module.stmts[s->id].index = deferrable(s->action);
      if (s->chunk)
        exprs.chunkArgument(s->chunk);
      return;
    }
    case StmtKind::Action: {
      auto *s = cast<ast::ActionStmt>(stmt);
      if (std::optional<KindId> kind = exprs.computeKind(s->name.text)) {
        names.see(Space::Statement, s->name);
        return action(s, *kind);
      }
      return call(s);
    }
    default: // The names in chains and places: see checkGraphs().
      return;
    }
  }

private:
  void notInOverlap(const ast::Stmt *stmt, StringRef word) {
    if (!frame.structural)
      frame.structural = stmt;
    if (frame.inOverlap)
      diags.report<diag::NotInOverlap>(stmt->range, word);
  }

  /// The kind that `defer` and `drain` name: one that some other kind holds as
  /// a part.
  uint32_t deferrable(const ast::Identifier &name) {
    std::optional<KindId> part = exprs.computeKind(name.text);
    if (!part) {
      diags.report<diag::UnknownAction>(name.range, name.text, "");
      return 0;
    }
    bool ok = false;
    for (size_t whole = 0; whole != module.kinds.size(); ++whole)
      if (auto rest = module.kinds.without(KindId(whole), *part))
        ok |= (module.kinds[*part].needs & module.kinds[*rest].defines) != 0;
    if (!ok)
      diags.report<diag::NotDeferrable>(name.range, name.text);
    return part->value;
  }

  void action(const ast::ActionStmt *stmt, KindId kind) {
    module.stmts[stmt->id] = {false, kind.value};
    KindScope scope = module.kinds[kind].scope;
    bool hasChunk = false, hasMicrobatch = false;
    for (const ast::Argument &arg : stmt->args) {
      bool isChunk = arg.label.text.empty();
      if (isChunk ? scope == KindScope::Rank : scope != KindScope::Microbatch)
        diags.report<diag::NotByMicrobatch>(arg.value->range, stmt->name.text,
                                            kindScopeNames()[size_t(scope)],
                                            isChunk ? "chunk" : "microbatch");
      if (isChunk && hasMicrobatch && !hasChunk) {
        exprs.check(arg.value);
        diags.report<diag::ArgumentBehindLabel>(arg.value->range, "mb");
      } else if (isChunk && !hasChunk) {
        exprs.chunkArgument(arg.value);
        hasChunk = true;
      } else if (arg.label.text == "mb" && !hasMicrobatch) {
        exprs.expect(arg.value, Type::Int, "the microbatch");
        hasMicrobatch = true;
      } else if (isChunk || arg.label.text == "mb") {
        auto report = exprs.wrongCount(stmt->name, "a chunk and perhaps `mb:`",
                                       stmt->args.size());
        report.note({}, "a microbatch is named: `{}(c, mb: m)`",
                    stmt->name.text);
        return;
      } else {
        exprs.check(arg.value);
        diags.report<diag::UnknownLabel>(arg.label.range, arg.label.text,
                                         didYouMean(arg.label.text, {"mb"}));
      }
    }
  }

  void call(const ast::ActionStmt *stmt) {
    bool isReported;
    Symbol *symbol = names.find(Space::Statement, stmt->name, isReported);
    if (!symbol || symbol->isKind) {
      for (const ast::Argument &arg : stmt->args)
        exprs.check(arg.value);
      if (!isReported)
        unknown(stmt->name);
      return;
    }
    module.stmts[stmt->id] = {true, symbol->index};
    const Block &callee = module.blocks[symbol->index];
    SmallVector<const ast::Expr *> args;
    for (const ast::Argument &arg : stmt->args) {
      if (!arg.label.text.empty())
        diags.report<diag::UnknownLabel>(arg.label.range, arg.label.text, "");
      args.push_back(arg.value);
    }
    exprs.arguments(stmt->name, callee.params, args);
    exprs.deepen(callee.depth, stmt->name.range);
    if (!callee.structural)
      return;
    if (frame.inOverlap)
      diags.report<diag::NotInOverlap>(stmt->range, stmt->name.text)
          .note(callee.structural->range,
                "because of this statement of the block");
    if (!frame.structural)
      frame.structural = callee.structural;
  }

  void unknown(const ast::Identifier &name) {
    auto known = [&] {
      std::vector<StringRef> known = names.visible(Space::Statement);
      llvm::append_range(known, module.kinds.computeLetters());
      return known;
    };
    diags.report<diag::UnknownAction>(name.range, name.text,
                                      didYouMean(name.text, known));
  }

  Frame &frame = names.frame;
};

} // namespace

void sema::checkFunction(const ast::FunctionItem *item, ExprChecker &exprs) {
  Function function;
  function.item = item;
  {
    Names::FrameScope frame(exprs.names, {Space::Function, item->name});
    function.params =
        exprs.parameters(item->params, ExprChecker::With::Nothing);
    function.result = exprs.check(item->value);
    function.depth = frame.depth();
    function.numLocals = exprs.names.frame.numLocals;
  }
  declare(Space::Function, item->name, exprs.module.functions,
          std::move(function), exprs);
}

void sema::checkBlock(const ast::BlockItem *item, ExprChecker &exprs) {
  Block block{item, {}, 0, 0, nullptr};
  {
    Names::FrameScope frame(exprs.names,
                            {Space::Statement, item->name, /*onRank=*/true});
    block.params = exprs.parameters(item->params, ExprChecker::With::Nothing);
    checkBody(item->body, BodyOf::Rank, exprs);
    block.numLocals = exprs.names.frame.numLocals;
    block.structural = exprs.names.frame.structural;
    block.depth = frame.depth();
  }
  declare(Space::Statement, item->name, exprs.module.blocks, std::move(block),
          exprs);
}

void sema::checkBody(ast::Body statements, BodyOf of, ExprChecker &exprs) {
  BodyChecker(exprs).body(statements, of);
}

void sema::checkStatement(const ast::Stmt *statement, BodyOf of,
                          ExprChecker &exprs) {
  BodyChecker(exprs).statement(statement, of);
}
