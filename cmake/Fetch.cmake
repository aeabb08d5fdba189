# With PPCC_FETCH: fmt, CLI11 and ANTLR of the newest kinds that ppcc is built with, from where they are published. Sources that
# are here already are taken with FETCHCONTENT_SOURCE_DIR_FMT, ..._CLI11 and ..._ANTLR.
include(FetchContent)
set(FETCHCONTENT_QUIET OFF)
FetchContent_Declare(fmt GIT_REPOSITORY https://github.com/fmtlib/fmt GIT_TAG 11.1.1 GIT_SHALLOW ON)
FetchContent_Declare(cli11 GIT_REPOSITORY https://github.com/CLIUtils/CLI11 GIT_TAG v2.6.1 GIT_SHALLOW ON)
# Its own CMakeLists.txt writes into the project around it.
FetchContent_Declare(antlr GIT_REPOSITORY https://github.com/antlr/antlr4 GIT_TAG 4.13.2 GIT_SHALLOW ON SOURCE_SUBDIR none)
set(CLI11_BUILD_TESTS OFF)
set(CLI11_BUILD_EXAMPLES OFF)
set(BUILD_TESTING OFF)
FetchContent_MakeAvailable(fmt cli11 antlr)

set(ANTLR4_INCLUDE_DIR ${antlr_SOURCE_DIR})
if(EXISTS ${antlr_SOURCE_DIR}/runtime/Cpp/runtime/src)
  string(APPEND ANTLR4_INCLUDE_DIR /runtime/Cpp/runtime/src)
endif()
file(GLOB_RECURSE sources ${ANTLR4_INCLUDE_DIR}/*.cpp)
add_library(antlr4_static STATIC EXCLUDE_FROM_ALL ${sources})
set_target_properties(antlr4_static PROPERTIES CXX_STANDARD 17)
target_compile_options(antlr4_static PRIVATE -w)
target_compile_definitions(antlr4_static PUBLIC ANTLR4CPP_STATIC)
target_include_directories(antlr4_static SYSTEM PUBLIC ${ANTLR4_INCLUDE_DIR})
target_link_libraries(antlr4_static PUBLIC Threads::Threads)

find_package(Java COMPONENTS Runtime REQUIRED)
set(jar ${PROJECT_BINARY_DIR}/antlr-4.13.2-complete.jar)
file(DOWNLOAD https://repo1.maven.org/maven2/org/antlr/antlr4/4.13.2/antlr4-4.13.2-complete.jar ${jar}
  EXPECTED_HASH SHA256=eae2dfa119a64327444672aff63e9ec35a20180dc5b8090b7a6ab85125df4d76)
set(PPCC_ANTLR4 ${Java_JAVA_EXECUTABLE} -jar ${jar})
