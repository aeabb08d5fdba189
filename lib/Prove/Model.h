// What a program is judged by, from its head.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Proof/Certificate.h"

namespace ppcc {

/// The model of the programs of a template, one of which is `sample`. Costs are
/// those of the actions and groups of the template.
std::shared_ptr<const proof::Model> modelOf(const Program &sample,
                                            const proof::Template &family);

} // namespace ppcc
