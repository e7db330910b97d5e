-- Lifts the stored fence to the one that the quorum agreed on, only while the token owns KEY here.
-- KEYS: KEY, its record
-- ARGV: database, token, fence
-- returns {1} at or above it now, {0} another's or gone
local key, record = KEYS[1], KEYS[2]
local database, token, fence = unpack(ARGV)
if database ~= '0' then
  redis.call('select', database)
end
local kind = redis.call('type', key).ok
if not (kind == 'string' and redis.call('getrange', key, 0, 256) == token
    or kind == 'hash' and redis.call('hget', key, token)
    or kind == 'zset' and redis.call('zscore', key, token)) then
  return {0}
end
if (tonumber(redis.call('hget', record, 'fence') or 0) or 0) < tonumber(fence) then
  redis.call('hset', record, 'fence', fence)
end
return {1}
