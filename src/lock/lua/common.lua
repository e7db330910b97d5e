-- In front of every script: its arguments, the clock, and who holds KEY.
-- KEYS: KEY, its record, its queue, its wishes, the waiters that take nothing
-- ARGV: database, token, and what the script adds
-- Defined in front of it: `afterlife` (ms, by which the record outlives the lock), `clustered`.
local call, try, fail, format = redis.call, redis.pcall, redis.error_reply, string.format
local each, number = ipairs, tonumber
local key, record, queue, wishes, waits = unpack(KEYS)
local database, token = ARGV[1], ARGV[2]
if database ~= '0' then
  call('select', database)
end
local time = call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- A field of the record.
local function get(field)
  return call('hget', record, field)
end

-- Removes what the record says of a former holder, and more fields.
local function forget(who, ...)
  try('hdel', record, 'holder:' .. who, 'fence:' .. who, 'break:' .. who, 'slot:' .. who, ...)
end

-- KEY's Redis type is the kind of its lock: sorted sets are those of shared locks and permits.
local exclusive, reentrant, sorted = 'string', 'hash', 'zset'
local function kind_of_key()
  return call('type', key).ok
end

-- How often this token holds KEY. kind: KEY's, if the caller knows it; so below, too.
local function holds(who, kind)
  kind = kind or kind_of_key()
  if kind == exclusive then
    return call('getrange', key, '0', '256') == who and 1 or 0
  elseif kind == reentrant then
    return number(call('hget', key, who) or 0) or 0
  elseif kind == sorted and get('holder:' .. who) then -- another program's sorted set has no description
    return (number(call('zscore', key, who) or 0) or 0) > now and 1 or 0
  end
  return 0
end

-- The holds of a hash that the record knows; KEY may count more if the record was lost.
local function known_holds()
  local known = {}
  for _, field in each(try('hkeys', record)) do -- an error is a table with nothing at 1
    known[#known + 1] = field:match('^hold:(.*)')
  end
  return known
end
