-- The language server of ppcc in Neovim 0.7 and newer.
local M = {
  cmd = { "ppcc", "lsp" },
  -- Of the compilation, where a schedule has no line `// ppcc: ...`: { "-D", "P=8" }.
  options = {},
  on_attach = nil,
}
local client

--- Sets what is above, before the first schedule is opened.
function M.setup(given)
  for name, value in pairs(given) do
    M[name] = value
  end
end

--- Starts the server, once, and lets it see a buffer.
function M.attach(buffer)
  if vim.fn.executable(M.cmd[1]) == 0 then
    return
  end
  if not client or vim.lsp.client_is_stopped(client) then
    client = vim.lsp.start_client({
      name = "ppcc",
      cmd = M.cmd,
      init_options = { options = M.options },
      flags = { debounce_text_changes = 20 },
      capabilities = vim.lsp.protocol.make_client_capabilities(),
      on_attach = function(...)
        vim.bo.omnifunc = "v:lua.vim.lsp.omnifunc"
        if M.on_attach then
          M.on_attach(...)
        end
      end,
    })
  end
  if client then
    vim.lsp.buf_attach_client(buffer, client)
  end
end

--- Fills the current buffer with the file of the library that it is named for.
function M.read_library()
  local name = vim.api.nvim_buf_get_name(0)
  local server = client and vim.lsp.get_client_by_id(client)
  local answer = server and server.request_sync("ppcc/text", { uri = name }, 2000, 0)
  local text = answer and answer.result
  if type(text) ~= "string" then
    error("ppcc: no such file of the library: " .. name)
  end
  vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split((text:gsub("\n$", "")), "\n"))
  vim.bo.filetype = "pp"
  vim.bo.buftype = "nofile"
  vim.bo.modifiable = false
end

--- Shows the timeline of the file in the browser while it is edited.
function M.serve()
  vim.fn.jobstart({ M.cmd[1], "serve", vim.api.nvim_buf_get_name(0), "--open" }, { detach = false })
end

return M
