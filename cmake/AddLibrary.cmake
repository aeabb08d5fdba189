# What a library's files need where they are compiled together (PPCC_UNITY). g++ 12 loses stores of functions that it does not
# inline there: a comma went missing from JSON. It inlines less in files this long, unless told not to, which costs a
# quarter of the speed; precompiled headers must be told too, for they keep their parameters. And it takes each file for a
# header, in which types of an anonymous namespace would differ.
if(PPCC_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(PPCC_UNITY_OPTIONS -fno-ipa-modref --param=large-unit-insns=30000 -Wno-subobject-linkage)
endif()

# ppcc_precompile(NAME LINK target... HEADERS header...): the library NAME, whose headers are compiled once for all targets
# that reuse them. They are others' headers only: the fence below stands.
function(ppcc_precompile name)
  cmake_parse_arguments(ARG "" "" "LINK;HEADERS" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/precompiled/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${name} STATIC ${source})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  target_compile_options(${name} PRIVATE ${PPCC_UNITY_OPTIONS})
endfunction()

# ppcc_reuse(TARGET NAME): TARGET takes the headers of ppcc_precompile(NAME ...). ccache wants the option.
function(ppcc_reuse target name)
  target_precompile_headers(${target} REUSE_FROM ${name})
  target_compile_options(${target} PRIVATE -fpch-preprocess)
endfunction()

set(PPCC_COMMON_HEADERS
  <algorithm> <array> <bit> <charconv> <chrono> <cmath> <cstring> <deque> <functional> <limits> <map> <memory> <numeric>
  <optional> <queue> <set> <span> <sstream> <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector>
  <fmt/format.h>
  <llvm/ADT/ArrayRef.h> <llvm/ADT/BitVector.h> <llvm/ADT/DenseMap.h> <llvm/ADT/DenseSet.h> <llvm/ADT/STLExtras.h>
  <llvm/ADT/SmallString.h> <llvm/ADT/SmallVector.h> <llvm/ADT/StringExtras.h> <llvm/ADT/StringMap.h>
  <llvm/ADT/StringRef.h> <llvm/ADT/StringSwitch.h> <llvm/Support/Error.h> <llvm/Support/FileSystem.h>
  <llvm/Support/JSON.h> <llvm/Support/MemoryBuffer.h> <llvm/Support/Path.h> <llvm/Support/VirtualFileSystem.h>
  <llvm/Support/raw_ostream.h>)
ppcc_precompile(ppccHeaders LINK ppcc_llvm fmt::fmt HEADERS ${PPCC_COMMON_HEADERS})

# ppcc_library(NAME LINK lib...): the library ppccNAME of all sources in this folder. The link list is
# the fence between the layers: headers of a library that is not in it are not found.
function(ppcc_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/*/*.cpp)
  set(target ppcc${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${PPCC_UNITY})
    target_compile_options(${target} PRIVATE ${PPCC_UNITY_OPTIONS})
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter
      # False alarms of g++ 12 inside fmt and libstdc++.
      -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict -Wno-array-bounds)
    ppcc_reuse(${target} ppccHeaders)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  # One include root a library, holding only that library's headers.
  set(root ${PROJECT_BINARY_DIR}/layers/${name})
  file(MAKE_DIRECTORY ${root}/ppcc)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include/ppcc/${name} ${root}/ppcc/${name} SYMBOLIC)
  target_include_directories(${target} ${scope} ${root})
  target_link_libraries(${target} ${scope} ${ARG_LINK} ppcc_llvm fmt::fmt)
endfunction()

# ppcc_embed(NAME FUNCTION file...): files that travel inside the library ppccNAME, as ppcc::FUNCTION() gives them.
function(ppcc_embed name function)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  add_custom_command(OUTPUT ${generated}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${generated} "-DFILES=${ARGN}" -DHEADER=ppcc/Support/Embedded.h -DTYPE=ppcc::EmbeddedFile
            -DFUNCTION=ppcc::${function} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake VERBATIM)
  target_sources(ppcc${name} PRIVATE ${generated})
endfunction()
