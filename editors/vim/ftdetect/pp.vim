" Puppet and Pascal have files of this name too: a schedule shows by its words. A new file is one.
autocmd BufRead,BufNewFile *.pp
  \ if line('$') == 1 && getline(1) ==# '' ||
  \    match(getline(1, 500), '^\(schedule\|model\|cluster\|rule\|placement\|action\|fn\|block\)\s\+\w\+\s*[({]') >= 0 |
  \   set filetype=pp |
  \ endif
