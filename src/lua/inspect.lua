-- Tells who holds KEY and who waits for it, a page of each.
-- ARGV: holders and waiters to pass over. With a token: only whether it holds KEY.
-- returns {1 held, 0 free, -1 no lock; Redis type, permits (-1: none), fence (0: none),
--         holders in all, waiters in all, {holder ...}, {waiter ...}}
local items, total = {}
if token ~= '' then
  local held = holds(token)
  items = held > 0 and {show_holder(token, call('pttl', key), held)}
  total = math.min(held, 1)
else
  items, total = holders(tonumber(ARGV[3]), 60)
end

-- "mark waited kind permits", and the description below
local function waiters(from)
  local page, shown = try('zrange', queue, from, from + 59, 'withscores'), {}
  for i = 1, page.err and 0 or #page, 2 do
    local wish = try('hget', wishes, page[i])
    local kind, permits, text =
      (type(wish) == 'string' and wish or ''):match('^%d+ (%l+) (%d+) [^\n]*\n(.*)$')
    local waited = math.max(math.min(now - tonumber(page[i + 1]), 2^53), 0)
    if not add(shown, format('%s %.0f %s %s\n', redis.sha1hex(page[i]), waited,
      (kind or '-'):sub(1, 8), (permits or '0'):sub(1, 18)) .. (text or ''):sub(1, 1024)) then
      break
    end
  end
  return shown
end

local fence = try('hget', record, 'fence')
local waiting = try('zcard', queue)
return {not total and -1 or total > 0 and 1 or 0, kind_of_key(), permits_of_key() or -1,
  type(fence) == 'string' and tonumber(fence) or 0, total or 0,
  type(waiting) == 'number' and waiting or 0, items or {}, waiters(tonumber(ARGV[4]))}
