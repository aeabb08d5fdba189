// Compiles text from memory: rows, a format, and what is wrong with a text.
#include "ppcc/Compiler/Compiler.h"

#include <sys/resource.h>

using namespace ppcc;

int main() {
  // Nothing can be opened from here on.
  rlimit standardStreams{3, 3};
  if (setrlimit(RLIMIT_NOFILE, &standardStreams) != 0)
    return 1;
  llvm::raw_ostream &out = llvm::outs();
  auto *files = new llvm::vfs::InMemoryFileSystem;
  auto add = [&](const char *name, const char *text) {
    files->addFile(name, 0, llvm::MemoryBuffer::getMemBuffer(text));
  };
  add("/here/one.pp", "import \"parts.pp\";\n"
                      "schedule one(M: int = 2) {\n"
                      "  ranks 2;\n"
                      "  microbatches M;\n"
                      "  placement linear;\n"
                      "  cluster { transport rendezvous; }\n"
                      "  on rank r { step(M); }\n"
                      "}\n");
  add("/here/parts.pp",
      "block step(n: int) { repeat n { F; } repeat n { B; } }");
  add("/here/wrong.pp",
      "schedule wrong() {\n  ranks x; microbatches 1; placement linear;\n"
      "  on rank r { G; }\n}\n");
  Session session(files);

  Request request;
  request.input = "/here/one.pp";
  request.params = {{"M", "1"}};
  Compiled compiled = compile(request, session);
  for (const ParameterText &param : compiled.params)
    out << param.name << ": " << param.type << " = " << param.defaultValue
        << '\n';
  for (const Transport &transport : compiled.comm.transports)
    out << "safe on " << transport.name << '\n';
  const Program &program = compiled.program;
  for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank)
    out << "rank " << rank << ": " << program.size(RankId(rank)) << " rows\n";
  bool written = emit(compiled, *findEmitter("actions"), out, session);

  request.input = "/here/wrong.pp";
  request.params.clear();
  if (written && !compile(request, session))
    out << session.found.size() << " found\n" << session.text();
  // Real files are none of this session.
  request.input = __FILE__;
  Session other(new llvm::vfs::InMemoryFileSystem);
  if (!compile(request, other))
    out << other.found.front().info().code << '\n';
}
