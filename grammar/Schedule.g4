// The schedule language: syntax only. docs/language.md says what each construct means.
grammar Schedule;

// A rule is called what its node is in include/ppcc/AST/AST.def, and its parts what the fields of that are: lib/Parse/Parser.cpp
// keeps rules in the tree, and of the tokens those that have a name here.
file : (imports+=importDecl | items+=declaration | schedules+=schedule)* EOF ;
declaration
  : functionItem | blockItem | actionKindItem | ruleItem | applyItem | modelItem | clusterItem | placementDeclItem ;

importDecl   : 'import' path=STRING ';' ;
functionItem : 'fn' name=ID '(' params=parameters ')' '=' value=expr ';' ;
blockItem    : 'block' name=ID '(' params=parameters ')' body=statements ;
schedule     : 'schedule' name=ID '(' params=parameters ')' '{' items+=item* '}' ;

// Which rank has which stage.
placementDeclItem : 'placement' name=ID ('(' params=parameters ')')? '{' body+=ofPlacement* '}' ;
ofPlacement       : stagesItem | stageMapItem ;

// What else happens in a step, and where.
actionKindItem : 'action' name=ID '{' properties+=actionProperty* '}' ;
actionProperty : name=(ID | 'per') (values+=propertyValue (',' values+=propertyValue)*)? ('for' 'rank' variable=ID)? ';' ;
propertyValue  : expr | keyword=('stage' | 'rank' | 'comm') expr? | set='stages' '(' args+=expr (',' args+=expr)* ')' ;
ruleItem       : 'rule' name=ID '(' params=parameters ')' '{' inserts+=insertItem* '}' ;
insertItem
  : 'insert' action=ID side=ID anchors+=ID (',' anchors+=ID)* (perRank='per' 'rank')? (distanceWord=ID distance=expr)?
    ('for' bindings+=insertBinding (',' bindings+=insertBinding)*)? ('when' condition=expr)? ';' ;
insertBinding   : what=(ID | 'stage' | 'rank') variable=ID ;
applyItem       : 'with' name=ID args=arguments ';' ;
useScheduleItem : 'import' name=ID args=arguments ';' ;

parameters : (list+=parameter (',' list+=parameter)* ','?)? ;
parameter
  : name=ID (':' type=(ID | 'pipe') (isList='[' ']')? ('>=' lowerBound=expr | 'in' lowerBound=expr '..' end=expr)?)?
    ('=' defaultValue=expr)? ;

// What stands in a schedule, or (the first two rows) in a pipe.
item
  : microbatchesItem | slicesItem | placementItem | stagesItem | stageMapItem
  | edgeStmt | letStmt | ifStmt | forStmt | repeatStmt | whileStmt
  | requireItem | ranksItem | functionItem | blockItem | pipeItem | backwardItem | modelItem | clusterItem | commItem | insertItem
  | applyItem | onRankItem | useScheduleItem
  ;

requireItem      : 'require' condition=expr (',' message=STRING)? ';' ;
ranksItem        : 'ranks' count=expr ';' ;
microbatchesItem : 'microbatches' first=expr ('..' end=expr)? ('pad' pad=expr)? ';' ;
slicesItem       : 'slices' count=expr ';' ;
placementItem    : 'placement' name=ID ('(' args+=expr (',' args+=expr)* ')')? ';' ;
stagesItem       : 'stages' count=expr ';' ;
stageMapItem     : 'stage' variable=ID 'on' 'rank' rank=expr ';' ;
pipeItem         : 'pipe' name=ID '{' items+=ofPipe* '}' ;
ofPipe
  : microbatchesItem | slicesItem | placementItem | stagesItem | stageMapItem
  | edgeStmt | letStmt | ifStmt | forStmt | repeatStmt | whileStmt
  ;
backwardItem     : 'backward' 'when' condition=expr ';' ;
onRankItem       : 'on' ('rank' | isSeveral='ranks') ranks=expr ('where' condition=expr)? body=statements ;

commItem         : 'comm' '{' settings+=wordsItem* '}' ;

// What the work is, and what it runs on: with a name in a file, without one in a schedule.
modelItem   : 'model' (name=ID '(' params=parameters ')')? items=sectionBody ;
clusterItem : 'cluster' (name=ID '(' params=parameters ')')? items=sectionBody ;
sectionBody
  : '{' ( settingItem | tensorsItem | wordsItem | namedItem | chainStmt | placeStmt
        | patternItem | choice | letStmt | requireItem | functionItem | stagesItem )* '}' ;
settingItem
  : name=ID (subject=ID ('.' node=ID)? | subject='overlap')? ('pipe' pipe=ID)?
    (over=(ID | 'stage' | 'rank') variable=ID)? '=' value=expr ';' ;
tensorsItem
  : name=ID (('pipe' pipe=ID)? 'stage' stageVariable=ID ('in' from=expr '..' to=expr)? '=')?
    tensors+=tensorDecl (',' tensors+=tensorDecl)* ';' ;
tensorDecl  : name=ID '[' (dims+=dim (',' dims+=dim)*)? ']' type=ID ;
dim         : expr | '?' ;
namedItem   : what=ID names+=ID (',' names+=ID)* body=sectionBody ;
wordsItem   : name=ID entries+=entry (',' entries+=entry)* tails+=tail* ';' ; // A TextItem, too.
entry
  : (parts+=ID (parts+='-' parts+=(ID | 'edge' | 'per'))* (parts+=':' parts+=INT)? | parts+=(INT | 'on' | STRING)
    | '(' group+=entry (',' group+=entry)* ')') ('*' count=expr)? ;
tail        : word=ID names+=ID (',' names+=ID)* ;
chainStmt   : action=ID ':' links+=graphLink ('->' links+=graphLink)* ';' ;
graphLink   : (part=ID '.')? name=ID ('@' lane=(ID | 'comm'))? ;
placeStmt   : modifier=ID? part=ID '.' name=ID ';' ;
patternItem : 'overlap' actions+=ID (',' actions+=ID)* body=sectionBody ;
choice      : 'if' expr sectionBody ('else' 'if' expr sectionBody)* ('else' sectionBody)? ;

// What ranks do, and loops over edges. Which of them a body can hold, lib/Sema/Bodies.def says.
statements
  : '{' ( actionStmt | letStmt | ifStmt | forStmt | repeatStmt | whileStmt
        | phaseStmt | overlapStmt | deferStmt | drainStmt | edgeStmt | pipeItem )* '}' ;

letStmt     : 'let' name=ID '=' value=expr ';' ;
ifStmt      : 'if' expr statements ('else' 'if' expr statements)* ('else' statements)? ;
forStmt     : 'for' variable=ID 'in' from=expr '..' to=expr body=statements ;
repeatStmt  : 'repeat' count=expr body=statements ;
whileStmt   : 'while' condition=expr body=statements ;

phaseStmt   : 'phase' name=ID body=statements ;
overlapStmt : 'overlap' body=statements ;
deferStmt   : 'defer' action=ID fill=ID? ('lag' lag=expr)? (capWord=ID cap=expr)? body=statements ;
drainStmt   : 'drain' action=ID ('(' chunk=expr ')')? ';' ;
edgeStmt    : isAbsent='no'? 'edge' 'stage' from=expr '->' 'stage' to=expr ';' ;

actionStmt  : name=ID args=arguments ';' ;
arguments   : ('(' (list+=argument (',' list+=argument)*)? ')')? ;
argument    : (label=ID ':')? value=expr ;

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
