-- How long KEY and its record last, and what the record says of a holder.
local max, min, floor = math.max, math.min, math.floor

-- A field of the record; an error is a table with `err`.
local function peek(field)
  return try('hget', record, field)
end

-- N of -P, 0 for shared; nil if KEY is no sorted set of ours. Ours have an expiry, and we know the
-- first member. And whether the holders have slots: then a quarter was added to N, so that an earlier
-- redlock, which knows no slots, finds another N than its own, and says so.
local function permits_of_key()
  local permits = peek('permits')
  local first = type(permits) == 'string' and try('zrange', key, '0', '0')[1]
  permits = first and get('holder:' .. first)
    and call('pttl', key) >= 0 and number(permits)
  if permits then
    return floor(permits), permits % 1 ~= 0
  end
end

-- The slot (1 to N) that this token has, and how many moves its request had counted (slots.lua): `settled` once
-- the lock is held.
local settled = 2^10
local function slot_of(who)
  local slot = try('zscore', key, who) and number(peek('slot:' .. who))
  if slot then
    return slot % 2^20, floor(slot / 2^20)
  end
end

-- A lease never ends sooner than it did: its holder relies on that, and so do those that share KEY.
-- Returns how long KEY lasts now. PEXPIRE is first: it needs no memory, and if there is none left, a script
-- that has written may go on.
local function prolong(who, lease, kind)
  local left = call('pttl', key)
  if left < lease or kind == sorted then
    left = max(left, lease)
    call('pexpire', key, left)
  end
  if kind == sorted then
    call('zadd', key, max(now + lease, call('zscore', key, who) or 0), who)
  end
  return left
end

-- For how long what is beside KEY outlives a lock that has this description (--remember; ms).
local function outlives(text)
  return min(text:find('\nremember=', 1, true) and number(text:match('\nremember=(%d+)\n'))
    or afterlife, 2^42)
end

local function time_left(name)
  return number(try('pttl', name)) or 0 -- of a table, which is an error: nil
end

-- The record and the list of runs last for that much longer than KEY, whose lease ends in `left`. A 64th is added:
-- so most of the time one look is enough. Neither ends sooner than it did.
local function outlive(left, text, write)
  local lasts, runs = left + outlives(text), record .. ':runs'
  if time_left(record) < lasts then
    lasts = floor(lasts * 65 / 64)
    write('pexpire', record, lasts)
    try('pexpire', runs, max(time_left(runs), lasts))
  end
end

-- The last holder of KEY, until when, and the longest ttl: so that a loss of KEY can be seen.
local function lease_fields(who, ttl, left)
  return 'last', who:sub(1, 16), 'until', format('%.0f', now + left), 'ttl', ttl
end

-- Of those who hold KEY, or held it last (ms; 0: unknown).
local function longest_ttl()
  return min(number(peek('ttl')) or 0, 2^53)
end

local function note_lease(who, ttl, left)
  try('hset', record, lease_fields(who, max(longest_ttl(), ttl), left))
end

-- What a holder wrote about itself, and for how long it has held KEY (ms, -1 unknown).
local function describe(who)
  local text = who and peek('holder:' .. who)
  text = type(text) == 'string' and text:sub(1, 1024) or ''
  local since = number(text:match('^since=(%d+)'))
  return text, since and max(now - since, 0) or -1
end
