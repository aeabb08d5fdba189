-- What Neovim does with schedules: indents, comments, `:make`, and the language server of ppcc.
if vim.b.did_ftplugin then
  return
end
vim.b.did_ftplugin = 1
vim.cmd([[
  setlocal commentstring=//\ %s comments=:// shiftwidth=2 softtabstop=2 expandtab
  setlocal makeprg=ppcc\ check\ %:S
  setlocal errorformat=%f:%l:%c:\ %trror:\ %m,%f:%l:%c:\ %tarning:\ %m,%f:%l:%c:\ %tote:\ %m,%-G%.%#
  command! -buffer PpccServe lua require('ppcc').serve()
]])
require("ppcc").attach(vim.api.nvim_get_current_buf())
