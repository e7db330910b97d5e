-- Tells who holds KEY and who waits for it, a page of each.
-- ARGV: the holders' place (holders.lua), waiters to pass over. With a token: only whether it holds KEY.
-- returns {1 held, 0 free, -1 no lock; Redis type, permits (-1: none), fence (0: none),
--         holders in all, waiters in all, {holder ...}, {waiter ...}, since when the server has known KEY
--         (ms by its clock, -1 unknown), 1 if it is a replica,
--         what beside KEY is something else (1 the record, 2 queue, 3 wishes, 4 those that only wait; 0: nothing),
--         and what it is: nobody can take KEY then; the holders' next place}
local items, total, rest = {}
local later = refuse_later()
if later then
  return later
end
if token ~= '' then
  local held = holds(token)
  items = held > 0 and {show_holder(token, call('pttl', key), held)}
  total = min(held, 1)
else
  items, total, rest = holders(ARGV[3], 60)
end

local function count(line)
  local places = try('zcard', line)
  return type(places) == 'number' and places or 0
end

-- Adds "digest waited kind permits", and the description below; true: and there is room for more.
local function show_waiter(shown, place, came)
  local wish = try('hget', wishes, place)
  local kind, permits, text =
    (type(wish) == 'string' and wish or ''):match('^%d+ (%l+) (%d+)[^\n]*\n(.*)$')
  local waited = max(min(now - number(came), 2^53), 0)
  return add(shown, format('%s %.0f %s %s\n', redis.sha1hex(place), waited,
    (kind or '-'):sub(1, 8), (permits or '0'):sub(1, 18)) .. (text or ''):sub(1, 1024))
end

-- Those of the queue, then those who only wait.
local function waiters(from)
  local shown = {}
  for _, line in each({queue, waits}) do
    local page = #shown < 60 and try('zrange', line, from, from + 59 - #shown, 'withscores')
    for i = 1, page and not page.err and #page or 0, 2 do
      if not show_waiter(shown, page[i], page[i + 1]) then
        return shown
      end
    end
    from = max(from - count(line), 0)
  end
  return shown
end

-- A record that holds no fence is not ours, either (settle.lua).
local function find_spoilt(fence)
  for i, ours in each({reentrant, sorted, reentrant, sorted}) do
    local is = try('type', KEYS[i + 1]).ok or 'none'
    if is ~= 'none' and is ~= ours then
      return i, is:sub(1, 15)
    end
  end
  local n = type(fence) == 'string' and (number(fence) or -1) or 0
  if not (n >= 0 and n < 2^53 - 1 and n % 1 == 0) then
    return 1, 'hash without a valid fence'
  end
  return 0, ''
end

local info = try('info', 'replication')
local fence = peek('fence')
local spoilt, by = find_spoilt(fence)
return {not total and -1 or total > 0 and 1 or 0, kind_of_key(), permits_of_key() or -1,
  type(fence) == 'string' and number(fence) or 0, total or 0,
  count(queue) + count(waits), items or {}, waiters(number(ARGV[4])), known_since(),
  type(info) == 'string' and info:find('role:slave', 1, true) and 1 or 0,
  spoilt, by, rest or '-'}
