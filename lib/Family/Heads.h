// Evaluates the head of a schedule for all n: its parameters, what it requires,
// and the microbatches of its pipes.
#pragma once

#include "Number.h"

namespace ppcc::family {

class Heads : public Terms {
public:
  Heads(const sema::Module &module, const sema::Schedule &schedule,
        ArrayRef<sema::ParamValue> values, const Family &family,
        const sema::Instance *sample)
      : Terms(module, sample), schedule(schedule), values(values),
        family(family) {
    globals.resize(schedule.numGlobals);
    numbers.last = family.last;
  }

protected:
  /// Gives globals their values; ends where no instance is admitted.
  void head();
  /// Ends where something depends on the free parameter that is taken from the
  /// sample.
  void headIsConstant();
  /// The pipes that a declaration makes.
  void pipes(size_t number);
  /// Ends where two pipes share microbatches.
  void disjoint();

  const sema::Schedule &schedule;
  std::vector<proof::Range> ranges; ///< By pipe.
  std::vector<Affine> padded;       ///< By pipe.

private:
  void use(const sema::Use &use);
  void inRange(const sema::ScheduleParam &param, const Term &value);
  static bool isFree(const Term &term);
  bool mentionsFree(const ast::Expr *expr);
  void refuseMention(const ast::Expr *expr);
  void refuseMention(const ast::Stmt *stmt);
  template <class Node> void refuseInFields(const Node &node);
  void microbatches(const sema::PipeDecl &decl, const Pipe &pipe);

  ArrayRef<sema::ParamValue> values;

protected:
  const Family &family;

private:
  std::vector<const sema::PipeDecl *> declOf; ///< By pipe.
  size_t loopPipes = 0;
  DenseSet<uint32_t> inCheck; ///< Functions.
};

} // namespace ppcc::family
