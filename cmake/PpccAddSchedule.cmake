# ppcc_add_schedule(TARGET target
#                   SOURCE file.pp | NAME schedule | SOURCE file.pp NAME schedule
#                   [DEFINE P=8 M=32 ...] [SYMBOL name] [FORMAT cpp|json] [OPTIONS option...])
#
# Compiles a schedule when `target` is built, and again when the file, what it imports, files of its options or ppcc have
# changed. NAME alone is a schedule of the library; with SOURCE, that schedule of the file. The target is linked with
# ppcc::runtime. FORMAT cpp, the default, becomes a source of the target; FORMAT json is written to
# ppcc/TARGET/SCHEDULE.json in the folder of the build. OPTIONS go to ppcc as they are; paths in them are relative to the
# folder of the CMakeLists.txt.
cmake_policy(VERSION 3.20...3.25)

# Ends the configuration with what is wrong with the call.
function(_ppcc_wrong_schedule text)
  message(FATAL_ERROR "ppcc_add_schedule: ${text}")
endfunction()

# Refuses what CMake would not, or only with words that do not say what to do.
function(_ppcc_check_schedule_target target)
  if(NOT TARGET ${target})
    _ppcc_wrong_schedule("there is no target `${target}`; call add_executable or add_library first")
  endif()
  get_target_property(type ${target} TYPE)
  get_target_property(is_imported ${target} IMPORTED)
  if(is_imported OR type STREQUAL "INTERFACE_LIBRARY" OR type STREQUAL "UTILITY")
    _ppcc_wrong_schedule("nothing is compiled for `${target}`; give an executable or a library that has sources")
  endif()
  get_target_property(folder ${target} SOURCE_DIR)
  if(NOT folder STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    _ppcc_wrong_schedule("`${target}` belongs to ${folder}; call ppcc_add_schedule in the CMakeLists.txt there")
  endif()
endfunction()

function(ppcc_add_schedule)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "TARGET;SOURCE;NAME;SYMBOL;FORMAT" "DEFINE;OPTIONS")
  if(ARG_UNPARSED_ARGUMENTS)
    list(GET ARG_UNPARSED_ARGUMENTS 0 unknown)
    _ppcc_wrong_schedule("unknown argument `${unknown}`; expected one of TARGET, SOURCE, NAME, DEFINE, SYMBOL, FORMAT, OPTIONS")
  endif()
  if(ARG_KEYWORDS_MISSING_VALUES)
    list(GET ARG_KEYWORDS_MISSING_VALUES 0 keyword)
    _ppcc_wrong_schedule("${keyword} has no value")
  endif()
  if(NOT ARG_TARGET)
    _ppcc_wrong_schedule("TARGET is missing; say which executable or library runs the schedule")
  endif()
  if(NOT ARG_SOURCE AND NOT ARG_NAME)
    _ppcc_wrong_schedule("SOURCE is missing; give a .pp file, or with NAME a schedule of the library")
  endif()
  _ppcc_check_schedule_target(${ARG_TARGET})

  set(arguments "")
  foreach(definition IN LISTS ARG_DEFINE)
    if(NOT definition MATCHES "^[A-Za-z_][A-Za-z_0-9]*=.")
      _ppcc_wrong_schedule("`${definition}` after DEFINE is not of the form NAME=VALUE, such as P=8")
    endif()
    list(APPEND arguments -D ${definition})
  endforeach()
  foreach(option IN LISTS ARG_OPTIONS)
    if(option MATCHES "^(-o|--output|--emit|--depfile|--cpp-symbol)(=|$)")
      _ppcc_wrong_schedule("`${option}` cannot stand after OPTIONS; FORMAT and SYMBOL say what is written")
    endif()
  endforeach()
  if(NOT ARG_FORMAT)
    set(ARG_FORMAT cpp)
  elseif(NOT ARG_FORMAT MATCHES "^(cpp|json)$")
    _ppcc_wrong_schedule("`${ARG_FORMAT}` is no FORMAT; there are cpp and json")
  endif()

  if(ARG_SOURCE)
    cmake_path(ABSOLUTE_PATH ARG_SOURCE NORMALIZE OUTPUT_VARIABLE source)
    get_source_file_property(is_generated ${source} GENERATED)
    if(NOT EXISTS ${source} AND NOT is_generated)
      _ppcc_wrong_schedule("there is no file ${source}")
    endif()
    # Relative, so that the program does not hold the folder it was built in.
    file(RELATIVE_PATH input ${CMAKE_CURRENT_SOURCE_DIR} ${source})
    cmake_path(GET source STEM name)
    if(ARG_NAME)
      string(APPEND input :${ARG_NAME})
    endif()
  else()
    set(source "")
    # With the extension, which an executable called like the schedule does not have.
    set(input ${ARG_NAME}.pp)
  endif()
  if(ARG_NAME)
    set(name ${ARG_NAME})
  endif()
  if(ARG_SYMBOL)
    if(ARG_FORMAT STREQUAL json)
      _ppcc_wrong_schedule("SYMBOL names a variable of C++, and FORMAT is json; leave one of them out")
    endif()
    set(name ${ARG_SYMBOL})
    list(APPEND arguments --cpp-symbol=${ARG_SYMBOL})
  endif()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/ppcc/${ARG_TARGET})
  set(output ${folder}/${name}.${ARG_FORMAT})
  get_target_property(outputs ${ARG_TARGET} PPCC_SCHEDULES)
  if(output IN_LIST outputs)
    _ppcc_wrong_schedule("`${ARG_TARGET}` has a schedule `${name}` already; give this one another SYMBOL")
  endif()
  set_property(TARGET ${ARG_TARGET} APPEND PROPERTY PPCC_SCHEDULES ${output})

  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${output}
    COMMAND ppcc::ppcc ${input} ${arguments} ${ARG_OPTIONS}
            --emit=${ARG_FORMAT} --output=${output} --depfile=${output}.d
    DEPENDS ${source} ppcc::ppcc
    DEPFILE ${output}.d
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    COMMENT "Compiling schedule ${input}"
    VERBATIM)
  # Each generated file has tables of the same names.
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${ARG_TARGET} PRIVATE ${output})
  target_link_libraries(${ARG_TARGET} PRIVATE ppcc::runtime)
endfunction()
