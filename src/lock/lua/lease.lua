-- How long KEY and its record last, and what the record says of a holder.

-- A lease never ends sooner than it did: its holder relies on that, and so do those that share KEY.
-- Returns how long KEY lasts now.
local function prolong(who, lease, kind)
  if kind == 'zset' then
    call('zadd', key, math.max(now + lease, call('zscore', key, who) or 0), who)
  end
  local left = call('pttl', key)
  if left < lease then
    call('pexpire', key, lease)
    left = lease
  end
  return left
end

-- For how long what is beside KEY outlives a lock that has this description (--remember; ms).
local function outlives(text)
  return math.min(text:find('\nremember=', 1, true) and tonumber(text:match('\nremember=(%d+)\n'))
    or afterlife, 2^42)
end

-- The last holder of KEY, until when, and the longest ttl: so that a loss of KEY can be seen.
local function lease_fields(who, ttl, left)
  return 'last', who:sub(1, 16), 'until', format('%.0f', now + left), 'ttl', ttl
end

local function note_lease(who, ttl, left)
  local longest = tonumber(try('hget', record, 'ttl')) or 0
  try('hset', record, lease_fields(who, math.max(longest, ttl), left))
end

-- What a holder wrote about itself, and for how long it has held KEY (ms, -1 unknown).
local function describe(who)
  local text = who and try('hget', record, 'holder:' .. who)
  text = type(text) == 'string' and text:sub(1, 1024) or ''
  local since = tonumber(text:match('^since=(%d+)'))
  return text, since and math.max(now - since, 0) or -1
end
