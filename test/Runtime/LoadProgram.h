// Programs in files, for programs that run them.
#pragma once

#include "ppcc/Runtime/Json.h"

#include <dlfcn.h>
#include <fstream>
#include <string>

namespace test {

struct LoadedFile {
  ppcc::rt::LoadedProgram owned;
  const ppcc::rt::Program *inLibrary = nullptr;

  const ppcc::rt::Program &program() const {
    return inLibrary ? *inLibrary : owned.program();
  }
};

/// Of a program.json, LIBRARY.so:SYMBOL, or FAMILIES.json@M.
inline LoadedFile loadFile(const std::string &name) {
  LoadedFile loaded;
  if (size_t colon = name.rfind(".so:"); colon != std::string::npos) {
    void *library = dlopen(name.substr(0, colon + 3).c_str(), RTLD_NOW);
    void *symbol =
        library ? dlsym(library, name.substr(colon + 4).c_str()) : nullptr;
    if (!symbol)
      throw ppcc::rt::Error(dlerror());
    loaded.inLibrary = static_cast<const ppcc::rt::Program *>(symbol);
    return loaded;
  }
  size_t at = name.rfind(".json@");
  bool isFamily = at != std::string::npos;
  std::ifstream file(isFamily ? name.substr(0, at + 5) : name,
                     std::ios::binary);
  auto read = ppcc::rt::readJson(file);
  if (isFamily)
    loaded.owned = read.at(std::stoll(name.substr(at + 6)));
  else
    loaded.owned = std::move(read);
  return loaded;
}

} // namespace test
