// What stands in the place of library code that a module for many systems
// cannot hold. ANTLR's static library reads a flag of glibc directly. glibc has
// arc4random from 2.36 on only.
#include <cstdint>
#include <sys/random.h>

/// That there may be other threads.
extern "C" {
char __libc_single_threaded = 0;

uint32_t arc4random() noexcept {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number)
    ;
  return number;
}
}
