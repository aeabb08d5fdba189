-- Puppet and Pascal have files of this name too: a schedule shows by its words. A new file is one.
_G.ppcc_detect = function()
  local lines = vim.api.nvim_buf_get_lines(0, 0, 500, false)
  local isNew = #lines == 1 and lines[1] == ""
  for _, line in ipairs(lines) do
    if isNew or vim.fn.match(line, [=[^\(schedule\|model\|cluster\|rule\|placement\|action\|fn\|block\)\s\+\w\+\s*[({]]=]) >= 0 then
      vim.bo.filetype = "pp"
      return
    end
  end
end
vim.cmd("autocmd BufRead,BufNewFile *.pp lua ppcc_detect()")
-- Files that are inside the compiler, such as std.pp.
vim.cmd("autocmd BufReadCmd ppcc://library/* lua require('ppcc').read_library()")
