// What types and expressions are called, and which schedule is meant.
#include "ppcc/Sema/Module.h"
#include "ppcc/Basic/Diagnostics/Sema.h"

using namespace ppcc;
using namespace ppcc::sema;

StringRef sema::typeName(Type type) {
  static constexpr StringRef names[] = {"error", "int",  "bool",  "float",
                                        "pipe",  "part", "int[]", "pipe[]"};
  return names[unsigned(type)];
}

Type sema::elementType(Type type) {
  return type == Type::IntList    ? Type::Int
         : type == Type::PipeList ? Type::Pipe
                                  : type;
}

std::string sema::source(const ast::Expr *expr) {
  std::string text;
  llvm::raw_string_ostream out(text);
  print(expr, out);
  return text;
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
    diags.report<diag::NoSchedule>(Location(), fileName);
  else if (!name.empty())
    diags.report<diag::UnknownSchedule>(Location(), name, fileName,
                                        didYouMean(name, names));
  else if (names.size() > 1)
    diags.report<diag::AmbiguousSchedule>(Location(), fileName, names.size(),
                                          llvm::join(names, ", "));
  else
    return &module.schedules.front();
  return nullptr;
}
