# The packages that ppcc stands on, each as an imported target.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(LLVM 19.1 REQUIRED CONFIG PATHS /usr/lib/llvm-19)
find_package(antlr4-runtime REQUIRED CONFIG)
find_library(PPCC_ZSTD zstd REQUIRED)

# Statically: the shared LLVM costs 30 ms at each start. The package's own link list names targets that
# Debian does not install.
set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES
  "LLVMDemangle;ZLIB::ZLIB;${PPCC_ZSTD};Threads::Threads;${CMAKE_DL_LIBS};rt;m")
add_library(ppcc_llvm INTERFACE)
target_include_directories(ppcc_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(ppcc_llvm INTERFACE LLVMSupport)

find_program(PPCC_ANTLR4 antlr4 REQUIRED)

# For stages of LibTorch. The reference BLAS is 10 to 20 times slower than OpenBLAS, which Torch takes when it is
# installed; OpenBLAS for one thread is wrong where ranks are threads.
if(PPCC_LIBTORCH)
  find_package(Torch QUIET)
endif()
find_package(nlohmann_json QUIET)
find_library(PPCC_GLOO gloo)
set(PPCC_TORCH OFF)
if(Torch_FOUND AND PPCC_GLOO AND nlohmann_json_FOUND)
  set(PPCC_TORCH ON)
  # The same for a compiler without CMake.
  set(flags ${TORCH_INCLUDE_DIRS})
  list(REMOVE_ITEM flags /usr/include)
  list(TRANSFORM flags PREPEND "-isystem ")
  list(JOIN flags " " flags)
  set(PPCC_TORCH_COMPILE "${flags} ${TORCH_CXX_FLAGS}")
  get_target_property(path torch LOCATION)
  get_filename_component(path ${path} DIRECTORY)
  set(PPCC_TORCH_LINK "-L${path} -ltorch -ltorch_cpu -lc10 ${PPCC_GLOO}")
elseif(PPCC_LIBTORCH)
  message(WARNING "LibTorch, Gloo or nlohmann-json is not here: ppcc is built without pprun and without stages of "
    "LibTorch, and their tests are reported as unsupported. Debian's packages: libtorch-dev libgloo-dev "
    "libopenblas0-pthread nlohmann-json3-dev")
endif()
