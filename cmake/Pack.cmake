# The packages that cpack makes of what is installed.
set(PPCC_PACKAGE_CONTACT "ppcc maintainers <ppcc@packages.invalid>" CACHE STRING "Name and address of who makes packages")

set(CPACK_PACKAGE_NAME ppcc)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR ppcc)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_CONTACT ${PPCC_PACKAGE_CONTACT})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler for pipeline-parallel schedules")
set(CPACK_PACKAGE_DESCRIPTION "ppcc compiles the schedule of a pipeline, forwards and backwards of each rank,\
 into verified programs with communication. With it come the headers of the engine that executes these programs,\
 a package for CMake and what tests of schedules need.")
set(CPACK_GENERATOR DEB TGZ)
# Without the component `compiler`.
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};ppcc;Unspecified;/")
set(CPACK_STRIP_FILES ON)
set(CPACK_SYSTEM_NAME ${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "python3 (>= 3.11)") # Of ppcc-profile.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "cmake (>= 3.20), g++")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libopenmpi-dev, nlohmann-json3-dev, llvm-19-tools")
include(CPack)
