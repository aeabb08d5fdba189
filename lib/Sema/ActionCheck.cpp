// Checks the declarations of actions.
#include "Checks.h"
#include "ppcc/Basic/Diagnostics/Syntax.h"
#include "ppcc/IR/HeadChecks.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

/// Fills in the properties of one declaration.
struct ActionChecker {
  ExprChecker &exprs;
  Module &module = exprs.module;
  DiagnosticEngine &diags = exprs.diags;

  void declare(const ast::ActionKindItem &decl) {
    const ast::Identifier &name = decl.name;
    if (!isKindName(name.text)) {
      diags.report<diag::BadActionName>(name.range, name.text);
    } else if (Symbol *known =
                   exprs.names.find(NameSpace::Statement, name.text)) {
      exprs.names.redefined(name, known->range);
    } else if (kinds.find(name.text) || isCostWord(name.text)) {
      diags.report<diag::ReservedName>(
          name.range, name.text,
          kinds.find(name.text) ? "an action" : "a word of `model`");
    } else if (kinds.size() == KindTable::maxKinds) {
      diags.report<diag::TooManyKinds>(name.range, KindTable::maxKinds);
    } else {
      KindInfo info;
      info.mnemonic = name.text.str();
      info.kindClass = KindClass::Declared;
      Symbol symbol;
      symbol.index = kinds.declare(std::move(info)).value;
      symbol.isKind = true;
      exprs.names.define(NameSpace::Statement, name, symbol);
    }
  }

  void check(const ast::ActionKindItem &decl) {
    Symbol *known = exprs.names.find(NameSpace::Statement, decl.name.text);
    if (!known || known->range.begin != decl.name.range.begin)
      return; // The name was reported.
    KindId kind(known->index);
    KindCosts costs{kind};
    DenseMap<StringRef, SourceRange> seen;
    for (const ast::ActionProperty &property : decl.properties) {
      StringRef name = property.name.text;
      // Two ranks meet in one way.
      if (name == "to" || name == "from")
        name = "collective";
      if (name != "after" && name != "before")
        if (auto [first, isNew] = seen.try_emplace(name, property.name.range);
            !isNew)
          diags
              .report<diag::DuplicateItem>(
                  property.name.range, fmt::format("`{}`", property.name.text))
              .note(first->second, "the first is here");
      this->property(property, kinds.declared(kind), costs);
    }
    const KindInfo &info = kinds[kind];
    if (info.lane == lane::None && costs.time)
      diags.report<diag::TimeOnNoLane>(costs.time->range);
    if (costs.time || costs.memory || costs.peerRankExpr || info.restores)
      exprs.module.kindCosts.push_back(costs);
    checkCollective(info, seen.lookup("collective"), diags);
  }

  void property(const ast::ActionProperty &property, KindInfo &info,
                KindCosts &costs) {
    StringRef name = property.name.text;
    if (!property.variable.text.empty() && name != "to" && name != "from")
      diags.report<diag::UnexpectedToken>(
          property.variable.range, "`for rank`",
          "`;`: a rank has a name only after `to rank` and `from rank`");
#define KIND(Name, Member)                                                     \
  if (name == Name)                                                            \
    return fill(property, info, Member);
#include "ppcc/IR/KindProperties.def"
    for (Collective end : {Collective::To, Collective::From})
      if (name == collectiveName(end))
        return endProperty(property, end, info, costs);
    if (name == "cost" || name == "memory") {
      const ast::Expr *value = onlyExpr(property);
      if (!value)
        return badProperty(property, "a number");
      exprs.expect(value, Type::Float, "a number of an action");
      (name == "cost" ? costs.time : costs.memory) = value;
      return;
    }
    static constexpr StringRef names[] = {
        "cost",
        "memory",
        "to",
        "from",
#define KIND(Name, Member) Name,
#include "ppcc/IR/KindProperties.def"
    };
    diags.report<diag::UnknownProperty>(property.name.range, name,
                                        didYouMean(name, names));
  }

  void fill(const ast::ActionProperty &property, KindInfo &info,
            bool KindInfo::*flag) {
    info.*flag = true;
    if (!property.values.empty())
      badProperty(property, "no value");
  }

  void fill(const ast::ActionProperty &property, KindInfo &info,
            std::optional<KindId> KindInfo::*kind) {
    if (auto of = onlyWord(property, "the name of an action"))
      info.*kind = kindCalled(*of, exprs);
  }

  void fill(const ast::ActionProperty &property, KindInfo &info,
            bool isBefore) {
    KindRule rule{isBefore, {}};
    for (const ast::PropertyValue &value : property.values)
      if (auto kind = kindCalled(word(value), exprs))
        rule.kinds.push_back(*kind);
    if (property.values.empty())
      badProperty(property, "the names of actions");
    else if (!rule.kinds.empty())
      info.rules.push_back(std::move(rule));
  }

  void fill(const ast::ActionProperty &property, KindInfo &info,
            uint32_t KindInfo::*count) {
    const ast::Expr *value = onlyExpr(property);
    auto found = value ? smallInt(value) : std::nullopt;
    if (!found || *found < 1)
      return badProperty(property, "a number from 1");
    info.*count = *found;
  }

  void badProperty(const ast::ActionProperty &property, StringRef takes) {
    diags.report<diag::BadProperty>(property.name.range, property.name.text,
                                    takes);
  }

  /// Null where there are other values, or none.
  static const ast::Expr *onlyExpr(const ast::ActionProperty &property) {
    return property.values.size() == 1 ? property.values.front().expr : nullptr;
  }

  static ast::Identifier word(const ast::PropertyValue &value) {
    if (!value.expr || !value.keyword.text.empty())
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

  void fill(const ast::ActionProperty &property, KindInfo &info,
            uint8_t KindInfo::*lane) {
    auto name = onlyWord(property, "the name of a lane");
    if (!name)
      return;
    if (!llvm::is_contained(kinds.lanes(), name->text))
      warnIfNear(*name, "lane", {"compute", "comm", "none"});
    if (auto known = kinds.lane(name->text))
      info.*lane = *known;
    else
      diags.report<diag::TooManyKinds>(name->range, KindTable::maxKinds);
  }

  void fill(const ast::ActionProperty &property, KindInfo &info,
            KindScope KindInfo::*scope) {
    constexpr StringRef takes = "`microbatch`, `stage` or `rank`";
    auto name = onlyWord(property, takes);
    if (!name)
      return;
    auto found = findKindScope(name->text);
    if (!found)
      return badProperty(property, takes);
    info.*scope = *found;
  }

  void fill(const ast::ActionProperty &property, KindInfo &info,
            Collective KindInfo::*) {
    constexpr StringRef takes =
        "`all`, `replicas`, stages as in `stages(0, -1)`, or the name of a "
        "group of ranks outside of the program";
    if (property.values.size() != 1)
      return badProperty(property, takes);
    const ast::PropertyValue &value = property.values.front();
    if (auto *call = llvm::dyn_cast_or_null<ast::CallExpr>(value.expr)) {
      info.collective = Collective::Stages;
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
    info.collective = llvm::StringSwitch<Collective>(name.text)
                          .Case("all", Collective::All)
                          .Case("replicas", Collective::Replicas)
                          .Default(Collective::Outside);
    if (info.collective == Collective::Outside) {
      warnIfNear(name, "group of ranks", {"all", "replicas", "stages"});
      info.outside = name.text.str();
    }
  }

  /// Warns of a name of its own that may be a misspelt one. Numbered names are
  /// meant: `comm2`.
  void warnIfNear(const ast::Identifier &name, StringRef what,
                  ArrayRef<StringRef> known) {
    StringRef near = nearestName(name.text, known);
    if (!near.empty() && !llvm::isDigit(name.text.back()))
      diags.report<diag::NearName>(name.range, what, name.text, near);
  }

  /// `to rank ranks - 1 - r for rank r`
  void endProperty(const ast::ActionProperty &property, Collective end,
                   KindInfo &info, KindCosts &costs) {
    costs.peerRankExpr = onlyExpr(property);
    if (!costs.peerRankExpr || property.values.front().keyword.text != "rank")
      return badProperty(
          property,
          "`rank` and an expression, as in `rank ranks - 1 - r for rank r`");
    info.collective = end;
    SymbolTable::FrameScope frame(exprs.names, {});
    exprs.rankVariable(property.variable);
    SourceRange whole{property.name.range.begin, costs.peerRankExpr->range.end};
    if (!property.variable.text.empty() ||
        exprs.requireRankName(costs.peerRankExpr, whole,
                              property.name.text.str() +
                                  " rank {} for rank {}"))
      exprs.expect(costs.peerRankExpr, Type::Int, "a rank");
    costs.numLocals = exprs.names.frame.numLocals;
  }

  static std::optional<int32_t> smallInt(const ast::Expr *expr) {
    auto *negated = dyn_cast<ast::UnaryExpr>(expr);
    auto *literal = dyn_cast<ast::IntExpr>(negated ? negated->operand : expr);
    if (!literal || literal->value > INT32_MAX ||
        (negated && negated->op != ast::UnaryOp::Negate))
      return std::nullopt;
    return int32_t(negated ? -literal->value : literal->value);
  }

  KindTable &kinds = module.kinds;
};

} // namespace

void sema::declareAction(const ast::ActionKindItem *item, ExprChecker &exprs) {
  ActionChecker{exprs}.declare(*item);
}

void sema::checkAction(const ast::ActionKindItem *item, ExprChecker &exprs) {
  ActionChecker{exprs}.check(*item);
}

std::optional<KindId> sema::kindCalled(const ast::Identifier &name,
                                       ExprChecker &exprs) {
  exprs.names.recordUse(NameSpace::Statement, name);
  auto kind = exprs.module.kinds.find(name.text);
  if (!kind) {
    exprs.diags
        .report<diag::UnknownKind>(name.range, name.text,
                                   didYouMean(name.text,
                                              exprs.module.kinds.rows(),
                                              &KindInfo::mnemonic))
        .undeclared(name.text, "action");
  }
  return kind;
}
