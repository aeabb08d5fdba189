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
propertyValue : expr | keyword=('stage' | 'rank' | 'comm') of=expr? | set='stages' '(' expr (',' expr)* ')' ;
ruleDecl      : 'rule' name=ID '(' parameters ')' '{' insert* '}' ;
insert
  : 'insert' name=ID side=ID names+=ID (',' names+=ID)* (per='per' 'rank')? (word=ID distance=expr)?
    ('for' binding (',' binding)*)? ('when' when=expr)? ';' ;
binding       : what=(ID | 'stage' | 'rank') variable=ID ;
apply         : 'with' name=ID arguments ';' ;
useSchedule   : 'import' name=ID arguments ';' ;

parameters : (parameter (',' parameter)* ','?)? ;
parameter
  : name=ID (':' type=(ID | 'pipe') (list='[' ']')? ('>=' least=expr | 'in' least=expr '..' end=expr)?)? ('=' value=expr)? ;

// What stands in a schedule, or (the first two rows) in a pipe.
item
  : microbatches | slices | placement | stages | stageMap
  | edge | let | ifElse | forLoop | loop
  | require | ranks | function | block | pipe | backward | declared | comm | insert | apply | onRank
  | useSchedule
  ;

require      : 'require' expr (',' message=STRING)? ';' ;
ranks        : 'ranks' expr ';' ;
microbatches : 'microbatches' expr (range='..' expr)? (pad='pad' expr)? ';' ;
slices       : 'slices' expr ';' ;
placement    : 'placement' name=ID ('(' expr (',' expr)* ')')? ';' ;
stages       : 'stages' expr ';' ;
stageMap     : 'stage' name=ID 'on' 'rank' expr ';' ;
pipe         : 'pipe' name=ID '{' pipeItem* '}' ;
pipeItem
  : microbatches | slices | placement | stages | stageMap
  | edge | let | ifElse | forLoop | loop
  ;
backward     : 'backward' 'when' expr ';' ;
onRank       : 'on' ('rank' | several='ranks') expr body ;

comm         : 'comm' '{' words* '}' ;

// What the work is, and what it runs on: with a name in a file, without one in a schedule.
declared : what=('model' | 'cluster') (name=ID '(' parameters ')')? sectionBody ;
sectionBody
  : '{' ( setting | tensors | words | named | chain | place
        | pattern | choice | let | require | function | stages )* '}' ;
setting
  : name=ID (subject=ID ('.' node=ID)? | subject='overlap')? ('pipe' inPipe=ID)?
    (over=(ID | 'stage' | 'rank') variable=ID)? '=' expr ';' ;
tensors : name=ID (('pipe' inPipe=ID)? 'stage' variable=ID ('in' expr '..' expr)? '=')? tensor (',' tensor)* ';' ;
tensor  : name=ID '[' (dim (',' dim)*)? ']' type=ID ;
dim     : expr | '?' ;
named   : what=ID names+=ID (',' names+=ID)* sectionBody ;
words   : name=ID entry (',' entry)* tail* ';' ;
entry   : (parts+=ID (parts+='-' parts+=(ID | 'edge' | 'per'))* (parts+=':' parts+=INT)? | parts+=(INT | 'on' | STRING) | '(' entry (',' entry)* ')') ('*' expr)? ;
tail    : name=ID names+=ID (',' names+=ID)* ;
chain   : name=ID ':' link ('->' link)* ';' ;
link    : (part=ID '.')? name=ID ('@' lane=(ID | 'comm'))? ;
place   : modifier=ID? part=ID '.' node=ID ';' ;
pattern : 'overlap' names+=ID (',' names+=ID)* sectionBody ;
choice  : 'if' expr sectionBody ('else' 'if' expr sectionBody)* ('else' sectionBody)? ;

// What ranks do, and loops over edges. Which of them a body can hold, lib/Sema/Bodies.def says.
body
  : '{' ( action | let | ifElse | forLoop | loop
        | phase | overlap | defer | drain | edge | pipe )* '}' ;

let       : 'let' name=ID '=' expr ';' ;
ifElse    : 'if' expr body ('else' 'if' expr body)* ('else' body)? ;
forLoop   : 'for' name=ID 'in' expr '..' expr body ;
loop      : what=('repeat' | 'while') expr body ;

phase     : 'phase' name=ID body ;
overlap   : 'overlap' body ;
defer     : 'defer' name=ID fill=ID? ('lag' lag=expr)? (word=ID cap=expr)? body ;
drain     : 'drain' name=ID ('(' expr ')')? ';' ;
edge      : no='no'? 'edge' 'stage' expr '->' 'stage' expr ';' ;

action    : name=ID arguments ';' ;
arguments : ('(' (argument (',' argument)*)? ')')? ;
argument  : (label=ID ':')? expr ;

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
