// The caret stands under the mistake behind tabs and letters of several bytes; columns count bytes.
// RUN: not ppcc %s 2>&1 | FileCheck %s --strict-whitespace

schedule s() {
// CHECK:      columns.pp:[[#@LINE+3]]:18: error: unknown name `x` [E0301]
// CHECK-NEXT:{{^}}  [[#@LINE+2]] |  require	true == x, "schön";
// CHECK-NEXT:{{^}}    |         	        ^{{$}}
 require	true == x, "schön";
// CHECK:      columns.pp:[[#@LINE+3]]:{{[0-9]+}}: error: unknown name `yy` [E0301]
// CHECK-NEXT:{{^}}  [[#@LINE+2]] |  require 1 < 2, "schön"; require yy, "";
// CHECK-NEXT:{{^}}     |                                  ^~{{$}}
 require 1 < 2, "schön"; require yy, "";
}
