# Writes OUTPUT, a header with the commit that the sources in SOURCE are at, when it is another one. Empty where git does not tell.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=* OUTPUT_VARIABLE commit
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
# The sources may lie in a checkout of something else.
file(REAL_PATH ${SOURCE} source)
if(status OR NOT top STREQUAL source)
  set(commit "")
else()
  string(PREPEND commit " (")
  string(APPEND commit ")")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define PPCC_COMMIT \"@commit@\"\n" @ONLY)
