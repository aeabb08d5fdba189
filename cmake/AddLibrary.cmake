# ppcc_library(NAME LINK lib...): the library ppccNAME of all sources in this folder. The link list is the
# fence between the layers: headers of a library that is not in it are not found.
function(ppcc_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  set(target ppcc${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter
      # False alarms of g++ 12 inside fmt and libstdc++.
      -Wno-stringop-overflow -Wno-restrict)
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
