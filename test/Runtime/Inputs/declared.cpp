// Runs a program with declared actions and prints what each rank did; a star
// behind what is restored.
#include "ppcc/Runtime/Cooperative.h"
#include "ppcc/Runtime/Json.h"

#include <cstdio>
#include <fstream>
#include <map>

using namespace ppcc::rt;

/// y = w x, with w = stage + 2. Recomputation restores x, which the forward
/// drops; the gradients of the ranks are summed by their optimizer step.
struct Layer : StageHooks {
  using Value = double;
  std::map<uint32_t, double> inputs, kept;
  std::string done;
  double gradient = 0, weight = 0, stepped = 0;

  void note(const ActionContext &work) {
    done += ' ';
    done += work.mnemonic();
    if (work.hasMicrobatch())
      done += std::to_string(work.microbatch);
  }
  double forward(const ActionContext &work, const Inputs<double> &in) {
    note(work);
    done += work.isRestored ? "*" : "";
    inputs[work.microbatch] = in.empty() ? work.microbatch + 1.0 : in[0];
    return (work.stage + 2.0) * inputs[work.microbatch];
  }
  double backward(const ActionContext &work, double *outputGrad) {
    note(work);
    double grad = outputGrad ? *outputGrad : 1.0;
    gradient += grad * kept.at(work.microbatch); // Restored, or it throws.
    return grad * (work.stage + 2.0);
  }
  void perform(const ActionContext &work) {
    note(work);
    if (std::string(work.mnemonic()) == "R")
      kept[work.microbatch] = inputs.at(work.microbatch);
    else if (std::string(work.mnemonic()) == "STEP")
      stepped = gradient;
  }
  void release(const ActionContext &work) { kept.erase(work.microbatch); }
};

/// It has no `perform`.
struct Bare : StageHooks {
  using Value = double;
  double forward(const ActionContext &, const Inputs<double> &) { return 0; }
  double backward(const ActionContext &, double *) { return 0; }
};

int main(int, char **args) {
  std::ifstream file(args[1]);
  LoadedProgram program = readJson(file);
  std::vector<Layer> layers(program.program().numRanks);
  runCooperative(program, std::span(layers));
  for (const Layer &layer : layers)
    std::printf("%s: %zu kept, gradient %g, stepped %g\n", layer.done.c_str(),
                layer.kept.size(), layer.gradient, layer.stepped);
  std::vector<Bare> bare(program.program().numRanks);
  try {
    runCooperative(program, std::span(bare));
  } catch (const Error &error) {
    std::printf("%s\n", error.what());
  }
}
