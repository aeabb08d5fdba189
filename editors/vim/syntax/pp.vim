" Highlights pipeline schedules. Made by editors/generate.py.
if exists("b:current_syntax")
  finish
endif
syntax match ppConstant /\<\%(false\|true\)\>/
syntax match ppOperator /\<\%(and\|in\|not\|or\)\>/
syntax match ppConditional /\<\%(defer\|drain\|else\|for\|if\|insert\|let\|overlap\|phase\|repeat\|while\|with\)\>/
syntax match ppStructure /\<\%(action\|block\|cluster\|fn\|import\|model\|pipe\|placement\|rule\|schedule\)\>/
syntax match ppKeyword /\<\%(backward\|comm\|edge\|lag\|microbatches\|no\|on\|pad\|per\|rank\|ranks\|require\|slices\|stage\|stages\|when\|where\)\>/
syntax match ppAction /\<[A-Z][A-Z0-9_]*\>/
syntax match ppNumber /\<\d\+\%(\.\d\+\)\?\%([eE][+-]\?\d\+\)\?\>/
syntax region ppString start=/"/ skip=/\\./ end=/"\|$/ oneline
syntax match ppComment /\/\/.*$/ contains=@Spell
highlight default link ppConstant Constant
highlight default link ppOperator Operator
highlight default link ppConditional Conditional
highlight default link ppStructure Structure
highlight default link ppKeyword Keyword
highlight default link ppNumber Number
highlight default link ppString String
highlight default link ppComment Comment
highlight default link ppAction Function
let b:current_syntax = "pp"
