-- In front of every script: its arguments, the clock, and who holds KEY.
-- KEYS: KEY, its record, its queue, its wishes, the waiters that take nothing
-- ARGV: database, token, and what the script adds
-- Defined in front of it: `afterlife` (ms, by which the record outlives the lock), `clustered`.
local call, try, format = redis.call, redis.pcall, string.format
local key, record, queue, wishes, waits = unpack(KEYS)
local database, token = ARGV[1], ARGV[2]
if database ~= '0' then
  call('select', database)
end
local time = call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- KEY's Redis type is the kind of its lock: string, hash (reentrant), zset (shared, permits).
local function kind_of_key()
  return call('type', key).ok
end

-- N of -P, 0 for shared; nil if KEY is no sorted set of ours. Ours have an expiry, and we know the
-- first member.
local function permits_of_key()
  local permits = try('hget', record, 'permits')
  local first = type(permits) == 'string' and try('zrange', key, '0', '0')[1]
  return first and call('hget', record, 'holder:' .. first)
    and call('pttl', key) >= 0 and tonumber(permits) or nil
end

-- How often this token holds KEY. kind: KEY's, if the caller knows it; so below, too.
local function holds(who, kind)
  kind = kind or kind_of_key()
  if kind == 'string' then
    return call('getrange', key, '0', '256') == who and 1 or 0
  elseif kind == 'hash' then
    return tonumber(call('hget', key, who) or 0) or 0
  elseif kind == 'zset' and permits_of_key() then
    return (tonumber(call('zscore', key, who) or 0) or 0) > now and 1 or 0
  end
  return 0
end

-- The holds of a hash that the record knows; KEY may count more if the record was lost.
local function known_holds()
  local fields, known = try('hkeys', record), {}
  for _, field in ipairs(fields.err and {} or fields) do
    known[#known + 1] = field:match('^hold:(.*)')
  end
  return known
end
