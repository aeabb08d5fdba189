autocmd BufRead,BufNewFile *.pp setfiletype pp
