// Expressions from text: their values, their errors, and their text again.
#include "ppcc/Sema/Evaluator.h"
#include "ppcc/Parse/Parser.h"

#include "llvm/Support/VirtualFileSystem.h"

#include <fmt/format.h>

#include <gtest/gtest.h>

#include <random>

using namespace ppcc;
using namespace ppcc::sema;
using llvm::StringRef;

namespace {

/// A file with one function without parameters, last, whose value is asked for.
struct Expression {
  SourceManager sources{llvm::vfs::getRealFileSystem()};
  ast::Context context;
  std::string errors;
  DiagnosticEngine diags{[this](const Diagnostic &d) {
    errors += (errors.empty() ? "" : " ") + d.info().code.str();
  }};
  std::optional<Module> module;
  const ast::Expr *expr = nullptr;

  explicit Expression(StringRef text, StringRef before = "") {
    std::string source = fmt::format("{}\nfn it() = {};", before, text);
    uint32_t id =
        sources.add("expr", llvm::MemoryBuffer::getMemBufferCopy(source));
    auto file = parseFile(id, sources, context, diags);
    if (!file)
      return;
    module = check({*file}, context, {}, diags);
    if (module)
      expr = module->functions.back().item->value;
  }

  std::string printed() const {
    std::string text;
    llvm::raw_string_ostream out(text);
    if (expr)
      print(expr, out);
    return text;
  }
};

/// The value of an expression as text, or the codes of its errors.
std::string valueOf(StringRef text, StringRef before = "",
                    uint64_t maxSteps = 1000) {
  Expression it(text, before);
  if (!it.expr)
    return it.errors;
  Evaluator evaluator(*it.module, it.diags, maxSteps);
  Value value = evaluator.eval(it.expr);
  EXPECT_EQ(evaluator.failed(), !it.errors.empty());
  if (evaluator.failed())
    return it.errors;
  switch (evaluator.type(it.expr)) {
  case Type::Bool:
    return value.i ? "true" : "false";
  case Type::Float:
    return fmt::format("{}", value.f);
  default:
    return fmt::format("{}", value.i);
  }
}

TEST(Evaluator, precedence) {
  EXPECT_EQ(valueOf("1 + 2 * 3"), "7");
  EXPECT_EQ(valueOf("(1 + 2) * 3"), "9");
  EXPECT_EQ(valueOf("-2 * 3 + 10"), "4");
  EXPECT_EQ(valueOf("-7 / 2"), "-4"); // (-7) / 2, not -(7 / 2).
  EXPECT_EQ(valueOf("1 + 1 == 2 and not 2 < 1"), "true");
  EXPECT_EQ(valueOf("not true or true"), "true");
  EXPECT_EQ(valueOf("true or true and false"), "true");
  EXPECT_EQ(valueOf("true ? 1 : 2 + 10"), "1");
  EXPECT_EQ(valueOf("not 1 == 2"), "true");
}

TEST(Evaluator, associativity) {
  EXPECT_EQ(valueOf("10 - 4 - 3"), "3");
  EXPECT_EQ(valueOf("100 / 10 / 5"), "2");
  EXPECT_EQ(valueOf("100 / 10 * 5"), "50");
  EXPECT_EQ(valueOf("17 % 10 % 4"), "3");
  EXPECT_EQ(valueOf("1 < 2 == true"), "true");
  EXPECT_EQ(valueOf("false ? 1 : false ? 2 : 3"), "3");
  EXPECT_EQ(valueOf("true ? false ? 1 : 2 : 3"), "2");
  EXPECT_EQ(valueOf("- - -1"), "-1");
}

TEST(Evaluator, integersFloor) {
  EXPECT_EQ(valueOf("-1 / 2"), "-1");
  EXPECT_EQ(valueOf("-1 % 4"), "3");
  EXPECT_EQ(valueOf("1 % -4"), "-3");
  EXPECT_EQ(valueOf("abs(-3) + min(5, 4, 6) * max(1, 2)"), "11");
}

TEST(Evaluator, floats) {
  EXPECT_EQ(valueOf("1 / 4.0"), "0.25");
  EXPECT_EQ(valueOf("1e3 - 0.5"), "999.5");
  EXPECT_EQ(valueOf("-0.5 * 2"), "-1");
  EXPECT_EQ(valueOf("min(1, 0.5) < abs(-0.75)"), "true");
  EXPECT_EQ(valueOf("true ? 1 : 0.5"), "1");
  EXPECT_EQ(valueOf("1 == 1.0"), "true");
  EXPECT_EQ(valueOf("2.5 >= 2 and 2 <= 2.5"), "true");
}

TEST(Evaluator, logicLooksRightOnlyWhenItMust) {
  EXPECT_EQ(valueOf("false and 1 / 0 == 1"), "false");
  EXPECT_EQ(valueOf("true or 1 / 0 == 1"), "true");
  EXPECT_EQ(valueOf("true ? 1 : 1 / 0"), "1");
  EXPECT_EQ(valueOf("true and 1 / 0 == 1"), "E0407");
}

TEST(Evaluator, functions) {
  StringRef functions = "fn twice(x) = 2 * x;\n"
                        "fn mix(a, b: bool, c: float) = b ? a + c : c;\n"
                        "fn deep(x) = twice(twice(x) + twice(1));";
  EXPECT_EQ(valueOf("deep(3)", functions), "16");
  EXPECT_EQ(valueOf("mix(twice(1), true, 1)", functions), "3");
  EXPECT_EQ(valueOf("mix(1, false, 0.5)", functions), "0.5");
  EXPECT_EQ(valueOf("twice(1, 2)", functions), "E0312");
  EXPECT_EQ(valueOf("twice(0.5)", functions), "E0310");
}

TEST(Evaluator, errors) {
  EXPECT_EQ(valueOf("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(valueOf("-9223372036854775807 - 1"), "-9223372036854775808");
  EXPECT_EQ(valueOf("9223372036854775807 + 1"), "E0406");
  EXPECT_EQ(valueOf("-9223372036854775807 - 2"), "E0406");
  EXPECT_EQ(valueOf("3037000500 * 3037000500"), "E0406");
  EXPECT_EQ(valueOf("-(-9223372036854775807 - 1)"), "E0406");
  EXPECT_EQ(valueOf("(-9223372036854775807 - 1) / -1"), "E0406");
  EXPECT_EQ(valueOf("abs(-9223372036854775807 - 1)"), "E0406");
  EXPECT_EQ(valueOf("1 % 0"), "E0407");
  EXPECT_EQ(valueOf("1.0 / 0"), "E0407");
  // The first error of an expression is the only one.
  EXPECT_EQ(valueOf("1 / 0 + 2 % 0"), "E0407");
  EXPECT_EQ(valueOf("1 + true"), "E0311");
  EXPECT_EQ(valueOf("1 +"), "E0204");
  EXPECT_EQ(valueOf("x"), "E0301");
}

TEST(Evaluator, stepsAreLimited) {
  std::string functions = "fn f0(x) = x;\n";
  for (int i = 1; i != 40; ++i)
    functions += fmt::format("fn f{0}(x) = f{1}(x) + f{1}(x);\n", i, i - 1);
  EXPECT_EQ(valueOf("f5(1)", functions, 100), "32");
  EXPECT_EQ(valueOf("f39(1)", functions, 100), "E0413");
  // So is the work of one expression.
  std::string wide = "min(1";
  for (int i = 0; i != 10000; ++i)
    wide += ", 2";
  wide += ")";
  EXPECT_EQ(valueOf(wide, "", 1000), "1");
  EXPECT_EQ(valueOf(wide, "", 10), "E0413");
}

/// A random expression of bools or of numbers.
std::string randomExpression(std::mt19937 &random, int depth, bool isBool) {
  auto pick = [&](std::initializer_list<const char *> from) {
    return std::string(from.begin()[random() % from.size()]);
  };
  auto sub = [&](bool wantBool) {
    std::string text = randomExpression(random, depth - 1, wantBool);
    return depth > 1 ? "(" + text + ")" : text;
  };
  if (depth == 0)
    return isBool ? pick({"true", "false"}) : pick({"1", "2", "0.5", "1e-07"});
  switch (random() % 5) {
  case 0:
    return (isBool ? "not " : "-") + sub(isBool);
  case 1:
    return sub(true) + " ? " + sub(isBool) + " : " + sub(isBool);
  case 2:
    return isBool ? sub(false) + pick({" < ", " == ", " >= "}) + sub(false)
                  : "max(" + sub(false) + ", " + sub(false) + ")";
  default:
    return sub(isBool) +
           (isBool ? pick({" and ", " or ", " == "})
                   : pick({" + ", " - ", " * ", " / "})) +
           sub(isBool);
  }
}

/// An expression with the parentheses of its tree.
std::string withAllParentheses(const ast::Expr *expr) {
  using llvm::dyn_cast;
  auto all = withAllParentheses;
  if (auto *e = dyn_cast<ast::UnaryExpr>(expr))
    return fmt::format("({} {})", spelling(e->op), all(e->operand));
  if (auto *e = dyn_cast<ast::BinaryExpr>(expr))
    return fmt::format("({} {} {})", all(e->lhs), spelling(e->op), all(e->rhs));
  if (auto *e = dyn_cast<ast::ConditionalExpr>(expr))
    return fmt::format("({} ? {} : {})", all(e->condition), all(e->then),
                       all(e->otherwise));
  std::string text;
  llvm::raw_string_ostream out(text);
  if (auto *e = dyn_cast<ast::CallExpr>(expr)) {
    text = e->callee.text.str();
    for (const ast::Expr *arg : e->args)
      text += " " + all(arg);
  } else {
    print(expr, out);
  }
  return text;
}

TEST(ExpressionPrinter, printedAndParsedIsTheSameTree) {
  std::mt19937 random(1);
  for (int i = 0; i != 500; ++i) {
    std::string text = randomExpression(random, 1 + i % 4, i % 2);
    Expression first(text);
    ASSERT_TRUE(first.expr) << text << first.errors;
    Expression second(first.printed());
    ASSERT_TRUE(second.expr) << first.printed() << second.errors;
    EXPECT_EQ(withAllParentheses(first.expr), withAllParentheses(second.expr));
    EXPECT_EQ(first.printed(), second.printed());
  }
}

TEST(ExpressionPrinter, keepsOnlyTheParenthesesThatCount) {
  EXPECT_EQ(Expression("((1) + (2 * 3)) - 4").printed(), "1 + 2 * 3 - 4");
  EXPECT_EQ(Expression("1 - (2 - 3)").printed(), "1 - (2 - 3)");
  EXPECT_EQ(Expression("-(1 + 2)").printed(), "-(1 + 2)");
  EXPECT_EQ(Expression("not (true and false)").printed(),
            "not (true and false)");
  EXPECT_EQ(Expression("(not true) == false").printed(), "(not true) == false");
  EXPECT_EQ(Expression("true ? (false ? 1 : 2) : (true ? 3 : 4)").printed(),
            "true ? false ? 1 : 2 : true ? 3 : 4");
  EXPECT_EQ(Expression("(true ? 1 : 2) + 3").printed(), "(true ? 1 : 2) + 3");
  EXPECT_EQ(Expression("0.1 + 2.0 + 1e300").printed(), "0.1 + 2.0 + 1e+300");
}

} // namespace
