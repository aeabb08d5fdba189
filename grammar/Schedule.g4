// The schedule language: syntax only. docs/language.md says what each construct means.
grammar Schedule;

// lib/Parse/Parser.cpp keeps rules in the tree, and of the tokens those that have a name here.
file : (importDecl | function | block | actionDecl | ruleDecl | apply | declared | placementDecl | schedule)* EOF ;

importDecl : 'import' path=STRING ';' ;
function   : 'fn' name=ID '(' parameters ')' '=' expr ';' ;
block      : 'block' name=ID '(' parameters ')' body ;
schedule   : 'schedule' name=ID '(' parameters ')' '{' item* '}' ;

// Which rank has which stage.
placementDecl : 'placement' name=ID ('(' parameters ')')? '{' (stages | stageMap)* '}' ;

// What else happens in a step, and where.
actionDecl    : 'action' name=ID '{' property* '}' ;
property      : name=(ID | 'per') (propertyValue (',' propertyValue)*)? ';' ;
propertyValue : expr | keyword=('stage' | 'rank' | 'comm') | stageSet ;
stageSet      : name='stages' '(' expr (',' expr)* ')' ;
ruleDecl      : 'rule' name=ID '(' parameters ')' '{' insert* '}' ;
insert        : 'insert' name=ID side=ID anchors ('for' binding (',' binding)*)? (when='when' expr)? ';' ;
anchors       : names+=ID (',' names+=ID)* (per='per' 'rank')? (distance=ID expr)? ;
binding       : what=(ID | 'stage' | 'rank') variable=ID ;
apply         : 'with' name=ID arguments ';' ;
useSchedule   : 'import' name=ID arguments ';' ;

parameters : (parameter (',' parameter)* ','?)? ;
parameter  : name=ID (':' type=(ID | 'pipe') (list='[' ']')? bounds?)? ('=' value=expr)? ;
bounds     : '>=' expr | 'in' expr '..' expr ;

// What stands in a schedule, or (the first two rows) in a pipe.
item
  : microbatches | slices | placement | stages | stageMap | module
  | edge | let | ifElse | forLoop | repeat | whileLoop
  | require | ranks | function | block | pipe | backward | declared | comm | insert | apply | onRank
  | layer | stageGraph | pattern | useSchedule
  ;

require      : 'require' expr (',' message=STRING)? ';' ;
ranks        : 'ranks' expr ';' ;
microbatches : 'microbatches' expr (range='..' expr)? (pad='pad' expr)? ';' ;
slices       : 'slices' expr ';' ;
placement    : 'placement' name=ID ('(' expr (',' expr)* ')')? ';' ;
stages       : 'stages' expr ';' ;
stageMap     : 'stage' name=ID 'on' 'rank' expr ';' ;
module       : 'module' name=ID 'stages' expr '..' expr ';' ;
pipe         : 'pipe' name=ID '{' pipeItem* '}' ;
pipeItem
  : microbatches | slices | placement | stages | stageMap | module
  | edge | let | ifElse | forLoop | repeat | whileLoop
  ;
backward     : 'backward' 'when' expr ';' ;
onRank       : 'on' ('rank' | several='ranks') expr body ;
layer        : 'layer' name=ID body ;
stageGraph   : 'stage' 'graph' name=ID body ;
pattern      : 'overlap' '(' names+=ID (',' names+=ID)* ')' body ;

comm         : 'comm' '{' words* '}' ;

// What the work is, and what it runs on: with a name in a file, without one in a schedule.
declared : what=('model' | 'cluster') (name=ID '(' parameters ')')? sectionBody ;
sectionBody
  : '{' ( setting | scale | tensors | text | words | named
        | let | require | function )* '}' ;
setting
  : name=ID (subject=ID ('.' node=ID)? | subject='overlap')? ('pipe' inPipe=ID)? (over=('stage' | 'rank') variable=ID)? '=' expr ';' ;
scale   : name=ID subject=ID? word=ID variable=ID '=' expr ';' ;
tensors : name=ID ('pipe' inPipe=ID)? 'stage' variable=ID ('in' expr '..' expr)? '=' tensor (',' tensor)* ';' ;
tensor  : name=ID '[' (dim (',' dim)*)? ']' type=ID ;
dim     : expr | '?' ;
text    : name=ID value=STRING ';' ;
named   : what=ID names+=ID (',' names+=ID)* sectionBody ;
words   : name=ID entry (',' entry)* ';' ;
entry   : parts+=ID (parts+='-' parts+=(ID | 'edge' | 'per'))* (parts+=':' parts+=INT)? | parts+=(INT | 'on') ;

// One language of statements for what ranks do, for layers, stage graphs and patterns, and for loops over edges. Which of
// them a body can hold, lib/Sema/Bodies.def says.
body
  : '{' ( action | let | ifElse | forLoop | repeat | whileLoop
        | phase | overlap | defer | drain
        | useLayer | perLayer | edge | pipe )* '}' ;

let       : 'let' name=ID '=' expr ';' ;
ifElse    : 'if' expr body ('else' 'if' expr body)* ('else' body)? ;
forLoop   : 'for' name=ID 'in' expr '..' expr body ;
repeat    : 'repeat' expr body ;
whileLoop : 'while' expr body ;

phase     : 'phase' name=ID body ;
overlap   : 'overlap' body ;
defer     : 'defer' name=ID fill=ID? ('lag' lag=expr)? (word=ID cap=expr)? body ;
drain     : 'drain' name=ID ('(' expr ')')? ';' ;
useLayer  : 'layer' name=ID ';' ;
perLayer  : 'per' 'layer' body ;
edge      : no='no'? 'edge' 'stage' expr '->' 'stage' expr ';' ;

// What begins with a name: an action or the call of a block, a chain of nodes, the place of a node.
action    : name=ID (arguments | ':' link ('->' link)* | part=ID? '.' node=ID) ';' ;
arguments : ('(' (argument (',' argument)*)? ')')? ;
argument  : (label=ID ':')? expr ;
link      : isLayers='per' 'layer' direction=ID? | (part=ID '.')? name=ID ('@' lane=(ID | 'comm'))? ;

expr
  : atom=(INT | FLOAT | 'true' | 'false' | ID | 'ranks')
  | callee=ID '(' (expr (',' expr)*)? ')'
  | '(' expr ')'
  | list='[' (expr ((',' expr)* | 'for' name=ID 'in' expr '..' expr))? ']'
  | expr at='[' expr ']'
  | op='-' expr
  | expr op=('*' | '/' | '%') expr
  | expr op=('+' | '-') expr
  | expr op=('==' | '!=' | '<' | '<=' | '>' | '>=') expr
  | op='not' expr
  | expr op='and' expr
  | expr op='or' expr
  | <assoc=right> expr op='?' expr ':' expr
  ;

INT     : [0-9]+ ;
FLOAT   : [0-9]+ '.' [0-9]+ ([eE] [+-]? [0-9]+)? | [0-9]+ [eE] [+-]? [0-9]+ ;
ID      : [A-Za-z_] [A-Za-z0-9_]* ;
STRING  : '"' (~["\\\r\n] | '\\' ~[\r\n])* '"' ;
SPACE   : [ \t\r\n]+ -> skip ;
COMMENT : '//' ~[\r\n]* -> skip ;

// Whatever else stands in a file: an error with a place, instead of a lexer that stops.
OPEN_STRING : '"' (~["\\\r\n] | '\\' ~[\r\n])* ;
UNKNOWN     : . ;
