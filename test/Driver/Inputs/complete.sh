# complete.sh SCRIPT WORD...: what bash would offer for the last word.
source "$1"
compopt() { :; } # It is for completions that bash itself asks for.
COMP_WORDS=("${@:2}")
COMP_CWORD=$(($# - 2))
_ppcc
printf '%s\n' "${COMPREPLY[@]}" | sort
