// A layout: the layers of each stage. docs/language.md says what it means.
grammar Layout;

layout : part* EOF ;
part   : (LETTER | BAR | '(' part* ')') ('*' INT)? | ',' ;

BAR     : '|' ;
LETTER  : [A-Za-z] ;
INT     : [0-9]+ ;
SPACE   : [ \t]+ -> skip ;
UNKNOWN : . ;
