// The schedule language: syntax only. docs/language.md says what each construct means.
grammar Schedule;

file : (importDecl | function | block | actionDecl | ruleDecl | apply | schedule)* EOF ;

importDecl : 'import' STRING ';' ;
function   : 'fn' ID '(' parameters? ')' '=' expr ';' ;
block      : 'block' ID '(' parameters? ')' body ;
schedule   : 'schedule' ID '(' parameters? ')' '{' item* '}' ;

// What else happens in a step, and where.
actionDecl    : 'action' ID '{' property* '}' ;
property      : name=(ID | 'per') (propertyValue (',' propertyValue)*)? ';' ;
propertyValue : expr | 'stage' | 'rank' | 'comm' | stageSet ;
stageSet      : 'stages' '(' expr (',' expr)* ')' ;
ruleDecl      : 'rule' ID '(' parameters? ')' '{' insert* '}' ;
insert        : 'insert' ID side=ID anchors ('for' binding (',' binding)*)? ('when' expr)? ';' ;
anchors       : ID (',' ID)* (per='per' 'rank')? (distance=ID expr)? ;
binding       : (ID | 'stage' | 'rank') ID ;
apply         : 'with' ID ('(' (argument (',' argument)*)? ')')? ';' ;

parameters : parameter (',' parameter)* ','? ;
parameter  : ID (':' type)? ('=' expr)? ;
type       : ID | 'pipe' ;

// What stands in a schedule, or (the first row) in a pipe.
item
  : microbatches | slices | placement | stages | stageMap | edge | edgeLoop | module
  | require | ranks | let | function | block | pipe | backward | model | comm | insert | apply | onRank
  | layer | stageGraph | pattern
  ;

require      : 'require' expr (',' STRING)? ';' ;
ranks        : 'ranks' expr ';' ;
microbatches : 'microbatches' expr ('..' expr)? ('pad' expr)? ';' ;
slices       : 'slices' expr ';' ;
placement    : 'placement' ID ('(' expr ')')? ';' ;
stages       : 'stages' expr ';' ;
stageMap     : 'stage' ID 'on' 'rank' expr ';' ;
edge         : 'no'? 'edge' 'stage' expr '->' 'stage' expr ';' ;
edgeLoop     : 'for' ID 'in' expr '..' expr '{' (edge | edgeLoop)* '}' ;
module       : 'module' ID 'stages' expr '..' expr ';' ;
pipe         : 'pipe' ID '{' pipeItem* '}' ;
pipeItem     : microbatches | slices | placement | stages | stageMap | edge | edgeLoop | module ;
backward     : 'backward' 'when' expr ';' ;
onRank       : 'on' 'rank' ID body ;

model        : 'model' '{' (modelSetting | modelScale | modelTensors | modelText)* '}' ;
modelSetting : ID (ID ('.' ID)? | 'overlap')? ('pipe' ID)? ('stage' ID)? '=' expr ';' ;
modelScale   : name=ID subject=ID? word=ID variable=ID '=' expr ';' ;
modelTensors : name=ID ('pipe' pipeName=ID)? 'stage' variable=ID ('in' expr '..' expr)? '=' tensor (',' tensor)* ';' ;
tensor       : ID '[' (dim (',' dim)*)? ']' ID ;
dim          : expr | '?' ;
modelText    : ID STRING ';' ;
comm         : 'comm' '{' commSetting* '}' ;
commSetting  : ID commValue (',' commValue)* ';' ;
commValue    : ID ('-' (ID | 'edge' | 'per'))* (':' INT)? | INT | 'on' ;

// What a stage is made of: the nodes of its layers, and how those of overlapped actions take turns.
layer        : 'layer' ID graphBody ;
stageGraph   : 'stage' 'graph' ID graphBody ;
pattern      : 'overlap' '(' ID (',' ID)* ')' graphBody ;
graphBody    : '{' graphStatement* '}' ;
graphStatement : chain | useLayer | perLayer | place | graphIf | graphRepeat | graphFor ;
chain        : ID ':' link ('->' link)* ';' ;
link         : 'per' 'layer' ID? | (ID '.')? ID ('@' lane)? ;
lane         : ID | 'comm' ;
useLayer     : 'layer' ID ';' ;
perLayer     : 'per' 'layer' graphBody ;
place        : ID? ID '.' ID ';' ;
graphIf      : 'if' expr graphBody ('else' 'if' expr graphBody)* ('else' graphBody)? ;
graphRepeat  : 'repeat' expr graphBody ;
graphFor     : 'for' ID 'in' expr '..' expr graphBody ;

body : '{' statement* '}' ;

statement
  : let | phase | repeat | forLoop | whileLoop | ifElse | overlap | defer | drain | action ;

let       : 'let' ID '=' expr ';' ;
phase     : 'phase' ID body ;
repeat    : 'repeat' expr body ;
forLoop   : 'for' ID 'in' expr '..' expr body ;
whileLoop : 'while' expr body ;
ifElse    : 'if' expr body ('else' 'if' expr body)* ('else' body)? ;
overlap   : 'overlap' body ;
defer     : 'defer' ID ('lag' expr)? body ;
drain     : 'drain' ID ('(' expr ')')? ';' ;
action    : ID ('(' (argument (',' argument)*)? ')')? ';' ;
argument  : (ID ':')? expr ;

expr
  : INT                                                   # Int
  | FLOAT                                                 # Float
  | value=('true' | 'false')                              # Bool
  | ID '(' (expr (',' expr)*)? ')'                        # Call
  | ID                                                    # Name
  | '(' expr ')'                                          # Group
  | '-' expr                                              # Negate
  | expr op=('*' | '/' | '%') expr                        # Binary
  | expr op=('+' | '-') expr                              # Binary
  | expr op=('==' | '!=' | '<' | '<=' | '>' | '>=') expr  # Binary
  | 'not' expr                                            # Not
  | expr op='and' expr                                    # Binary
  | expr op='or' expr                                     # Binary
  | <assoc=right> expr '?' expr ':' expr                  # Conditional
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
