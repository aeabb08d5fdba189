// Checks statements, and the functions and blocks that they call.
#include "Checks.h"
#include "ppcc/Basic/Diagnostics/Syntax.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

struct BodyChecker {
  ExprChecker &exprs;
  Module &module = exprs.module;
  DiagnosticEngine &diags = exprs.diags;
  SymbolTable &names = exprs.names;

  void body(ast::Body statements, BodyKind of) {
    frame.evalDepth = std::max(frame.evalDepth, ++frame.currentDepth);
    SymbolTable::Scope scope(names);
    for (const ast::Stmt *s : statements)
      statement(s, of);
    --frame.currentDepth;
  }

  void statement(const ast::Stmt *stmt, BodyKind of) {
    if (!holds(of, stmt->kind))
      return reportMisplaced(stmt, of, diags);
    dispatch(stmt, [&](const auto &node) { check(node, of); });
  }

  /// The names in chains and places: see checkGraphs().
  void check(const ast::Stmt &, BodyKind) {}
  void check(const ast::LetStmt &let, BodyKind) {
    Type type = exprs.check(let.value);
    module.stmts[let.id].index =
        names.defineLocal(let.name, type, Symbol::Binder::Let,
                          {let.range.begin, let.value->range.end});
  }
  void check(const ast::PhaseStmt &phase, BodyKind of) {
    notInOverlap(&phase, "phase");
    body(phase.body, of);
  }
  void check(const ast::RepeatStmt &loop, BodyKind of) {
    exprs.expect(loop.count, Type::Int, "the count of `repeat`");
    body(loop.body, of);
  }
  void check(const ast::WhileStmt &loop, BodyKind of) {
    exprs.expect(loop.condition, Type::Bool, "the condition of `while`");
    body(loop.body, of);
  }
  void check(const ast::ForStmt &loop, BodyKind of) {
    exprs.expectInts({loop.from, loop.to}, "the range of `for`");
    SymbolTable::Scope scope(names);
    module.stmts[loop.id].index =
        names.defineLocal(loop.variable, Type::Int, Symbol::Binder::Loop);
    bool isHead = of == BodyKind::Schedule || of == BodyKind::Pipe;
    body(loop.body, isHead ? BodyKind::Edges : of);
  }
  void check(const ast::IfStmt &choice, BodyKind of) {
    for (const ast::Branch &branch : choice.branches) {
      if (branch.condition)
        exprs.expect(branch.condition, Type::Bool, "the condition of `if`");
      body(branch.body, of);
    }
  }
  void check(const ast::NamedItem &item, BodyKind) {
    if (item.what.text != "each")
      diags.report<diag::UnexpectedToken>(
          item.what.range, fmt::format("`{}`", item.what.text),
          "`each`, the only block of a pattern");
    body(item.body, BodyKind::Each);
  }
  void check(const ast::SettingItem &item, BodyKind) {
    exprs.expect(item.value, Type::Float, "a setting of a layer");
  }
  void check(const ast::TensorsItem &item, BodyKind) {
    checkTensors(item, exprs);
  }
  void check(const ast::EdgeStmt &edge, BodyKind) {
    exprs.expectInts({edge.from, edge.to}, "a stage");
  }
  void check(const ast::OverlapStmt &overlap, BodyKind of) {
    notInOverlap(&overlap, "overlap");
    llvm::SaveAndRestore inOverlap(frame.inOverlap, true);
    body(overlap.body, of);
  }
  void check(const ast::DeferStmt &defer, BodyKind of) {
    notInOverlap(&defer, "defer");
    module.stmts[defer.id].index = deferrable(defer.action);
    for (auto [word, wanted] : {std::pair(&defer.fill, StringRef("fill")),
                                std::pair(&defer.capWord, StringRef("cap"))})
      if (!word->text.empty() && word->text != wanted)
        diags.report<diag::UnexpectedToken>(word->range,
                                            fmt::format("`{}`", word->text),
                                            fmt::format("`{}`", wanted));
    if (defer.cap && defer.fill.text.empty())
      diags.report<diag::UnexpectedToken>(defer.capWord.range, "`cap`",
                                          "`fill` before it");
    exprs.expectInts({defer.lag}, "the lag");
    exprs.expectInts({defer.cap}, "the cap");
    body(defer.body, of);
  }
  void check(const ast::DrainStmt &drain, BodyKind) {
    notInOverlap(&drain, "drain");
    module.stmts[drain.id].index = deferrable(drain.action);
    if (drain.chunk)
      exprs.chunkArgument(drain.chunk);
  }
  void check(const ast::ActionStmt &stmt, BodyKind) {
    std::optional<KindId> kind = exprs.computeKind(stmt.name.text);
    if (!kind)
      return call(&stmt);
    names.recordUse(NameSpace::Statement, stmt.name);
    action(&stmt, *kind);
  }

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
    auto leavesIt = [&](KindId whole) {
      auto rest = module.kinds.without(whole, *part);
      return rest && (module.kinds[*part].needs & module.kinds[*rest].defines);
    };
    if (llvm::none_of(module.kinds.ids(), leavesIt))
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
        diags.report<diag::NotPerMicrobatch>(arg.value->range, stmt->name.text,
                                             kindScopeNames()[size_t(scope)],
                                             isChunk ? "chunk" : "microbatch");
      if (isChunk && hasMicrobatch && !hasChunk) {
        exprs.check(arg.value);
        diags.report<diag::PositionalAfterLabel>(arg.value->range, "mb");
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

  /// What people write who come from other systems.
  static StringRef foreignAction(const ast::Identifier &name) {
    return llvm::StringSwitch<StringRef>(StringRef(name.text).lower())
        .Cases("fwd", "forward", "F")
        .Case("bwd", "B")
        .Default("");
  }

  void call(const ast::ActionStmt *stmt) {
    auto kind = module.kinds.find(stmt->name.text);
    bool isMessage =
        kind && (module.kinds[*kind].isSend() || module.kinds[*kind].isRecv());
    Symbol *symbol = exprs.called<diag::UnknownAction>(
        NameSpace::Statement, stmt->name, stmt->args,
        isMessage ? "the compiler places sends and receives (`--comm-order`)"
                  : "",
        foreignAction(stmt->name));
    if (!symbol)
      return;
    module.stmts[stmt->id] = {true, symbol->index};
    const Block &callee = module.blocks[symbol->index];
    SmallVector<const ast::Expr *> args;
    for (const ast::Argument &arg : stmt->args) {
      if (!arg.label.text.empty())
        diags.report<diag::UnknownLabel>(arg.label.range, arg.label.text, "");
      args.push_back(arg.value);
    }
    exprs.arguments(stmt->name, callee, args);
    exprs.addCallDepth(callee.depth, stmt->name.range);
    if (!callee.structural)
      return;
    if (frame.inOverlap)
      diags.report<diag::NotInOverlap>(stmt->range, stmt->name.text)
          .note(callee.structural->range,
                "because of this statement of the block");
    if (!frame.structural)
      frame.structural = callee.structural;
  }

  Frame &frame = names.frame;
};

} // namespace

void sema::checkFunction(const ast::FunctionItem *item, ExprChecker &exprs) {
  declare(NameSpace::Function, item, ExprChecker::With::Nothing,
          exprs.module.functions, exprs, [&](Function &function) {
            function.result = exprs.check(item->value);
          });
}

void sema::checkBlock(const ast::BlockItem *item, ExprChecker &exprs) {
  declare(NameSpace::Statement, item, ExprChecker::With::Nothing,
          exprs.module.blocks, exprs, [&](Block &block) {
            checkBody(item->body, BodyKind::Rank, exprs);
            block.structural = exprs.names.frame.structural;
          });
}

void sema::checkBody(ast::Body statements, BodyKind of, ExprChecker &exprs) {
  BodyChecker{exprs}.body(statements, of);
}

void sema::checkStatement(const ast::Stmt *statement, BodyKind of,
                          ExprChecker &exprs) {
  BodyChecker{exprs}.statement(statement, of);
}
