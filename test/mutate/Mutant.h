// In code that has mutants: which of them the process is, and which it reaches.
#pragma once

#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <type_traits>
#include <unistd.h>

namespace mutants {

/// The number in PPCC_MUTANT; -1 is the code as it was written.
inline int chosen() {
  const char *text = std::getenv("PPCC_MUTANT");
  return text ? std::atoi(text) : -1;
}

/// The file that PPCC_REACHED names, whose size is the number of mutants: a
/// byte of it is 1 if a process has evaluated the mutant of this number.
inline volatile char *reached() {
  const char *path = std::getenv("PPCC_REACHED");
  int file = path ? open(path, O_RDWR) : -1;
  if (file < 0)
    return nullptr;
  off_t size = lseek(file, 0, SEEK_END);
  void *bytes = mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE,
                     MAP_SHARED, file, 0);
  close(file);
  return bytes == MAP_FAILED ? nullptr : static_cast<volatile char *>(bytes);
}

inline bool isAtRuntime(int number) {
  static const int mutant = chosen();
  static volatile char *const flags = reached();
  if (flags)
    flags[number] = 1;
  return mutant == number;
}

constexpr bool is(int number) {
  return !std::is_constant_evaluated() && isAtRuntime(number);
}

} // namespace mutants
