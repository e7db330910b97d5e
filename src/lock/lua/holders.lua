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

-- The end of a run (note_run) that was broken by whoever wrote this.
local function broken_by(why)
  local by, reason = why:match('^by=([^\n]*)'), why:match('\nreason=([^\n]*)')
  return ('- broken by ' .. (by or '') .. (reason and format(': \39%s\39', reason) or '')):sub(1, 250)
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

-- returns who holds KEY, without the first `from`, and how many do in all; nil: KEY is no lock
local function holders(from, most)
  local kind, left, items = kind_of_key(), call('pttl', key), {}
  if kind == 'none' then
    return items, 0
  elseif kind == exclusive then
    if from == 0 then
      add(items, show_holder(call('getrange', key, 0, 256), left, 1))
    end
    return items, 1
  elseif kind == reentrant and is_lock(kind) then
    local total = call('hlen', key)
    local fields = from == 0 and total <= 60 and call('hgetall', key) or {}
    for i = 1, #fields, 2 do
      local count = number(fields[i + 1]) or 1
      if not add(items, show_holder(fields[i], left, count >= 1 and count < 2^53 and count or 1)) then
        break
      end
    end
    return items, total
  elseif kind == sorted and permits_of_key() then
    local after = format('(%.0f', now)
    local page = call('zrangebyscore', key, after, '+inf', 'withscores', 'limit', from, most)
    for i = 1, #page, 2 do
      local ends = min(number(page[i + 1]), 2^53)
      if not add(items, show_holder(page[i], ends - now, 1)) then
        break
      end
    end
    return items, call('zcount', key, after, '+inf')
  elseif kind == sorted and left >= 0 then -- another program's, or ours without its record: nobody may enter it
    return {show_holder('', left, 1)}, 1
  end
end
