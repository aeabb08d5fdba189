# Finds LLVM 14 or newer, and says what its Support library is linked with.
cmake_policy(VERSION 3.20...3.25)

# _ppcc_add_member(TEXT NAME BEFORE MEMBER): puts a member into the class in TEXT, unless it has one of this name.
function(_ppcc_add_member holder name before member)
  string(FIND "${${holder}}" "${name}" found)
  if(found EQUAL -1)
    string(REPLACE "${before}" "${member}\n  ${before}" changed "${${holder}}")
    set(${holder} "${changed}" PARENT_SCOPE)
  endif()
endfunction()

# ppcc_find_llvm(PROBLEM [VERSION]): the LLVM that LLVM_DIR names, else the newest, with the version that is given. Sets
# PPCC_LLVM_INCLUDE and PPCC_LLVM_LIBRARIES, or says in PROBLEM what is missing.
function(ppcc_find_llvm problem)
  set(${problem} "" PARENT_SCOPE)
  if(NOT LLVM_DIR)
    # Debian and Ubuntu have each version in a folder of its own.
    string(REGEX MATCH "^[0-9]+" major "${ARGV1}")
    file(GLOB folders /usr/lib/llvm-${major}*)
    list(SORT folders COMPARE NATURAL ORDER DESCENDING)
    find_package(LLVM ${ARGV1} QUIET CONFIG HINTS ${folders})
  endif()
  find_package(LLVM ${ARGV1} QUIET CONFIG)
  if(NOT LLVM_FOUND OR LLVM_VERSION VERSION_LESS 14 OR NOT TARGET LLVMSupport)
    set(${problem} "LLVM 14 or newer with its static libraries, in Debian llvm-19-dev, in Fedora llvm-devel llvm-static; \
LLVM_DIR names the folder of another LLVMConfig.cmake" PARENT_SCOPE)
    return()
  endif()

  # As files, statically: the shared LLVM costs 30 ms at each start, and what LLVM's package says that they need names
  # targets that Debian does not install.
  set(libraries $<TARGET_FILE:LLVMSupport> $<TARGET_FILE:LLVMDemangle> ZLIB::ZLIB)
  find_library(PPCC_ZSTD zstd)
  find_library(PPCC_TINFO tinfo)
  if(LLVM_VERSION VERSION_GREATER_EQUAL 15)
    list(APPEND libraries ${PPCC_ZSTD})
  endif()
  if(LLVM_VERSION VERSION_LESS 19)
    list(APPEND libraries ${PPCC_TINFO})
  endif()
  if("${libraries}" MATCHES "-NOTFOUND")
    set(${problem} "what LLVM ${LLVM_VERSION} needs itself, in Debian zlib1g-dev libzstd-dev libtinfo-dev" PARENT_SCOPE)
    return()
  endif()
  set(PPCC_LLVM_LIBRARIES ${libraries} Threads::Threads ${CMAKE_DL_LIBS} rt m PARENT_SCOPE)

  set(include ${LLVM_INCLUDE_DIRS})
  if(LLVM_VERSION VERSION_LESS 19)
    list(PREPEND include ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/llvm)
  endif()
  if(LLVM_VERSION VERSION_LESS 16)
    # Members cannot be added from outside.
    set(added ${CMAKE_BINARY_DIR}/llvm-${LLVM_VERSION})
    find_path(adt llvm/ADT/StringRef.h PATHS ${LLVM_INCLUDE_DIRS} NO_DEFAULT_PATH NO_CACHE REQUIRED)
    file(READ ${adt}/llvm/ADT/StringRef.h text)
    foreach(end start end)
      _ppcc_add_member(text ${end}s_with "bool ${end}swith(StringRef"
        "bool ${end}s_with(StringRef text) const { return ${end}swith(text); }")
    endforeach()
    file(CONFIGURE OUTPUT ${added}/llvm/ADT/StringRef.h CONTENT "${text}" @ONLY)
    file(READ ${adt}/llvm/ADT/Optional.h text)
    _ppcc_add_member(text std::nullopt_t "constexpr Optional(NoneType) {}" "constexpr Optional(std::nullopt_t) {}")
    _ppcc_add_member(text value_or "constexpr Optional(NoneType) {}"
      "template <typename U> T value_or(U &&other) const { return *this ? **this : T(std::forward<U>(other)); }")
    file(CONFIGURE OUTPUT ${added}/llvm/ADT/Optional.h CONTENT "#include <optional>\n${text}" @ONLY)
    list(PREPEND include ${added})
  endif()
  set(PPCC_LLVM_INCLUDE ${include} PARENT_SCOPE)
  set(PPCC_LLVM_PREFIX ${LLVM_INSTALL_PREFIX} PARENT_SCOPE)
  set(PPCC_LLVM_TOOLS ${LLVM_TOOLS_BINARY_DIR} PARENT_SCOPE)
  set(PPCC_LLVM_VERSION ${LLVM_VERSION_MAJOR}.${LLVM_VERSION_MINOR} PARENT_SCOPE)
endfunction()
