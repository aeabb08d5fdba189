# Writes OUTPUT, the C++ source that holds the text of FILES.
set(rows "")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  string(APPEND rows "    {\"${name}\", R\"schedule(${text})schedule\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"ppcc/Driver/ScheduleLibrary.h\"

static constexpr ppcc::LibraryFile files[] = {
${rows}};

llvm::ArrayRef<ppcc::LibraryFile> ppcc::scheduleLibrary() { return files; }
")
