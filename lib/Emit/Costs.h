// Writes the costs of a program as docs/costs.schema.json describes them.
#pragma once

#include "Writer.h"

namespace ppcc {

void putCosts(Writer &writer, const Program &program);

} // namespace ppcc
