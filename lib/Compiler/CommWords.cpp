#include "ppcc/Compiler/CommWords.h"

#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Transport.h"
#include "ppcc/Transforms/FuseComm.h"
#include "ppcc/Transforms/InjectComm.h"

using namespace ppcc;

sema::CommWords ppcc::commWords() {
  sema::CommWords words;
  for (const CommOrderInfo &order : commOrders())
    words.orders.push_back(order.name);
  for (StringRef name : transportNames())
    words.transports.push_back(name);
  words.isTransport = [](StringRef name) {
    return findTransport(name).has_value();
  };
  for (const FusionInfo &fusion : fusions())
    words.fusions.push_back(fusion.name);
  for (StringRef style : llvm::drop_begin(callStyleNames()))
    words.calls.push_back(style);
  return words;
}
