-- Who holds KEY, a page at a time and within the bounds of a reply. Nothing is written.
local bytes = 0

local function add(items, text)
  items[#items + 1] = text
  bytes = bytes + #text
  return bytes < 45000
end

-- The token of a holder whose lease was frozen (ask.lua) has this after it.
local frozen = ' broken'
local function name_of(who)
  return who:match('^(.*)' .. frozen .. '$') or who
end

-- A set of digests, from a text with a blank after each.
local function set_of(digests)
  local set = {}
  for digest in digests:gmatch('%S+') do
    set[digest] = true
  end
  return set
end

-- The end of a run (note_run) that was broken by whoever wrote this; no longer than run.h reads it.
local function broken_by(why)
  local by, reason = why:match('^by=([^\n]*)'), why:match('\nreason=([^\n]*)')
  return ('- broken by ' .. (by or '') .. (reason and format(': \39%s\39', reason) or '')):sub(1, 313)
end

-- Since when this server has known KEY without a gap (acquire.lua; ms by its clock, -1 unknown).
local function known_since()
  return min(number(peek('began')) or -1, 2^53)
end

-- "digest left held count slot", and the description below; the digest is the token's SHA-1. Of a holder that
-- was asked to stop, who has asked, why, and how long ago (ms). Another program's has none, and cannot be asked.
local function show_holder(who, left, count)
  local text, held_for = describe(who)
  local broken = peek('break:' .. name_of(who))
  local at, why = (type(broken) == 'string' and broken or ''):match('^at=(%d+)\n(.*)$')
  if at and text ~= '' then
    text = format('%s\nasked=%.0f\n', text, max(now - at, 0)) .. why:sub(1, 1000)
  end
  return format('%s %.0f %.0f %.0f %.0f\n', redis.sha1hex(name_of(who)), left, held_for, count,
    slot_of(who) or 0) .. text
end

-- Those who share KEY, from a place on: "ends passed before", when a lease ends, how many of those that end then to
-- pass over, and how many come before. Who renews a lease meanwhile is met again, further on. After the first
-- thousand only those are shown that have held KEY longest: sixty of two thousand. Returns the next place.
local function show_sharers(items, place, most)
  local from, passed, before = place:match('^(%S+) (%d+) (%d+)$')
  passed, before = number(passed or 0), number(before or 0)
  local skims, rows = before >= 1000, {}
  most = skims and 2000 or most
  local page = call('zrangebyscore', key, from or format('(%.0f', now), '+inf', 'withscores', 'limit', passed, most)
  for i = 1, #page, 2 do
    rows[#rows + 1] = {page[i], min(number(page[i + 1]), 2^53) - now, skims and select(2, describe(page[i]))}
  end
  if skims then
    table.sort(rows, function(one, other) return one[3] > other[3] end)
  end
  for i, row in each(rows) do
    if not add(items, show_holder(row[1], row[2], 1)) or skims and i == 60 then
      break
    end
  end
  local last, same = skims and #page or 2 * #items, 0
  if last == #page and #rows < most then
    return '-'
  end
  local ends = page[last]
  while page[last - 2 * same] == ends do
    same = same + 1
  end
  return format('%s %d %d', ends, ends == from and passed + same or same, before + last / 2)
end

-- returns who holds KEY, from a place on ('': the first), at most so many; how many do in all; and the next place
-- ('-': there are no more); nil: KEY is no lock
local function holders(place, most)
  local kind, left, items, rest = kind_of_key(), call('pttl', key), {}, '-'
  if kind == 'none' then
    return items, 0, rest
  elseif kind == exclusive then
    if place == '' then
      add(items, show_holder(call('getrange', key, 0, 256), left, 1))
    end
    return items, 1, rest
  elseif kind == reentrant and is_lock(kind) then
    local total = call('hlen', key)
    local fields = place == '' and total <= 60 and call('hgetall', key) or {}
    for i = 1, #fields, 2 do
      local count = number(fields[i + 1]) or 1
      if not add(items, show_holder(fields[i], left, count >= 1 and count < 2^53 and count or 1)) then
        break
      end
    end
    return items, total, rest
  elseif kind == sorted and permits_of_key() then
    if place ~= rest then
      rest = show_sharers(items, place, most)
    end
    return items, call('zcount', key, format('(%.0f', now), '+inf'), rest
  elseif kind == sorted and left >= 0 then -- another program's, or ours without its record: nobody may enter it
    return {show_holder('', left, 1)}, 1, rest
  end
end
