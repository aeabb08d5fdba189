// The Python module `_ppcc`: the compiler in the process of the caller. In
// CPython's limited API, so that one module serves 3.11 and all that follow.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "ppcc/Basic/RegularFiles.h"
#include "ppcc/Driver/Driver.h"

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
    memory->addFile(StandardInput, 0,
                    llvm::MemoryBuffer::getMemBufferCopy(input));
    auto overlay =
        llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(files);
    overlay->pushOverlay(memory);
    files = overlay;
    for (std::string &word : words)
      if (word == "-")
        word = StandardInput;
  }

  static constexpr const char *StandardInput = "<stdin>";
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

/// A column of the rows of all ranks, and what its buffer says about it.
struct Column {
  const char *name, *format;
  std::vector<int32_t> values;
};

/// A compiled program.
struct Native {
  CompiledCommand command;
  std::vector<Py_ssize_t> rank_offsets{0};
  std::vector<Column> columns;

  explicit Native(CompiledCommand given) : command(std::move(given)) {}

  /// The columns of docs/program-format.md.
  void buildColumns() {
    const Program &program = command.compiled.program;
    for (const char *name : {"kind", "pipe", "stage", "microbatch", "peer",
                             "phase", "group", "site"})
      columns.push_back({name, "i", {}});
    for (Column &column : columns)
      column.values.reserve(program.size());
    for (RankId rank : program.ranks()) {
      int32_t group = 0;
      for (RowRange item : program.items(rank)) {
        bool isGroup = item.size() > 1;
        for (ActionId row : item)
          append(program[row], isGroup ? group : -1);
        group += isGroup;
      }
      rank_offsets.push_back(Py_ssize_t(columns.front().values.size()));
    }
  }

private:
  void append(const Action &action, int32_t group) {
    int32_t values[] = {int32_t(action.kind.value),
                        int32_t(action.pipe.value),
                        int32_t(action.stage.value),
                        action.hasMicrobatch() ? int32_t(action.microbatch)
                                               : -1,
                        action.hasPeer() ? int32_t(action.peer.value) : -1,
                        int32_t(action.phase.value),
                        group,
                        int32_t(action.site.value)};
    for (size_t i = 0; i != columns.size(); ++i)
      columns[i].values.push_back(values[i]);
  }
};

struct ProgramObject {
  PyObject_HEAD Native *native;
};

/// A column as a buffer, which keeps its program.
struct ColumnObject {
  PyObject_HEAD PyObject *program;
  Column *column;
  Py_ssize_t length;
};

PyTypeObject *programType, *columnType;

const Native &nativeOf(PyObject *self) {
  return *reinterpret_cast<ProgramObject *>(self)->native;
}

/// compile(arguments, text) -> (exit code, output, errors, program or None)
PyObject *compile(PyObject *, PyObject *args) {
  Call call;
  if (!call.read(args))
    return nullptr;
  std::unique_ptr<Native> native;
  std::string output, errors;
  if (!unlocked([&] {
        llvm::raw_string_ostream out(output), err(errors);
        native = std::make_unique<Native>(
            compileCommand({call.arguments(), call.files, out, err}));
        if (native->command.code == 0)
          native->buildColumns();
      }))
    return nullptr;
  int code = native->command.code;
  Ref first(text(output)), second(text(errors)), program;
  if (code == 0) {
    program.reset(PyType_GenericAlloc(programType, 0));
    if (program)
      reinterpret_cast<ProgramObject *>(program.get())->native =
          native.release();
  } else {
    program.reset(Py_NewRef(Py_None));
  }
  return first && second && program ? Py_BuildValue("iOOO", code, first.get(),
                                                    second.get(), program.get())
                                    : nullptr;
}

/// The JSON of a program, or of its head over no rows.
PyObject *jsonOf(const Native &native, bool hasRows) {
  std::string json;
  bool isGood = false;
  if (!unlocked([&] {
        llvm::raw_string_ostream out(json);
        isGood = emitJsonOf(native.command, hasRows, out);
      }))
    return nullptr;
  if (!isGood) {
    PyErr_SetString(PyExc_RuntimeError, "the program cannot be written");
    return nullptr;
  }
  return text(json);
}

PyObject *programJson(PyObject *self, PyObject *) {
  return jsonOf(nativeOf(self), true);
}
PyObject *programHead(PyObject *self, PyObject *) {
  return jsonOf(nativeOf(self), false);
}

PyObject *programStarts(PyObject *self, PyObject *) {
  const std::vector<Py_ssize_t> &rank_offsets = nativeOf(self).rank_offsets;
  Ref list(PyList_New(Py_ssize_t(rank_offsets.size())));
  for (size_t i = 0; list && i != rank_offsets.size(); ++i)
    PyList_SetItem(list.get(), Py_ssize_t(i),
                   PyLong_FromSsize_t(rank_offsets[i]));
  return list.release();
}

/// column(name) -> an object with a buffer of int32
PyObject *programColumn(PyObject *self, PyObject *args) {
  const char *name;
  if (!PyArg_ParseTuple(args, "s", &name))
    return nullptr;
  Native &native = *reinterpret_cast<ProgramObject *>(self)->native;
  for (Column &column : native.columns)
    if (llvm::StringRef(column.name) == name) {
      auto *object =
          reinterpret_cast<ColumnObject *>(PyType_GenericAlloc(columnType, 0));
      if (!object)
        return nullptr;
      object->program = Py_NewRef(self);
      object->column = &column;
      object->length = Py_ssize_t(column.values.size());
      return reinterpret_cast<PyObject *>(object);
    }
  PyErr_SetString(PyExc_KeyError, name);
  return nullptr;
}

void freeObject(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DecRef(reinterpret_cast<PyObject *>(type));
}

void freeProgram(PyObject *self) {
  delete reinterpret_cast<ProgramObject *>(self)->native;
  freeObject(self);
}

void freeColumn(PyObject *self) {
  Py_DecRef(reinterpret_cast<ColumnObject *>(self)->program);
  freeObject(self);
}

int getBuffer(PyObject *self, Py_buffer *view, int flags) {
  auto *object = reinterpret_cast<ColumnObject *>(self);
  Column &column = *object->column;
  if (PyBuffer_FillInfo(view, self, column.values.data(),
                        object->length * Py_ssize_t(sizeof(int32_t)), 1, flags))
    return -1;
  view->itemsize = sizeof(int32_t);
  view->format =
      flags & PyBUF_FORMAT ? const_cast<char *>(column.format) : nullptr;
  view->shape = flags & PyBUF_ND ? &object->length : nullptr;
  view->strides =
      (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? &view->itemsize : nullptr;
  return 0;
}

PyMethodDef programMethods[] = {
    {"json", programJson, METH_NOARGS, "The program as JSON."},
    {"header_json", programHead, METH_NOARGS, "Its JSON without rows."},
    {"rank_offsets", programStarts, METH_NOARGS,
     "Where the rows of each rank begin, and where the last end."},
    {"column", programColumn, METH_VARARGS,
     "A column of the rows, as a buffer of int32."},
    {}};
PyType_Slot programSlots[] = {
    {Py_tp_dealloc, reinterpret_cast<void *>(freeProgram)},
    {Py_tp_methods, programMethods},
    {}};
PyType_Spec programSpec = {
    "_ppcc.Program", sizeof(ProgramObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, programSlots};

PyType_Slot columnSlots[] = {
    {Py_tp_dealloc, reinterpret_cast<void *>(freeColumn)},
    {Py_bf_getbuffer, reinterpret_cast<void *>(getBuffer)},
    {}};
PyType_Spec columnSpec = {
    "_ppcc.Column", sizeof(ColumnObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, columnSlots};

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
  columnType = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&columnSpec));
  return self && programType && columnType ? self.release() : nullptr;
}
