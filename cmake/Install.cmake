# What `cmake --install` writes. All paths are relative to the prefix, so the tree can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(PPCC_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ppcc)
set(PPCC_LIT_DIR ${CMAKE_INSTALL_DATAROOTDIR}/ppcc/lit)
set(PPCC_SCHEDULES_DIR ${CMAKE_INSTALL_DATAROOTDIR}/ppcc/schedules)

install(TARGETS ppcc ppcc-check-proof ppccRuntime EXPORT ppccTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(PROGRAMS python/src/ppcc/_profile.py DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME ppcc-profile)
install(EXPORT ppccTargets NAMESPACE ppcc:: DESTINATION ${PPCC_CMAKE_DIR})
install(DIRECTORY include/ppcc/Runtime DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ppcc FILES_MATCHING PATTERN "*.h")

# The compiler as a library, in one archive, is a component that the packages of cpack leave out.
add_library(ppccArchive STATIC)
set_target_properties(ppccArchive PROPERTIES OUTPUT_NAME ppcc EXPORT_NAME compiler LINKER_LANGUAGE CXX)
target_compile_features(ppccArchive INTERFACE cxx_std_20)
foreach(part Support Basic AST IR Proof Import Grammar Parse Sema Model Expand Pass Analysis Verify Transforms Emit Schedules Compiler)
  target_sources(ppccArchive PRIVATE $<TARGET_OBJECTS:ppcc${part}>)
  if(EXISTS ${PROJECT_SOURCE_DIR}/include/ppcc/${part})
    install(DIRECTORY include/ppcc/${part} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ppcc COMPONENT compiler)
  endif()
endforeach()
install(TARGETS ppccArchive EXPORT ppccCompilerTargets COMPONENT compiler
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compiler INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT ppccCompilerTargets NAMESPACE ppcc:: DESTINATION ${PPCC_CMAKE_DIR} COMPONENT compiler)

configure_package_config_file(cmake/ppccConfig.cmake.in ${PROJECT_BINARY_DIR}/ppccConfig.cmake
  INSTALL_DESTINATION ${PPCC_CMAKE_DIR} PATH_VARS PPCC_LIT_DIR PPCC_SCHEDULES_DIR)
# Nothing in the package is compiled for one architecture but the programs, which are run and not linked.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ppccConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/ppccConfig.cmake ${PROJECT_BINARY_DIR}/ppccConfigVersion.cmake
  cmake/PpccAddSchedule.cmake cmake/PpccComponents.cmake cmake/PpccLlvm.cmake DESTINATION ${PPCC_CMAKE_DIR})
install(DIRECTORY cmake/llvm DESTINATION ${PPCC_CMAKE_DIR} COMPONENT compiler)

# To be read: ppcc holds them itself.
install(DIRECTORY lib/schedules/ lib/models/ lib/clusters/ DESTINATION ${PPCC_SCHEDULES_DIR} FILES_MATCHING PATTERN "*.pp")
install(FILES lib/lit/ppcc_lit.py DESTINATION ${PPCC_LIT_DIR})
install(FILES README.md CHANGELOG.md LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/ppcc)
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/ppcc
  PATTERN make-gallery.py EXCLUDE PATTERN __pycache__ EXCLUDE)
