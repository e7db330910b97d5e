-- Lifts the stored fence, and that of a holder who shares KEY, to the one that the quorum agreed on,
-- only while the token owns KEY here.
-- KEYS: KEY, its record
-- ARGV: database, token, fence
-- returns {1} at or above it now, {0} held by someone else, or gone
local key, record = KEYS[1], KEYS[2]
local database, token, fence = unpack(ARGV)
local call = redis.call
if database ~= '0' then
  call('select', database)
end
local kind = call('type', key).ok
if not (kind == 'string' and call('getrange', key, 0, 256) == token
    or kind == 'hash' and call('hget', key, token)
    or kind == 'zset' and call('zscore', key, token)) then
  return {0}
end
if (tonumber(call('hget', record, 'fence') or 0) or 0) < tonumber(fence) then
  call('hset', record, 'fence', fence)
end
if kind == 'zset' then
  call('hset', record, 'fence:' .. token, fence)
end
return {1}
