// Checks the declarations of actions and of the rules that insert them.
#include "Checker.h"
#include "ppcc/IR/Reading.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ppcc;
using namespace ppcc::sema;
using llvm::ArrayRef;
using llvm::cast;
using llvm::dyn_cast;
using llvm::StringRef;

// ---- Declared actions ----

void Checker::declareKinds(ArrayRef<const ast::Item *> items) {
  for (const ast::Item *item : items)
    if (auto *decl = dyn_cast<ast::ActionItem>(item))
      declareKind(*decl);
}

void Checker::declareKind(const ast::ActionItem &decl) {
  const ast::Identifier &name = decl.name;
  if (!isKindName(name.text)) {
    diags.report<diag::BadActionName>(name.range, name.text);
  } else if (auto known = kindRanges.find(name.text);
             known != kindRanges.end()) {
    redefined(name, known->second);
  } else if (Symbol *symbol = lookup(name.text)) {
    redefined(name, symbol->range);
  } else if (module.kinds.find(name.text) || isBuiltin(name.text)) {
    diags.report<diag::ReservedName>(name.range, name.text,
                                     module.kinds.find(name.text) ? "an action"
                                                                  : "built in");
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

void Checker::properties(const ast::ActionItem &decl) {
  auto known = kindRanges.find(decl.name.text);
  if (known == kindRanges.end() || known->second.begin != decl.name.range.begin)
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
  checkMeeting(info, seen.lookup("collective"), diags);
}

void Checker::property(const ast::ActionProperty &property, KindInfo &info,
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
  } else if (name == "in_flight") {
    auto most = property.values.size() == 1 && property.values.front().expr
                    ? smallInt(property.values.front().expr)
                    : std::nullopt;
    if (!most || *most < 1)
      return badProperty(property, "a number from 1");
    info.inFlight = *most;
  } else if (name == "collective") {
    collectiveProperty(property, info);
  } else {
    diags.report<diag::UnknownProperty>(
        property.name.range, name,
        didYouMean(name, {"lane", "per", "after", "before", "cost", "memory",
                          "required", "restores", "in_flight", "collective"}));
  }
}

void Checker::badProperty(const ast::ActionProperty &property,
                          StringRef takes) {
  diags.report<diag::BadProperty>(property.name.range, property.name.text,
                                  takes);
}

ast::Identifier Checker::word(const ast::ActionProperty::Value &value) {
  if (!value.expr)
    return value.keyword;
  auto *name = dyn_cast<ast::NameExpr>(value.expr);
  return {name ? name->name : "", value.expr->range};
}

std::optional<ast::Identifier>
Checker::onlyWord(const ast::ActionProperty &property, StringRef takes) {
  if (property.values.size() == 1)
    if (ast::Identifier found = word(property.values.front());
        !found.text.empty())
      return found;
  badProperty(property, takes);
  return std::nullopt;
}

void Checker::laneProperty(const ast::ActionProperty &property,
                           KindInfo &info) {
  auto name = onlyWord(property, "the name of a lane");
  if (!name)
    return;
  if (auto lane = module.kinds.lane(name->text))
    info.lane = *lane;
  else
    diags.report<diag::TooManyKinds>(name->range, KindTable::maxKinds);
}

void Checker::perProperty(const ast::ActionProperty &property, KindInfo &info) {
  constexpr StringRef takes = "`microbatch`, `stage` or `rank`";
  auto name = onlyWord(property, takes);
  if (!name)
    return;
  auto scope = llvm::find(kindScopeNames(), name->text);
  if (scope == kindScopeNames().end())
    return badProperty(property, takes);
  info.scope = static_cast<KindScope>(scope - kindScopeNames().begin());
}

void Checker::collectiveProperty(const ast::ActionProperty &property,
                                 KindInfo &info) {
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

std::optional<int32_t> Checker::smallInt(const ast::Expr *expr) {
  auto *negated = dyn_cast<ast::UnaryExpr>(expr);
  auto *literal = dyn_cast<ast::IntExpr>(negated ? negated->operand : expr);
  if (!literal || literal->value > INT32_MAX ||
      (negated && negated->op != ast::UnaryOp::Negate))
    return std::nullopt;
  return static_cast<int32_t>(negated ? -literal->value : literal->value);
}

std::optional<KindId> Checker::kindCalled(const ast::Identifier &name) {
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

void Checker::rule(const ast::RuleItem *item) {
  Rule checked;
  checked.item = item;
  inFrame(item->name, [&] {
    for (const ast::Parameter &param : item->params) {
      checked.params.push_back(declaredType(param.type, Type::Int));
      if (param.defaultValue)
        expect(param.defaultValue, checked.params.back(), "the default value");
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

Application Checker::insertOfSchedule(const ast::InsertItem *item) {
  Rule checked;
  inFrame({}, [&] {
    checked.inserts.push_back(insertion(item));
    checked.numLocals = numLocals;
  });
  module.rules.push_back(std::move(checked));
  return {static_cast<uint32_t>(module.rules.size() - 1), item->range, {}};
}

Insertion Checker::insertion(const ast::InsertItem *item) {
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

Insertion::Binding Checker::binding(const ast::InsertItem::Binding &binding) {
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
        binding.what.range, "`microbatch`, `stage`, `rank` or an action", what);
  result.slot = defineLocal(binding.variable, Type::Int);
  return result;
}

void Checker::apply(const ast::ApplyItem *item,
                    std::vector<Application> &list) {
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
        return wrongCount(item->rule, argumentCount(callee.params.size()),
                          item->args.size());
      continue;
    }
    if (result.args[place])
      diags.report<diag::DuplicateItem>(
          arg.value->range,
          fmt::format("value for `{}`", callee.item->params[place].name.text));
    result.args[place] = arg.value;
    if (!fits(type(arg.value), callee.params[place]))
      diags.report<diag::TypeMismatch>(arg.value->range, "this argument",
                                       typeName(callee.params[place]),
                                       typeName(type(arg.value)));
  }
  for (auto [i, arg] : llvm::enumerate(result.args))
    if (!arg && !callee.item->params[i].defaultValue)
      return wrongCount(item->rule, argumentCount(callee.params.size()),
                        item->args.size());
  list.push_back(std::move(result));
}

size_t Checker::placeOfParameter(const ast::RuleItem &rule,
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
