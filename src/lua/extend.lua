-- Gives the owner's lease a new ttl.
-- KEYS: KEY, its record
-- ARGV: database, token, ttl (ms)
-- returns {1, fence, description} kept, {0} another's, {-1} gone
local key, record = KEYS[1], KEYS[2]
local database, token, ttl = unpack(ARGV)
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
redis.call('pexpire', key, ttl)
redis.pcall('pexpire', record, ttl + 604800000)
local fence = redis.pcall('hget', record, 'fence')
local description = redis.pcall('hget', record, token)
return {
  1,
  type(fence) == 'string' and tonumber(fence) or 0,
  type(description) == 'string' and description:sub(1, 1024) or '',
}
