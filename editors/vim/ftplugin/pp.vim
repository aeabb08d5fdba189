" What Vim and Neovim know about schedules beside their colours.
if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1
setlocal commentstring=//\ %s comments=:// shiftwidth=2 softtabstop=2 expandtab
setlocal makeprg=ppcc\ --check\ %:S
setlocal errorformat=%f:%l:%c:\ %trror:\ %m,%f:%l:%c:\ %tarning:\ %m,%f:%l:%c:\ %tote:\ %m,%-G%.%#
let b:undo_ftplugin = "setlocal commentstring< comments< shiftwidth< softtabstop< expandtab< makeprg< errorformat<"
