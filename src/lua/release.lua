-- Gives the owner's lock back; the fence stays in the record.
-- KEYS: KEY, its record
-- ARGV: database, token
-- returns {1} released, {0} another's, {-1} gone
local key, record = KEYS[1], KEYS[2]
local database, token = unpack(ARGV)
if database ~= '0' then
  redis.call('select', database)
end
local kind = redis.call('type', key).ok
if kind == 'none' then
  return {-1}
end
if kind ~= 'string' or redis.call('getrange', key, 0, 256) ~= token then
  return {0}
end
-- What is done stays done: nothing behind the DEL may turn it into an error.
redis.call('del', key)
redis.pcall('hdel', record, token)
redis.pcall('pexpire', record, 604800000)
return {1}
