-- Neovim as a client of `ppcc lsp`, as its user meets it. It runs in the folder of long.pp; prints a line for each thing seen.
-- With EDITS=N in the environment it types N letters instead and prints how long each took until its diagnostics were there.
local out = io.open(os.getenv("SAID"), "w")
local function say(...)
  out:write(string.format(...), "\n")
  out:flush()
end
local function wait(what, holds, milliseconds)
  if not vim.wait(milliseconds or tonumber(os.getenv("PATIENCE") or 60000), holds, 1) then
    say("NOT WITHIN A MINUTE: %s", what)
    vim.cmd("cquit")
  end
end
local function line(n)
  return vim.api.nvim_buf_get_lines(0, n, n + 1, false)[1]
end
local function find(text)
  for n, one in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local at = one:find(text, 1, true)
    if at then
      return n, at - 1
    end
  end
  error("no " .. text)
end
local function go(text, offset)
  local n, at = find(text)
  vim.api.nvim_win_set_cursor(0, { n, at + (offset or 0) })
end
local function keys(text)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(text, true, false, true), "xt", false)
end
local published = 0
local show = vim.lsp.handlers["textDocument/publishDiagnostics"]
vim.lsp.handlers["textDocument/publishDiagnostics"] = function(...)
  show(...)
  published = published + 1
end
local function ask(method, given)
  local params = vim.tbl_extend("force", vim.lsp.util.make_position_params(), given or {})
  for _, answer in pairs(vim.lsp.buf_request_sync(0, method, params, 60000)) do
    return answer.result
  end
end

local function run()
  vim.cmd("edit long.pp")
  say("filetype %s, comments %s", vim.bo.filetype, vim.bo.commentstring)
  wait("a server", function() return #vim.lsp.buf_get_clients(0) == 1 end)
  wait("the first diagnostics", function() return published > 0 end)
  say("at first %d diagnostics", #vim.diagnostic.get(0))

  if os.getenv("EDITS") then
    local times = {}
    for i = 1, tonumber(os.getenv("EDITS")) do
      go(i % 2 == 1 and "repeat w { F" or "repeat xw { F", 7)
      local before, start = published, vim.loop.hrtime()
      keys(i % 2 == 1 and "ix<Esc>" or "x")
      wait("diagnostics", function() return published > before end)
      times[#times + 1] = (vim.loop.hrtime() - start) / 1e6
      wait("quiet", function() return not vim.wait(150, function() return false end) end)
    end
    table.sort(times)
    say("edits %d median %.1f ms most %.1f ms", #times, times[math.ceil(#times / 2)], times[#times])
    return
  end

  local n, at = find("schedule")
  say("schedule is a %s", vim.fn.synIDattr(vim.fn.synIDtrans(vim.fn.synID(n, at + 1, 1)), "name"))
  -- Typed, and taken back.
  go("repeat w { F; }", 7)
  local before = published
  keys("aw<Esc>")
  wait("an error", function() return published > before and #vim.diagnostic.get(0) == 1 end)
  local one = vim.diagnostic.get(0)[1]
  say("typed: %s in line %d: %s", one.code, one.lnum + 1, one.message:match("[^\n]*"))
  keys("u")
  wait("no error", function() return #vim.diagnostic.get(0) == 0 end)
  say("taken back: nothing wrong")

  go("depth(P, r)", 1)
  vim.lsp.buf.definition()
  wait("the definition", function() return vim.api.nvim_win_get_cursor(0)[1] ~= find("min(depth(P, r)") end)
  say("definition: %s", vim.api.nvim_get_current_line())
  go("recompute(", 1)
  vim.lsp.buf.definition()
  wait("the library", function() return vim.api.nvim_buf_get_name(0):find("std.pp") end)
  say("definition in %s: %s", vim.api.nvim_buf_get_name(0), vim.api.nvim_get_current_line())
  vim.cmd("buffer long.pp")

  go("let w", 4)
  say("hover: %s", ask("textDocument/hover").contents.value:match("[^\n]*$"))
  vim.lsp.buf.rename("warmups")
  wait("the new name", function() return line(find("min(depth") - 1):find("warmups") end)
  say("rename: %s", line(find("phase warmup")):match("%S.*"))

  go("repeat warmups { F; }", 15)
  keys("i M - war<C-x><C-o>")
  local list = ask("textDocument/completion")
  local labels = {}
  for _, item in ipairs(list) do
    labels[item.label] = item.detail
  end
  say("completion: warmups is a %s, depth a %s", labels.warmups, labels.depth)
  keys("u")

  go("phase steady", 0)
  keys("I      <Esc>")
  vim.lsp.buf.formatting_sync({}, 60000)
  say("formatting: %s|", line(find("phase steady") - 1):match("^%s*phase steady"))
  go("repeat warmups { F; }", 7)
  before = published
  keys("as<Esc>")
  wait("an error", function() return published > before and #vim.diagnostic.get(0) == 1 end)
  local range = vim.lsp.util.make_range_params().range
  local actions = ask("textDocument/codeAction", { range = range, context = { diagnostics = {} } })
  vim.lsp.util.apply_workspace_edit(actions[1].edit, "utf-16")
  wait("no error", function() return #vim.diagnostic.get(0) == 0 end)
  say("%s: nothing wrong", actions[1].title)
end
local good, message = pcall(run)
if not good then
  say("%s", message)
end
vim.cmd("qall!")
