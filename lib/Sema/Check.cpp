// Resolves names and checks types.
#include "GraphCheck.h"
#include "Settings.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace ppcc;
using namespace ppcc::sema;
using llvm::ArrayRef;
using llvm::cast;
using llvm::dyn_cast;
using llvm::StringRef;

StringRef sema::typeName(Type type) {
  static constexpr StringRef names[] = {"error", "int", "bool", "float",
                                        "pipe"};
  return names[static_cast<unsigned>(type)];
}

namespace {

/// Evaluation recurses this deep at most, so that no schedule exhausts the
/// stack.
constexpr uint32_t maxDepth = 2000;

struct BuiltinRow {
  StringRef name;
  Builtin id;
};
constexpr BuiltinRow builtins[] = {
    {"min", Builtin::Min},       {"max", Builtin::Max},
    {"abs", Builtin::Abs},       {"layout", Builtin::Layout},
    {"issued", Builtin::Issued}, {"pending", Builtin::Pending},
    {"padded", Builtin::Padded},
};

const BuiltinRow *findBuiltin(StringRef name) {
  auto *found = llvm::find_if(
      builtins, [&](const BuiltinRow &row) { return row.name == name; });
  return found == std::end(builtins) ? nullptr : found;
}

std::string source(const ast::Expr *expr) {
  std::string text;
  llvm::raw_string_ostream out(text);
  print(expr, out);
  return text;
}

bool isCounter(Builtin id) {
  return id == Builtin::Issued || id == Builtin::Pending ||
         id == Builtin::Padded;
}

std::string count(size_t n, StringRef noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

/// What a name stands for.
struct Symbol {
  enum class Kind : uint8_t { Value, Function, Block } kind = Kind::Value;
  ExprInfo::Ref ref = ExprInfo::Ref::None;
  uint32_t index = 0;
  Type type = Type::Error;
  SourceRange range;
};

class Checker {
public:
  Checker(Module &module, const CommWords &words, DiagnosticEngine &diags)
      : module(module), words(words), diags(diags) {
    scopes.emplace_back();
  }

  void file(const ast::File &file, bool isMain) {
    noteDeclarations(file.items);
    declareKinds(file.items);
    for (const ast::Item *item : file.items)
      fileItem(item);
    llvm::DenseMap<StringRef, SourceRange> names;
    for (const ast::Schedule &decl : file.schedules) {
      if (auto [found, isNew] =
              names.try_emplace(decl.name.text, decl.name.range);
          !isNew)
        redefined(decl.name, found->second);
      Schedule checked = schedule(decl);
      if (isMain)
        module.schedules.push_back(std::move(checked));
    }
  }

private:
  using Scope = llvm::DenseMap<StringRef, Symbol>;

  // ---- Names ----

  Symbol *lookup(StringRef name) {
    for (Scope &scope : llvm::reverse(scopes))
      if (auto found = scope.find(name); found != scope.end())
        return &found->second;
    return nullptr;
  }

  void redefined(const ast::Identifier &name, SourceRange first) {
    diags.report<diag::Redefined>(name.range, name.text)
        .note(first, "first defined here");
  }

  void define(const ast::Identifier &name, Symbol symbol) {
    if (findBuiltin(name.text) || name.text == "mb")
      diags.report<diag::ReservedName>(name.range, name.text, "built in");
    else if (module.kinds.find(name.text))
      diags.report<diag::ReservedName>(name.range, name.text, "an action");
    symbol.range = name.range;
    if (auto [found, isNew] = scopes.back().try_emplace(name.text, symbol);
        !isNew)
      redefined(name, found->second.range);
  }

  uint32_t defineLocal(const ast::Identifier &name, Type type) {
    define(name,
           {Symbol::Kind::Value, ExprInfo::Ref::Local, numLocals, type, {}});
    return numLocals++;
  }
  uint32_t defineGlobal(const ast::Identifier &name, Type type) {
    define(name,
           {Symbol::Kind::Value, ExprInfo::Ref::Global, numGlobals, type, {}});
    return numGlobals++;
  }

  /// Names of functions and blocks that stand further down, to say more than
  /// "unknown".
  void noteDeclarations(ArrayRef<const ast::Item *> items) {
    for (const ast::Item *item : items)
      if (auto *function = dyn_cast<ast::FunctionItem>(item))
        later.try_emplace(function->name.text, function->name.range);
      else if (auto *block = dyn_cast<ast::BlockItem>(item))
        later.try_emplace(block->name.text, block->name.range);
  }

  std::vector<StringRef> visible(Symbol::Kind kind) {
    std::vector<StringRef> names;
    for (const Scope &scope : scopes)
      for (const auto &[name, symbol] : scope)
        if (symbol.kind == kind)
          names.push_back(name);
    llvm::sort(
        names); // The order of a hash table must not choose the suggestion.
    return names;
  }

  /// Reports a use of something that is being declared, or declared below. True
  /// when it was that.
  bool reportOrder(const ast::Identifier &name) {
    if (name.text == current.text) {
      diags.report<diag::RecursiveCall>(name.range, name.text)
          .note(current.range, "declared here");
      return true;
    }
    auto found = later.find(name.text);
    if (found == later.end())
      return false;
    diags.report<diag::UsedBeforeDeclared>(name.range, name.text)
        .note(found->second, "declared here");
    return true;
  }

  // ---- Expressions ----

  Type type(const ast::Expr *expr) const { return module.exprs[expr->id].type; }

  Type set(const ast::Expr *expr, Type type,
           ExprInfo::Ref ref = ExprInfo::Ref::None, uint32_t index = 0) {
    module.exprs[expr->id] = {type, ref, index};
    return type;
  }

  static bool fits(Type actual, Type wanted) {
    return actual == wanted || actual == Type::Error || wanted == Type::Error ||
           (actual == Type::Int && wanted == Type::Float);
  }

  void expect(const ast::Expr *expr, Type wanted, StringRef what) {
    Type actual = check(expr);
    if (!fits(actual, wanted))
      diags.report<diag::TypeMismatch>(expr->range, what, typeName(wanted),
                                       typeName(actual));
  }

  Type check(const ast::Expr *expr) {
    evalDepth = std::max(evalDepth, ++nowDepth);
    Type result = checkNode(expr);
    --nowDepth;
    return result;
  }

  Type checkNode(const ast::Expr *expr) {
    using ast::ExprKind;
    switch (expr->kind) {
    case ExprKind::Int:
      return set(expr, Type::Int);
    case ExprKind::Float:
      return set(expr, Type::Float);
    case ExprKind::Bool:
      return set(expr, Type::Bool);
    case ExprKind::Name:
      return name(cast<ast::NameExpr>(expr));
    case ExprKind::Call:
      return call(cast<ast::CallExpr>(expr));
    case ExprKind::Unary: {
      auto *unary = cast<ast::UnaryExpr>(expr);
      Type operand = check(unary->operand);
      bool isNot = unary->op == ast::UnaryOp::Not;
      if (operand != Type::Error &&
          (isNot ? operand != Type::Bool : !isNumber(operand))) {
        diags.report<diag::BadOperands>(unary->range, spelling(unary->op),
                                        typeName(operand));
        return set(expr, isNot ? Type::Bool : Type::Error);
      }
      return set(expr, operand);
    }
    case ExprKind::Binary:
      return binary(cast<ast::BinaryExpr>(expr));
    case ExprKind::Conditional: {
      auto *conditional = cast<ast::ConditionalExpr>(expr);
      expect(conditional->condition, Type::Bool, "the condition of `?:`");
      Type then = check(conditional->then),
           otherwise = check(conditional->otherwise);
      std::optional<Type> common = join(then, otherwise);
      if (!common)
        diags.report<diag::TypeMismatch>(conditional->otherwise->range,
                                         "the other side of `?:`",
                                         typeName(then), typeName(otherwise));
      return set(expr, common.value_or(Type::Error));
    }
    }
    llvm_unreachable("all kinds are handled");
  }

  static bool isNumber(Type type) {
    return type == Type::Int || type == Type::Float;
  }

  /// The type that holds both.
  static std::optional<Type> join(Type a, Type b) {
    if (a == Type::Error || b == Type::Error)
      return Type::Error;
    if (a == b)
      return a;
    if (isNumber(a) && isNumber(b))
      return Type::Float;
    return std::nullopt;
  }

  Type binary(const ast::BinaryExpr *expr) {
    using ast::BinaryOp;
    Type lhs = check(expr->lhs), rhs = check(expr->rhs);
    std::optional<Type> common = join(lhs, rhs);
    bool isCompare = expr->op >= BinaryOp::Eq && expr->op <= BinaryOp::Ge;
    bool isLogic = expr->op == BinaryOp::And || expr->op == BinaryOp::Or;
    bool isEquality = expr->op == BinaryOp::Eq || expr->op == BinaryOp::Ne;
    Type result =
        isCompare || isLogic ? Type::Bool : common.value_or(Type::Error);
    if (common == Type::Error)
      return set(expr, result);
    bool ok = common && (isLogic ? *common == Type::Bool
                                 : isEquality || isNumber(*common));
    if (ok && expr->op == BinaryOp::Mod)
      ok = *common == Type::Int;
    if (!ok) {
      std::string types =
          lhs == rhs ? typeName(lhs).str()
                     : fmt::format("{} and {}", typeName(lhs), typeName(rhs));
      diags.report<diag::BadOperands>(expr->opRange, spelling(expr->op), types);
      return set(expr, isCompare || isLogic ? Type::Bool : Type::Error);
    }
    return set(expr, result);
  }

  Type name(const ast::NameExpr *expr) {
    if (Symbol *symbol = lookup(expr->name)) {
      if (symbol->kind == Symbol::Kind::Value)
        return set(expr, symbol->type, symbol->ref, symbol->index);
      diags.report<diag::WrongArgumentCount>(expr->range, expr->name,
                                             "arguments", "none are");
      return Type::Error;
    }
    if (const BuiltinRow *row = findBuiltin(expr->name)) {
      // `padded` and `pending` stand for all of the rank.
      if (row->id < Builtin::Pending) {
        diags.report<diag::WrongArgumentCount>(expr->range, expr->name,
                                               "arguments", "none are");
        return Type::Error;
      }
      needRank(expr->name, expr->range);
      return set(expr, Type::Int, ExprInfo::Ref::Builtin,
                 static_cast<uint32_t>(row->id));
    }
    if (!reportOrder({expr->name, expr->range}))
      diags.report<diag::UnknownName>(
          expr->range, expr->name,
          didYouMean(expr->name, visible(Symbol::Kind::Value)));
    return Type::Error;
  }

  void needRank(StringRef name, SourceRange range) {
    if (!onRank)
      diags.report<diag::OnlyOnRank>(range, name);
  }

  void wrongCount(const ast::Identifier &name, std::string takes,
                  size_t given) {
    diags.report<diag::WrongArgumentCount>(
        name.range, name.text, takes,
        fmt::format("{} {}", given, given == 1 ? "is" : "are"));
  }

  Type call(const ast::CallExpr *expr) {
    if (const BuiltinRow *row = findBuiltin(expr->callee.text))
      return builtin(expr, row->id);
    Symbol *symbol = lookup(expr->callee.text);
    if (!symbol || symbol->kind != Symbol::Kind::Function) {
      for (const ast::Expr *arg : expr->args)
        check(arg);
      if (!reportOrder(expr->callee)) {
        std::vector<StringRef> names = visible(Symbol::Kind::Function);
        for (const BuiltinRow &row : builtins)
          names.push_back(row.name);
        diags.report<diag::UnknownFunction>(
            expr->callee.range, expr->callee.text,
            didYouMean(expr->callee.text, names));
      }
      return Type::Error;
    }
    uint32_t index = symbol->index;
    const Function &function = module.functions[index];
    arguments(expr->callee, function.params, expr->args);
    deepen(function.depth, expr->callee.range);
    return set(expr, function.result, ExprInfo::Ref::Function, index);
  }

  void arguments(const ast::Identifier &name, ArrayRef<Type> params,
                 ArrayRef<const ast::Expr *> args) {
    if (args.size() != params.size())
      wrongCount(name, count(params.size(), "argument"), args.size());
    for (size_t i = 0; i != args.size(); ++i)
      expect(args[i], i < params.size() ? params[i] : Type::Error,
             "this argument");
  }

  /// Counts what the evaluation of a callee adds at this place.
  void deepen(uint32_t depth, SourceRange range) {
    evalDepth = std::max(evalDepth, nowDepth + depth);
    if (evalDepth > maxDepth) {
      diags.report<diag::CallsTooDeep>(range, maxDepth);
      evalDepth = 0;
    }
  }

  Type builtin(const ast::CallExpr *expr, Builtin id) {
    ArrayRef<const ast::Expr *> args = expr->args;
    Type result = Type::Int;
    if (isCounter(id)) {
      needRank(expr->callee.text, expr->callee.range);
      size_t chunk = id == Builtin::Issued ? 1 : 0;
      if (args.size() < chunk || args.size() > chunk + 1) {
        wrongCount(expr->callee,
                   chunk ? "an action and perhaps a chunk"
                         : "a chunk or a pipe",
                   args.size());
        return set(expr, result);
      }
      if (chunk)
        actionArgument(args[0]);
      if (args.size() > chunk)
        chunkArgument(args[chunk]);
    } else if (id == Builtin::Layout) {
      if (args.empty() || args.size() > 2)
        wrongCount(expr->callee, "a layer and perhaps a stage", args.size());
      if (!args.empty())
        layerArgument(args[0]);
      for (const ast::Expr *stage : args.drop_front(args.empty() ? 0 : 1))
        expect(stage, Type::Int, "a stage");
    } else if (id == Builtin::Abs ? args.size() != 1 : args.size() < 2) {
      wrongCount(expr->callee,
                 id == Builtin::Abs ? "1 argument" : "2 arguments or more",
                 args.size());
      return set(expr, Type::Error);
    } else {
      for (const ast::Expr *arg : args) {
        Type argType = check(arg);
        if (argType != Type::Error && !isNumber(argType))
          diags.report<diag::TypeMismatch>(arg->range, "this argument",
                                           "a number", typeName(argType));
        result = join(result, argType).value_or(Type::Error);
      }
    }
    return set(expr, result, ExprInfo::Ref::Builtin, static_cast<uint32_t>(id));
  }

  /// The F of `issued(F, c)`: the name of a kind, kept as an integer.
  void actionArgument(const ast::Expr *expr) {
    auto *name = dyn_cast<ast::NameExpr>(expr);
    std::optional<KindId> kind = name ? computeKind(name->name) : std::nullopt;
    if (!kind)
      diags.report<diag::UnknownAction>(expr->range, source(expr), "");
    else
      set(expr, Type::Int, ExprInfo::Ref::None, kind->value);
  }

  /// The t of `layout(t, s)`, kept as a character.
  void layerArgument(const ast::Expr *expr) {
    auto *name = dyn_cast<ast::NameExpr>(expr);
    if (!name || name->name.size() != 1 || !llvm::isAlpha(name->name[0]))
      diags.report<diag::TypeMismatch>(expr->range, "the layer of `layout`",
                                       "a letter", "`" + source(expr) + "`");
    else
      set(expr, Type::Int, ExprInfo::Ref::None, name->name[0]);
  }

  void chunkArgument(const ast::Expr *expr) {
    Type actual = check(expr);
    if (actual != Type::Int && actual != Type::Pipe && actual != Type::Error)
      diags.report<diag::TypeMismatch>(expr->range, "a chunk",
                                       "an int or a pipe", typeName(actual));
  }

  std::optional<KindId> computeKind(StringRef letters) const {
    std::optional<KindId> kind = module.kinds.find(letters);
    return kind && module.kinds[*kind].isCompute() ? kind : std::nullopt;
  }

  // ---- Statements ----

  void body(ast::Body statements) {
    evalDepth = std::max(evalDepth, ++nowDepth);
    scopes.emplace_back();
    for (const ast::Stmt *s : statements)
      statement(s);
    scopes.pop_back();
    --nowDepth;
  }

  void notInOverlap(const ast::Stmt *stmt, StringRef word) {
    if (!structural)
      structural = stmt;
    if (inOverlap)
      diags.report<diag::NotInOverlap>(stmt->range, word);
  }

  void statement(const ast::Stmt *stmt) {
    using ast::StmtKind;
    switch (stmt->kind) {
    case StmtKind::Let: {
      auto *s = cast<ast::LetStmt>(stmt);
      Type valueType = check(s->value);
      module.stmts[s->id].index = defineLocal(s->name, valueType);
      return;
    }
    case StmtKind::Phase:
      notInOverlap(stmt, "phase");
      return body(cast<ast::PhaseStmt>(stmt)->body);
    case StmtKind::Repeat:
      expect(cast<ast::RepeatStmt>(stmt)->count, Type::Int,
             "the count of `repeat`");
      return body(cast<ast::RepeatStmt>(stmt)->body);
    case StmtKind::For: {
      auto *s = cast<ast::ForStmt>(stmt);
      expect(s->from, Type::Int, "the range of `for`");
      expect(s->to, Type::Int, "the range of `for`");
      scopes.emplace_back();
      module.stmts[s->id].index = defineLocal(s->variable, Type::Int);
      body(s->body);
      scopes.pop_back();
      return;
    }
    case StmtKind::While:
      expect(cast<ast::WhileStmt>(stmt)->condition, Type::Bool,
             "the condition of `while`");
      return body(cast<ast::WhileStmt>(stmt)->body);
    case StmtKind::If:
      for (const ast::IfStmt::Branch &branch :
           cast<ast::IfStmt>(stmt)->branches) {
        if (branch.condition)
          expect(branch.condition, Type::Bool, "the condition of `if`");
        body(branch.body);
      }
      return;
    case StmtKind::Overlap: {
      notInOverlap(stmt, "overlap");
      bool outer = std::exchange(inOverlap, true);
      body(cast<ast::OverlapStmt>(stmt)->body);
      inOverlap = outer;
      return;
    }
    case StmtKind::Defer: {
      auto *s = cast<ast::DeferStmt>(stmt);
      notInOverlap(stmt, "defer");
      module.stmts[s->id].index = deferrable(s->action);
      if (s->lag)
        expect(s->lag, Type::Int, "the lag");
      return body(s->body);
    }
    case StmtKind::Drain: {
      auto *s = cast<ast::DrainStmt>(stmt);
      notInOverlap(stmt, "drain");
      module.stmts[s->id].index = deferrable(s->action);
      if (s->chunk)
        chunkArgument(s->chunk);
      return;
    }
    case StmtKind::Action:
      return action(cast<ast::ActionStmt>(stmt));
    }
  }

  /// The kind that `defer` and `drain` name: one that some other kind holds as
  /// a part.
  uint32_t deferrable(const ast::Identifier &name) {
    std::optional<KindId> part = computeKind(name.text);
    if (!part) {
      diags.report<diag::UnknownAction>(name.range, name.text, "");
      return 0;
    }
    bool ok = false;
    for (size_t whole = 0; whole != module.kinds.size(); ++whole)
      if (std::optional<KindId> rest =
              module.kinds.without(KindId(whole), *part))
        ok |= (module.kinds[*part].needs & module.kinds[*rest].defines) != 0;
    if (!ok)
      diags.report<diag::NotDeferrable>(name.range, name.text);
    return part->value;
  }

  void action(const ast::ActionStmt *stmt) {
    if (std::optional<KindId> kind = computeKind(stmt->name.text)) {
      module.stmts[stmt->id] = {false, kind->value};
      bool hasChunk = false, hasMicrobatch = false;
      for (const ast::ActionStmt::Argument &arg : stmt->args) {
        KindScope scope = module.kinds[*kind].scope;
        if (arg.label.text.empty() ? scope == KindScope::Rank
                                   : scope != KindScope::Microbatch)
          diags.report<diag::NotByMicrobatch>(
              arg.value->range, stmt->name.text,
              kindScopeNames()[size_t(scope)],
              arg.label.text.empty() ? "chunk" : "microbatch");
        if (arg.label.text.empty() && !hasChunk && !hasMicrobatch) {
          chunkArgument(arg.value);
          hasChunk = true;
        } else if (arg.label.text == "mb" && !hasMicrobatch) {
          expect(arg.value, Type::Int, "the microbatch");
          hasMicrobatch = true;
        } else if (arg.label.text.empty() || arg.label.text == "mb") {
          return wrongCount(stmt->name, "a chunk and perhaps `mb:`",
                            stmt->args.size());
        } else {
          check(arg.value);
          diags.report<diag::UnknownLabel>(arg.label.range, arg.label.text,
                                           didYouMean(arg.label.text, {"mb"}));
        }
      }
      return;
    }
    Symbol *symbol = lookup(stmt->name.text);
    if (!symbol || symbol->kind != Symbol::Kind::Block) {
      for (const ast::ActionStmt::Argument &arg : stmt->args)
        check(arg.value);
      if (reportOrder(stmt->name))
        return;
      std::vector<StringRef> names = visible(Symbol::Kind::Block);
      for (const KindInfo &kind : module.kinds.rows())
        if (kind.isCompute())
          names.push_back(kind.letters);
      diags.report<diag::UnknownAction>(stmt->name.range, stmt->name.text,
                                        didYouMean(stmt->name.text, names));
      return;
    }
    module.stmts[stmt->id] = {true, symbol->index};
    const Block &callee = module.blocks[symbol->index];
    llvm::SmallVector<const ast::Expr *> args;
    for (const ast::ActionStmt::Argument &arg : stmt->args) {
      if (!arg.label.text.empty())
        diags.report<diag::UnknownLabel>(arg.label.range, arg.label.text, "");
      args.push_back(arg.value);
    }
    arguments(stmt->name, callee.params, args);
    deepen(callee.depth, stmt->name.range);
    if (callee.structural) {
      if (inOverlap)
        diags.report<diag::NotInOverlap>(stmt->range, stmt->name.text)
            .note(callee.structural->range,
                  "because of this statement of the block");
      if (!structural)
        structural = callee.structural;
    }
  }

  // ---- Declarations ----

  Type declaredType(const ast::Identifier &name, Type otherwise) {
    if (name.text.empty())
      return otherwise;
    Type found = llvm::StringSwitch<Type>(name.text)
                     .Case("int", Type::Int)
                     .Case("bool", Type::Bool)
                     .Case("float", Type::Float)
                     .Case("pipe", Type::Pipe)
                     .Default(Type::Error);
    if (found == Type::Error)
      diags.report<diag::UnknownType>(
          name.range, name.text,
          didYouMean(name.text, {"int", "bool", "float", "pipe"}));
    return found;
  }

  std::vector<Type> localParams(ArrayRef<ast::Parameter> params) {
    std::vector<Type> types;
    for (const ast::Parameter &param : params) {
      types.push_back(declaredType(param.type, Type::Int));
      if (param.defaultValue)
        diags.report<diag::UnexpectedToken>(
            param.defaultValue->range, "default value",
            "`,` or `)`: only schedules have defaults");
      defineLocal(param.name, types.back());
    }
    return types;
  }

  /// Runs `check` in a new frame of locals and gives the depth of what it
  /// checked.
  template <class Fn> uint32_t inFrame(const ast::Identifier &name, Fn check) {
    auto saved = std::tuple(numLocals, evalDepth, nowDepth, current);
    numLocals = evalDepth = nowDepth = 0;
    current = name;
    scopes.emplace_back();
    check();
    scopes.pop_back();
    uint32_t depth = evalDepth + 1;
    std::tie(numLocals, evalDepth, nowDepth, current) = saved;
    return depth;
  }

  void functionOrBlock(const ast::Item *item) {
    if (auto *decl = dyn_cast<ast::FunctionItem>(item)) {
      Function function{decl, {}, Type::Error, 0};
      bool wasOnRank = std::exchange(onRank, false);
      function.depth = inFrame(decl->name, [&] {
        function.params = localParams(decl->params);
        function.result = check(decl->value);
      });
      onRank = wasOnRank;
      module.functions.push_back(std::move(function));
      later.erase(decl->name.text);
      define(decl->name, {Symbol::Kind::Function,
                          ExprInfo::Ref::Function,
                          static_cast<uint32_t>(module.functions.size() - 1),
                          Type::Error,
                          {}});
      return;
    }
    auto *decl = cast<ast::BlockItem>(item);
    Block block{decl, {}, 0, 0, nullptr};
    structural = nullptr;
    bool wasOnRank = std::exchange(onRank, true);
    block.depth = inFrame(decl->name, [&] {
      block.params = localParams(decl->params);
      body(decl->body);
      block.numLocals = numLocals;
    });
    onRank = wasOnRank;
    block.structural = std::exchange(structural, nullptr);
    module.blocks.push_back(std::move(block));
    later.erase(decl->name.text);
    define(decl->name, {Symbol::Kind::Block,
                        ExprInfo::Ref::None,
                        static_cast<uint32_t>(module.blocks.size() - 1),
                        Type::Error,
                        {}});
  }

  template <class T> bool once(const T *&place, const T *item, StringRef what) {
    if (!place) {
      place = item;
      return true;
    }
    diags.report<diag::DuplicateItem>(item->range, what)
        .note(place->range, "the first is here");
    return false;
  }

  Schedule schedule(const ast::Schedule &decl) {
    Schedule result;
    result.decl = &decl;
    numGlobals = numLocals = 0;
    scopes.emplace_back();
    noteDeclarations(itemsOf(decl));
    for (const ast::Parameter &param : decl.params) {
      Type declared = declaredType(param.type, Type::Error);
      if (param.type.text.empty())
        diags.report<diag::ExpectedToken>(
            param.name.range,
            "a type behind the name of a parameter, like `: int`");
      else if (declared == Type::Pipe)
        diags.report<diag::TypeMismatch>(param.type.range, "a parameter",
                                         "int, bool or float", "pipe");
      if (param.defaultValue)
        expect(param.defaultValue, declared, "the default value");
      result.params.push_back({&param, declared});
      defineGlobal(param.name, declared);
    }

    const ast::RanksItem *ranks = nullptr;
    const ast::BackwardItem *backward = nullptr;
    PipeDecl main;
    main.name = "main";
    main.range = decl.name.range;
    const ast::Item *mainItem = nullptr;
    for (const ast::Item *item : decl.items) {
      switch (item->kind) {
      case ast::ItemKind::Let: {
        auto *let = cast<ast::LetItem>(item);
        Type valueType = check(let->value);
        result.header.push_back(let);
        result.letSlots.push_back(defineGlobal(let->name, valueType));
        break;
      }
      case ast::ItemKind::Require:
        expect(cast<ast::RequireItem>(item)->condition, Type::Bool,
               "the condition of `require`");
        result.header.push_back(item);
        break;
      case ast::ItemKind::Ranks:
        expect(cast<ast::RanksItem>(item)->count, Type::Int,
               "the number of ranks");
        if (once(ranks, cast<ast::RanksItem>(item), "`ranks`"))
          result.header.push_back(item);
        break;
      case ast::ItemKind::Backward:
        expect(cast<ast::BackwardItem>(item)->condition, Type::Bool,
               "the condition of `backward`");
        if (once(backward, cast<ast::BackwardItem>(item), "`backward`"))
          result.header.push_back(item);
        break;
      case ast::ItemKind::Function:
      case ast::ItemKind::Block:
        functionOrBlock(item);
        break;
      case ast::ItemKind::Pipe:
        pipe(cast<ast::PipeItem>(item), result);
        break;
      case ast::ItemKind::Model:
        if (once(result.model, cast<ast::ModelItem>(item), "`model`"))
          result.modelSlots = model(*result.model);
        break;
      case ast::ItemKind::Comm:
        if (once(result.comm, cast<ast::CommItem>(item), "`comm`"))
          checkComm(*result.comm, words, diags);
        break;
      case ast::ItemKind::Layer:
        result.layers.push_back(cast<ast::LayerItem>(item));
        graphBody(result.layers.back()->body);
        break;
      case ast::ItemKind::StageGraph:
        if (once(result.graph, cast<ast::StageGraphItem>(item),
                 "`stage graph`"))
          stageGraph(result);
        break;
      case ast::ItemKind::Pattern:
        result.patterns.push_back(cast<ast::PatternItem>(item));
        graphBody(result.patterns.back()->body);
        break;
      case ast::ItemKind::Insert:
        result.rules.push_back(insertOfSchedule(cast<ast::InsertItem>(item)));
        break;
      case ast::ItemKind::Apply:
        apply(cast<ast::ApplyItem>(item), result.rules);
        break;
      case ast::ItemKind::OnRank:
        once(result.onRank, cast<ast::OnRankItem>(item), "`on rank`");
        break;
      default:
        mainItem = mainItem ? mainItem : item;
        pipeItem(item, main);
      }
    }
    result.headerLocals = numLocals;
    checkGraphs(result, module.kinds, diags);
    if (mainItem && !result.pipes.empty())
      diags
          .report<diag::MixedPipes>(mainItem->range,
                                    "stages, placement, microbatches and edges")
          .note(result.pipes.front().range, "the pipe is here");
    if (result.pipes.empty())
      result.pipes.push_back(std::move(main));
    for (const PipeDecl &p : result.pipes)
      complete(p, result.pipeSlots.empty()
                      ? fmt::format("schedule `{}`", decl.name.text)
                      : fmt::format("pipe `{}`", p.name));
    if (!ranks)
      diags.report<diag::MissingItem>(
          decl.name.range, fmt::format("schedule `{}`", decl.name.text),
          "`ranks`");
    if (!result.onRank) {
      diags.report<diag::MissingItem>(
          decl.name.range, fmt::format("schedule `{}`", decl.name.text),
          "`on rank`");
    } else {
      onRank = true;
      inFrame({}, [&] {
        defineLocal(result.onRank->variable, Type::Int);
        body(result.onRank->body);
        result.numLocals = numLocals;
      });
      onRank = false;
    }
    result.numGlobals = numGlobals;
    scopes.pop_back();
    for (const ast::Item *item : decl.items)
      if (auto *function = dyn_cast<ast::FunctionItem>(item))
        later.erase(function->name.text);
      else if (auto *block = dyn_cast<ast::BlockItem>(item))
        later.erase(block->name.text);
    return result;
  }

  static ArrayRef<const ast::Item *> itemsOf(const ast::Schedule &decl) {
    return decl.items;
  }

  void complete(const PipeDecl &pipe, std::string owner) {
    if (!pipe.microbatches)
      diags.report<diag::MissingItem>(pipe.range, owner, "`microbatches`");
    if (pipe.placement && (pipe.stages || pipe.stageMap))
      diags
          .report<diag::DuplicateItem>(pipe.placement->range,
                                       "way to place the stages")
          .note(pipe.stages ? pipe.stages->range : pipe.stageMap->range,
                "the first is here");
    else if (!pipe.placement && !pipe.stageMap)
      diags.report<diag::MissingItem>(
          pipe.range, owner,
          "`placement`, or `stages` with `stage s on rank ...`");
    else if (!pipe.placement && !pipe.stages)
      diags.report<diag::MissingItem>(pipe.range, owner,
                                      "`stages`, the number of them");
  }

  void pipe(const ast::PipeItem *item, Schedule &schedule) {
    PipeDecl decl;
    decl.name = item->name.text;
    decl.range = item->name.range;
    for (const ast::Item *child : item->items)
      pipeItem(child, decl);
    schedule.pipeSlots.push_back(defineGlobal(item->name, Type::Pipe));
    schedule.pipes.push_back(std::move(decl));
  }

  void pipeItem(const ast::Item *item, PipeDecl &decl) {
    switch (item->kind) {
    case ast::ItemKind::Microbatches: {
      auto *i = cast<ast::MicrobatchesItem>(item);
      once(decl.microbatches, i, "`microbatches`");
      for (const ast::Expr *expr : {i->first, i->end, i->pad})
        if (expr)
          expect(expr, Type::Int, "a number of microbatches");
      return;
    }
    case ast::ItemKind::Placement:
      once(decl.placement, cast<ast::PlacementItem>(item), "`placement`");
      return placement(*cast<ast::PlacementItem>(item));
    case ast::ItemKind::Stages:
      once(decl.stages, cast<ast::StagesItem>(item), "`stages`");
      return expect(cast<ast::StagesItem>(item)->count, Type::Int,
                    "the number of stages");
    case ast::ItemKind::StageMap: {
      auto *i = cast<ast::StageMapItem>(item);
      once(decl.stageMap, i, "`stage ... on rank`");
      scopes.emplace_back();
      decl.stageSlot = defineLocal(i->variable, Type::Int);
      expect(i->rank, Type::Int, "a rank");
      scopes.pop_back();
      return;
    }
    default:
      edge(item);
      decl.edges.push_back(item);
    }
  }

  void edge(const ast::Item *item) {
    if (auto *single = dyn_cast<ast::EdgeItem>(item)) {
      expect(single->from, Type::Int, "a stage");
      expect(single->to, Type::Int, "a stage");
      return;
    }
    auto *loop = cast<ast::EdgeLoopItem>(item);
    expect(loop->from, Type::Int, "the range of `for`");
    expect(loop->to, Type::Int, "the range of `for`");
    scopes.emplace_back();
    module.stmts[loop->id].index = defineLocal(loop->variable, Type::Int);
    for (const ast::Item *child : loop->items)
      edge(child);
    scopes.pop_back();
  }

  void placement(const ast::PlacementItem &item) {
    int takes = llvm::StringSwitch<int>(item.name.text)
                    .Cases("linear", "v", 0)
                    .Cases("loop", "wave", 1)
                    .Default(-1);
    if (takes < 0)
      diags.report<diag::UnknownPlacement>(
          item.name.range, item.name.text,
          didYouMean(item.name.text, {"linear", "loop", "v", "wave"}));
    else if (takes != (item.argument ? 1 : 0))
      wrongCount(item.name,
                 takes ? "the number of chunks a rank" : "no argument",
                 item.argument ? 1 : 0);
    if (item.argument)
      expect(item.argument, Type::Int, "the number of chunks");
  }

  // ---- Graphs ----

  void stageGraph(Schedule &schedule) {
    scopes.emplace_back();
    schedule.graphSlot = defineLocal(schedule.graph->variable, Type::Int);
    graphBody(schedule.graph->body);
    scopes.pop_back();
  }

  /// Checks the expressions of a layer, a stage graph or a pattern.
  void graphBody(ast::GraphBody statements) {
    scopes.emplace_back();
    for (const ast::GraphStmt *stmt : statements) {
      if (auto *perLayer = dyn_cast<ast::PerLayerStmt>(stmt)) {
        graphBody(perLayer->body);
      } else if (auto *repeat = dyn_cast<ast::GraphRepeatStmt>(stmt)) {
        expect(repeat->count, Type::Int, "the count of `repeat`");
        graphBody(repeat->body);
      } else if (auto *loop = dyn_cast<ast::GraphForStmt>(stmt)) {
        expect(loop->from, Type::Int, "the range of `for`");
        expect(loop->to, Type::Int, "the range of `for`");
        scopes.emplace_back();
        module.stmts[loop->id].index = defineLocal(loop->variable, Type::Int);
        graphBody(loop->body);
        scopes.pop_back();
      } else if (auto *choice = dyn_cast<ast::GraphIfStmt>(stmt)) {
        for (const ast::GraphIfStmt::Branch &branch : choice->branches) {
          if (branch.condition)
            expect(branch.condition, Type::Bool, "the condition of `if`");
          graphBody(branch.body);
        }
      }
    }
    scopes.pop_back();
  }

  // ---- Declared actions ----

  void fileItem(const ast::Item *item) {
    switch (item->kind) {
    case ast::ItemKind::Action:
      return properties(*cast<ast::ActionItem>(item));
    case ast::ItemKind::Rule:
      return rule(cast<ast::RuleItem>(item));
    case ast::ItemKind::Apply:
      return apply(cast<ast::ApplyItem>(item), module.applications);
    default:
      return functionOrBlock(item);
    }
  }

  /// Enters the names, so that actions can speak of each other.
  void declareKinds(ArrayRef<const ast::Item *> items) {
    for (const ast::Item *item : items)
      if (auto *decl = dyn_cast<ast::ActionItem>(item))
        declareKind(*decl);
  }

  void declareKind(const ast::ActionItem &decl) {
    const ast::Identifier &name = decl.name;
    if (!llvm::all_of(name.text,
                      [](char c) { return llvm::isAlpha(c) || c == '_'; })) {
      diags.report<diag::BadActionName>(name.range, name.text);
    } else if (auto known = kindRanges.find(name.text);
               known != kindRanges.end()) {
      redefined(name, known->second);
    } else if (Symbol *symbol = lookup(name.text)) {
      redefined(name, symbol->range);
    } else if (module.kinds.find(name.text) || findBuiltin(name.text) ||
               name.text == "mb") {
      diags.report<diag::ReservedName>(
          name.range, name.text,
          module.kinds.find(name.text) ? "an action" : "built in");
    } else if (module.kinds.size() == KindTable::maxKinds) {
      diags.report<diag::TooManyKinds>(name.range, KindTable::maxKinds);
    } else {
      KindInfo info;
      info.letters = name.text.str();
      info.kindClass = KindClass::Declared;
      module.kinds.declare(std::move(info));
      kindRanges[name.text] = name.range;
    }
  }

  void properties(const ast::ActionItem &decl) {
    auto known = kindRanges.find(decl.name.text);
    if (known == kindRanges.end() ||
        known->second.begin != decl.name.range.begin)
      return; // The name was reported.
    KindId kind = *module.kinds.find(decl.name.text);
    KindCosts costs{kind};
    llvm::DenseMap<StringRef, SourceRange> seen;
    for (const ast::ActionProperty &property : decl.properties) {
      StringRef name = property.name.text;
      if (name != "after" && name != "before")
        if (auto [first, isNew] = seen.try_emplace(name, property.name.range);
            !isNew)
          diags
              .report<diag::DuplicateItem>(property.name.range,
                                           fmt::format("`{}`", name))
              .note(first->second, "the first is here");
      this->property(property, module.kinds.declared(kind), costs);
    }
    const KindInfo &info = module.kinds[kind];
    if (info.lane == lane::None && costs.time)
      diags.report<diag::TimeOnNoLane>(costs.time->range);
    if (costs.time || costs.memory)
      module.kindCosts.push_back(costs);
    checkMeeting(info, seen.lookup("collective"));
  }

  void property(const ast::ActionProperty &property, KindInfo &info,
                KindCosts &costs) {
    StringRef name = property.name.text;
    if (name == "lane") {
      laneProperty(property, info);
    } else if (name == "per") {
      perProperty(property, info);
    } else if (name == "after" || name == "before") {
      KindRule rule{name == "before", {}};
      for (const ast::ActionProperty::Value &value : property.values)
        if (auto kind = kindCalled(word(value)))
          rule.kinds.push_back(*kind);
      if (property.values.empty())
        badProperty(property, "the names of actions");
      else if (!rule.kinds.empty())
        info.rules.push_back(std::move(rule));
    } else if (name == "restores") {
      if (auto of = onlyWord(property, "the name of an action"))
        info.restores = kindCalled(*of);
    } else if (name == "cost" || name == "memory") {
      if (property.values.size() != 1 || !property.values.front().expr)
        return badProperty(property, "a number");
      const ast::Expr *value = property.values.front().expr;
      expect(value, Type::Float, "a number of an action");
      (name == "cost" ? costs.time : costs.memory) = value;
    } else if (name == "required") {
      info.isRequired = true;
      if (!property.values.empty())
        badProperty(property, "no value");
    } else if (name == "collective") {
      collectiveProperty(property, info);
    } else {
      diags.report<diag::UnknownProperty>(
          property.name.range, name,
          didYouMean(name, {"lane", "per", "after", "before", "cost", "memory",
                            "required", "restores", "collective"}));
    }
  }

  void badProperty(const ast::ActionProperty &property, StringRef takes) {
    diags.report<diag::BadProperty>(property.name.range, property.name.text,
                                    takes);
  }

  /// The word that a value is; empty when it is something else.
  static ast::Identifier word(const ast::ActionProperty::Value &value) {
    if (!value.expr)
      return value.keyword;
    auto *name = dyn_cast<ast::NameExpr>(value.expr);
    return {name ? name->name : "", value.expr->range};
  }

  std::optional<ast::Identifier> onlyWord(const ast::ActionProperty &property,
                                          StringRef takes) {
    if (property.values.size() == 1)
      if (ast::Identifier found = word(property.values.front());
          !found.text.empty())
        return found;
    badProperty(property, takes);
    return std::nullopt;
  }

  void laneProperty(const ast::ActionProperty &property, KindInfo &info) {
    auto name = onlyWord(property, "the name of a lane");
    if (!name)
      return;
    if (auto lane = module.kinds.lane(name->text))
      info.lane = *lane;
    else
      diags.report<diag::TooManyKinds>(name->range, KindTable::maxKinds);
  }

  void perProperty(const ast::ActionProperty &property, KindInfo &info) {
    constexpr StringRef takes = "`microbatch`, `stage` or `rank`";
    auto name = onlyWord(property, takes);
    if (!name)
      return;
    auto scope = llvm::find(kindScopeNames(), name->text);
    if (scope == kindScopeNames().end())
      return badProperty(property, takes);
    info.scope = static_cast<KindScope>(scope - kindScopeNames().begin());
  }

  void collectiveProperty(const ast::ActionProperty &property, KindInfo &info) {
    constexpr StringRef takes =
        "`all`, `replicas`, stages as in `stages(0, -1)`, or the name of a "
        "group of ranks outside of the program";
    if (property.values.size() != 1)
      return badProperty(property, takes);
    const ast::ActionProperty::Value &value = property.values.front();
    if (auto *call = llvm::dyn_cast_or_null<ast::CallExpr>(value.expr)) {
      info.meeting = Meeting::Stages;
      bool good = call->callee.text == "stages" && !call->args.empty();
      for (const ast::Expr *arg : call->args) {
        auto stage = smallInt(arg);
        good &= stage.has_value();
        info.stages.push_back(stage.value_or(0));
      }
      return good ? void() : badProperty(property, takes);
    }
    ast::Identifier name = word(value);
    if (name.text.empty())
      return badProperty(property, takes);
    info.meeting = llvm::StringSwitch<Meeting>(name.text)
                       .Case("all", Meeting::All)
                       .Case("replicas", Meeting::Replicas)
                       .Default(Meeting::Outside);
    if (info.meeting == Meeting::Outside)
      info.outside = name.text.str();
  }

  /// A literal, perhaps negative.
  static std::optional<int32_t> smallInt(const ast::Expr *expr) {
    auto *negated = dyn_cast<ast::UnaryExpr>(expr);
    auto *literal = dyn_cast<ast::IntExpr>(negated ? negated->operand : expr);
    if (!literal || literal->value > INT32_MAX ||
        (negated && negated->op != ast::UnaryOp::Negate))
      return std::nullopt;
    return static_cast<int32_t>(negated ? -literal->value : literal->value);
  }

  void checkMeeting(const KindInfo &info, SourceRange range) {
    if (!info.canMeet())
      diags.report<diag::BadCollective>(range,
                                        kindScopeNames()[size_t(info.scope)],
                                        meetingName(info.meeting));
  }

  /// Any kind, messages included.
  std::optional<KindId> kindCalled(const ast::Identifier &name) {
    auto kind = module.kinds.find(name.text);
    if (!kind) {
      std::vector<StringRef> letters;
      for (const KindInfo &info : module.kinds.rows())
        letters.push_back(info.letters);
      diags.report<diag::UnknownKind>(name.range, name.text,
                                      didYouMean(name.text, letters));
    }
    return kind;
  }

  // ---- Rules ----

  void rule(const ast::RuleItem *item) {
    Rule checked;
    checked.item = item;
    inFrame(item->name, [&] {
      for (const ast::Parameter &param : item->params) {
        checked.params.push_back(declaredType(param.type, Type::Int));
        if (param.defaultValue)
          expect(param.defaultValue, checked.params.back(),
                 "the default value");
        defineLocal(param.name, checked.params.back());
      }
      for (const ast::InsertItem *insert : item->inserts)
        checked.inserts.push_back(insertion(insert));
      checked.numLocals = numLocals;
    });
    if (auto [known, isNew] =
            rules.try_emplace(item->name.text, module.rules.size());
        !isNew)
      redefined(item->name, module.rules[known->second].item->name.range);
    module.rules.push_back(std::move(checked));
  }

  Application insertOfSchedule(const ast::InsertItem *item) {
    Rule checked;
    inFrame({}, [&] {
      checked.inserts.push_back(insertion(item));
      checked.numLocals = numLocals;
    });
    module.rules.push_back(std::move(checked));
    return {static_cast<uint32_t>(module.rules.size() - 1), item->range, {}};
  }

  Insertion insertion(const ast::InsertItem *item) {
    Insertion result;
    result.item = item;
    if (auto kind = kindCalled(item->action)) {
      result.action = *kind;
      if (!module.kinds[*kind].isDeclared())
        diags.report<diag::BadInsert>(item->action.range, "a declared action",
                                      item->action.text);
    }
    result.isBefore = item->side.text == "before";
    if (!result.isBefore && item->side.text != "after")
      diags.report<diag::BadInsert>(item->side.range, "`before` or `after`",
                                    item->side.text);
    for (const ast::Identifier &anchor : item->anchors)
      if (auto kind = kindCalled(anchor)) {
        result.anchors.push_back(*kind);
        if (!module.kinds[*kind].isCompute())
          diags.report<diag::InsertAtMessage>(anchor.range, anchor.text);
        else if (module.kinds[*kind].scope > module.kinds[result.action].scope)
          diags.report<diag::BadInsert>(
              anchor.range,
              fmt::format(
                  "an action of a {}",
                  kindScopeNames()[size_t(module.kinds[result.action].scope)]),
              anchor.text);
      }
    if (item->distance && item->distanceWord.text != "by")
      diags.report<diag::BadInsert>(item->distanceWord.range,
                                    "`by`, `for`, `when` or `;`",
                                    item->distanceWord.text);
    scopes.emplace_back();
    for (const ast::InsertItem::Binding &binding : item->bindings)
      result.bindings.push_back(this->binding(binding));
    if (item->distance)
      expect(item->distance, Type::Int, "a distance");
    if (item->condition)
      expect(item->condition, Type::Bool, "the condition of `insert`");
    scopes.pop_back();
    return result;
  }

  Insertion::Binding binding(const ast::InsertItem::Binding &binding) {
    Insertion::Binding result;
    StringRef what = binding.what.text;
    if (what == "stage")
      result.what = Insertion::What::Stage;
    else if (what == "rank")
      result.what = Insertion::What::Rank;
    else if (auto kind = computeKind(what)) {
      result.what = Insertion::What::Ordinal;
      result.kind = *kind;
    } else if (what != "microbatch")
      diags.report<diag::BadInsert>(
          binding.what.range, "`microbatch`, `stage`, `rank` or an action",
          what);
    result.slot = defineLocal(binding.variable, Type::Int);
    return result;
  }

  void apply(const ast::ApplyItem *item, std::vector<Application> &list) {
    auto found = rules.find(item->rule.text);
    for (const ast::ActionStmt::Argument &arg : item->args)
      check(arg.value);
    if (found == rules.end()) {
      std::vector<StringRef> names;
      for (const auto &[name, index] : rules)
        names.push_back(name);
      llvm::sort(names);
      diags.report<diag::UnknownRule>(item->rule.range, item->rule.text,
                                      didYouMean(item->rule.text, names));
      return;
    }
    const Rule &callee = module.rules[found->second];
    Application result{found->second, item->range, {}};
    result.args.resize(callee.params.size());
    size_t next = 0;
    for (const ast::ActionStmt::Argument &arg : item->args) {
      size_t place = arg.label.text.empty()
                         ? next++
                         : placeOfParameter(*callee.item, arg.label);
      if (place >= result.args.size()) {
        if (arg.label.text.empty())
          return wrongCount(item->rule, count(callee.params.size(), "argument"),
                            item->args.size());
        continue;
      }
      if (result.args[place])
        diags.report<diag::DuplicateItem>(
            arg.value->range,
            fmt::format("value for `{}`",
                        callee.item->params[place].name.text));
      result.args[place] = arg.value;
      if (!fits(type(arg.value), callee.params[place]))
        diags.report<diag::TypeMismatch>(arg.value->range, "this argument",
                                         typeName(callee.params[place]),
                                         typeName(type(arg.value)));
    }
    for (auto [i, arg] : llvm::enumerate(result.args))
      if (!arg && !callee.item->params[i].defaultValue)
        return wrongCount(item->rule, count(callee.params.size(), "argument"),
                          item->args.size());
    list.push_back(std::move(result));
  }

  /// Reports a label that is no parameter.
  size_t placeOfParameter(const ast::RuleItem &rule,
                          const ast::Identifier &label) {
    std::vector<StringRef> names;
    for (const ast::Parameter &param : rule.params)
      names.push_back(param.name.text);
    auto found = llvm::find(names, label.text);
    if (found == names.end())
      diags.report<diag::UnknownLabel>(label.range, label.text,
                                       didYouMean(label.text, names));
    return found - names.begin();
  }

  // ---- Settings ----

  /// Checks the values. Gives the local slot of each setting's stage variable.
  std::vector<uint32_t> model(const ast::ModelItem &item) {
    checkModel(item, module.kinds, diags);
    std::vector<uint32_t> slots;
    for (const ast::ModelSetting &setting : item.settings) {
      scopes.emplace_back();
      if (!setting.pipe.text.empty()) {
        Symbol *symbol = lookup(setting.pipe.text);
        if (!symbol || symbol->type != Type::Pipe)
          diags.report<diag::UnknownName>(setting.pipe.range, setting.pipe.text,
                                          "");
      }
      bool byStage = !setting.stageVariable.text.empty();
      slots.push_back(byStage ? defineLocal(setting.stageVariable, Type::Int)
                              : 0);
      expect(setting.value, Type::Float, "a setting of `model`");
      scopes.pop_back();
    }
    return slots;
  }

  Module &module;
  const CommWords &words;
  DiagnosticEngine &diags;
  std::vector<Scope> scopes;
  llvm::DenseMap<StringRef, SourceRange> later;
  llvm::DenseMap<StringRef, SourceRange> kindRanges; ///< Of declared kinds.
  llvm::DenseMap<StringRef, uint32_t> rules;
  ast::Identifier current; ///< The function or block being checked.
  const ast::Stmt *structural = nullptr;
  uint32_t numGlobals = 0, numLocals = 0;
  uint32_t nowDepth = 0, evalDepth = 0;
  bool onRank = false, inOverlap = false;
};

} // namespace

std::optional<Module> sema::check(ArrayRef<ast::File> files,
                                  const ast::Context &context,
                                  const CommWords &words,
                                  DiagnosticEngine &diags) {
  size_t before = diags.errorCount();
  Module module;
  module.exprs.resize(context.numExprs());
  module.stmts.resize(context.numStmts());
  Checker checker(module, words, diags);
  for (const ast::File &file : files)
    checker.file(file, &file == &files.back());
  if (diags.errorCount() != before)
    return std::nullopt;
  return module;
}

const Schedule *sema::selectSchedule(const Module &module, StringRef name,
                                     StringRef fileName,
                                     DiagnosticEngine &diags) {
  std::vector<StringRef> names;
  for (const Schedule &schedule : module.schedules) {
    names.push_back(schedule.decl->name.text);
    if (names.back() == name)
      return &schedule;
  }
  if (names.empty())
    diags.report<diag::NoSchedule>(Place(), fileName);
  else if (!name.empty())
    diags.report<diag::UnknownSchedule>(Place(), name, fileName,
                                        didYouMean(name, names));
  else if (names.size() > 1)
    diags.report<diag::WhichSchedule>(Place(), fileName, names.size(),
                                      llvm::join(names, ", "));
  else
    return &module.schedules.front();
  return nullptr;
}
