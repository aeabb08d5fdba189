// The Python module `_ppcc`: the compiler in the process of the caller. In
// CPython's limited API, so that one module serves 3.11 and all that follow.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Basic/Source.h"
#include "ppcc/Driver/Driver.h"
#include "ppcc/Emit/Emitter.h"

#include "llvm/Support/MemoryBuffer.h"

#include <new>

using namespace ppcc;

namespace {

struct Release {
  void operator()(PyObject *object) const { Py_DecRef(object); }
};
/// A reference that is owned.
using Ref = std::unique_ptr<PyObject, Release>;

PyObject *text(const std::string &bytes) {
  return PyUnicode_DecodeUTF8(bytes.data(), Py_ssize_t(bytes.size()),
                              "surrogateescape");
}

/// What a call asks for: `(arguments, text)`, a sequence of str, and what `-`
/// stands for, or None.
struct Call {
  std::vector<std::string> words{"ppcc"};
  Session::Files files = regularFiles();

  bool read(PyObject *args) {
    PyObject *arguments;
    const char *input;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "Oz#", &arguments, &input, &length))
      return false;
    Py_ssize_t count = PySequence_Size(arguments);
    for (Py_ssize_t i = 0; i < count; ++i) {
      Ref word(PySequence_GetItem(arguments, i));
      // As the system would take it: file names may be any bytes.
      Ref bytes(word ? PyUnicode_EncodeFSDefault(word.get()) : nullptr);
      if (!bytes)
        return false;
      words.push_back(PyBytes_AsString(bytes.get()));
    }
    if (input)
      giveInput({input, size_t(length)});
    return count >= 0;
  }

  std::vector<const char *> arguments() const {
    std::vector<const char *> pointers;
    for (const std::string &word : words)
      pointers.push_back(word.c_str());
    return pointers;
  }

private:
  /// The text is a file of that name, which stands before all others.
  void giveInput(llvm::StringRef input) {
    auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
    if (auto folder = files->getCurrentWorkingDirectory())
      memory->setCurrentWorkingDirectory(*folder);
    memory->addFile(SourceManager::standardInput, 0,
                    llvm::MemoryBuffer::getMemBufferCopy(input));
    auto overlay =
        llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(files);
    overlay->pushOverlay(memory);
    files = overlay;
    for (std::string &word : words)
      if (word == "-")
        word = SourceManager::standardInput;
  }
};

/// Does the work without the lock of the interpreter. False, with an exception
/// set, when memory ran out.
template <class Work> bool unlocked(Work work) {
  bool isDone = true;
  Py_BEGIN_ALLOW_THREADS try { work(); } catch (const std::bad_alloc &) {
    isDone = false;
  } catch (const std::length_error &) { // Of a size that is none.
    isDone = false;
  }
  Py_END_ALLOW_THREADS if (!isDone) PyErr_NoMemory();
  return isDone;
}

/// run(arguments, text) -> (exit code, output, errors)
PyObject *run(PyObject *, PyObject *args) {
  Call call;
  if (!call.read(args))
    return nullptr;
  int code = 1;
  std::string output, errors;
  if (!unlocked([&] {
        llvm::raw_string_ostream out(output), err(errors);
        code = runCompiler({call.arguments(), call.files, out, err});
      }))
    return nullptr;
  Ref first(text(output)), second(text(errors));
  return first && second ? Py_BuildValue("iOO", code, first.get(), second.get())
                         : nullptr;
}

/// A compiled program.
struct ProgramObject {
  PyObject_HEAD CompiledCommand *command;
};

PyTypeObject *programType;

const CompiledCommand &commandOf(PyObject *self) {
  return *reinterpret_cast<ProgramObject *>(self)->command;
}
const Program &programOf(PyObject *self) {
  return commandOf(self).compiled.program;
}

/// compile(arguments, text) -> (exit code, output, errors, program or None)
PyObject *compile(PyObject *, PyObject *args) {
  Call call;
  if (!call.read(args))
    return nullptr;
  std::unique_ptr<CompiledCommand> command;
  std::string output, errors;
  if (!unlocked([&] {
        llvm::raw_string_ostream out(output), err(errors);
        command = std::make_unique<CompiledCommand>(
            compileCommand({call.arguments(), call.files, out, err}));
      }))
    return nullptr;
  int code = command->code;
  Ref first(text(output)), second(text(errors)), program;
  if (code == 0) {
    program.reset(PyType_GenericAlloc(programType, 0));
    if (program)
      reinterpret_cast<ProgramObject *>(program.get())->command =
          command.release();
  } else {
    program.reset(Py_NewRef(Py_None));
  }
  return first && second && program ? Py_BuildValue("iOOO", code, first.get(),
                                                    second.get(), program.get())
                                    : nullptr;
}

/// The JSON of a program, or of its head over no rows.
PyObject *jsonOf(const CompiledCommand &command, bool hasRows) {
  std::string json;
  bool isGood = false;
  if (!unlocked([&] {
        llvm::raw_string_ostream out(json);
        isGood = emitJsonOf(command, hasRows, out);
      }))
    return nullptr;
  if (!isGood) {
    PyErr_SetString(PyExc_RuntimeError, "the program cannot be written");
    return nullptr;
  }
  return text(json);
}

PyObject *programJson(PyObject *self, PyObject *) {
  return jsonOf(commandOf(self), true);
}
PyObject *programHead(PyObject *self, PyObject *) {
  return jsonOf(commandOf(self), false);
}

PyObject *programDigest(PyObject *self, PyObject *) {
  return text(digestOf(programOf(self)));
}

/// columns(rank) -> bytes: the columns of docs/program-format.md, one after
/// another, each of int32
PyObject *programColumns(PyObject *self, PyObject *args) {
  const Program &program = programOf(self);
  unsigned number;
  if (!PyArg_ParseTuple(args, "I", &number))
    return nullptr;
  if (number >= program.ranksBegun())
    return PyErr_Format(PyExc_IndexError, "no rank %u", number);
  RankId rank(number);
  size_t size = program.rows(rank).size();
  PyObject *bytes =
      PyBytes_FromStringAndSize(nullptr, Py_ssize_t(size * 8 * sizeof(int32_t)));
  if (!bytes)
    return nullptr;
  auto *at = reinterpret_cast<int32_t *>(PyBytes_AsString(bytes));
  int32_t group = 0;
  for (RowRange item : program.items(rank)) {
    bool isGroup = item.size() > 1;
    for (ActionId row : item) {
      Action action = program[row];
      int32_t values[] = {int32_t(action.kind.value),
                          int32_t(action.pipe.value),
                          int32_t(action.stage.value),
                          action.hasMicrobatch() ? int32_t(action.microbatch)
                                                 : -1,
                          action.hasPeer() ? int32_t(action.peer.value) : -1,
                          int32_t(action.phase.value),
                          isGroup ? group : -1,
                          int32_t(action.site.value)};
      for (size_t i = 0; i != 8; ++i)
        at[i * size] = values[i];
      ++at;
    }
    group += isGroup;
  }
  return bytes;
}

/// waits() -> by rank, the key of docs/program-format.md
PyObject *programWaits(PyObject *self, PyObject *) {
  const Program &program = programOf(self);
  ReceiveBuffers buffers(program, ProgramIndex(program));
  const ActionId *wait = buffers.waits().begin();
  Ref ranks(PyTuple_New(program.ranksBegun()));
  for (RankId rank : program.ranks()) {
    Ref waits(PyTuple_New(llvm::count_if(program.rows(rank), [&](ActionId row) {
      return program.kindOf(row).isRecv();
    })));
    for (Py_ssize_t i = 0; waits && i != PyTuple_Size(waits.get()); ++i)
      PyTuple_SetItem(
          waits.get(), i,
          PyLong_FromLong((wait++)->value - program.begin(rank).value));
    if (!ranks || !waits)
      return nullptr;
    PyTuple_SetItem(ranks.get(), rank.value, waits.release());
  }
  return ranks.release();
}

void freeProgram(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  delete reinterpret_cast<ProgramObject *>(self)->command;
  PyObject_Free(self);
  Py_DecRef(reinterpret_cast<PyObject *>(type));
}

PyMethodDef programMethods[] = {
    {"json", programJson, METH_NOARGS, "The program as JSON."},
    {"header_json", programHead, METH_NOARGS, "Its JSON without rows."},
    {"digest", programDigest, METH_NOARGS, "The digest of its rows."},
    {"columns", programColumns, METH_VARARGS,
     "The columns of the rows of a rank, one after another, as int32."},
    {"waits", programWaits, METH_NOARGS,
     "By rank, before which row each receive must have ended."},
    {}};
PyType_Slot programSlots[] = {
    {Py_tp_dealloc, reinterpret_cast<void *>(freeProgram)},
    {Py_tp_methods, programMethods},
    {}};
PyType_Spec programSpec = {
    "_ppcc.Program", sizeof(ProgramObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, programSlots};

/// main(arguments) -> exit code, on the streams of the process
PyObject *runMain(PyObject *, PyObject *args) {
  Call call;
  if (!call.read(args))
    return nullptr;
  std::vector<const char *> words = call.arguments();
  return PyLong_FromLong(runTool(int(words.size()), words.data(), runCompiler));
}

PyMethodDef methods[] = {
    {"run", run, METH_VARARGS, "Runs a command line of ppcc."},
    {"compile", compile, METH_VARARGS,
     "Compiles what a command line asks for."},
    {"main", runMain, METH_VARARGS,
     "Runs a command line on the streams of the process."},
    {}};

PyModuleDef module = {PyModuleDef_HEAD_INIT,
                      "_ppcc",
                      "The compiler.",
                      -1,
                      methods,
                      nullptr,
                      nullptr,
                      nullptr,
                      nullptr};

} // namespace

PyMODINIT_FUNC PyInit__ppcc() {
  Ref self(PyModule_Create(&module));
  programType = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&programSpec));
  return self && programType ? self.release() : nullptr;
}
