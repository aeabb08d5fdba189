# Writes OUTPUT, the C++ source of FUNCTION, which gives the names and texts of FILES as an array of TYPE. HEADER declares
# that.
string(REPLACE "ppcc::" "" short ${FUNCTION})
set(rows "")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  string(APPEND rows "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"${HEADER}\"

namespace ppcc {
llvm::ArrayRef<${TYPE}> ${short}();
}

llvm::ArrayRef<${TYPE}> ${FUNCTION}() {
  static constexpr ${TYPE} files[] = {
${rows}  };
  return files;
}
")
