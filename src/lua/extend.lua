-- Gives the owner's lease a new ttl.
-- ARGV: ttl (ms), hold
-- returns {1, fence, description, permits (0: no such lock)} kept, {0} another's, {-1} gone
local ttl, hold = tonumber(ARGV[3]), ARGV[4]
local kind = kind_of_key()
if kind == 'none' then
  return {-1}
elseif holds(token) == 0 then
  return {kind == 'zset' and permits_of_key() and -1 or 0} -- others' entries are no reason
end
if kind == 'string' then
  call('pexpire', key, ttl)
else
  if kind == 'zset' then
    call('zadd', key, 'xx', now + ttl, token)
  elseif hold ~= '-' and try('hset', record, 'hold:' .. hold, 1) == 1 then
    call('hincrby', key, token, 1) -- this server has lost count of it
  end
  prolong(ttl)
end
try('pexpire', record, ttl + afterlife)
local fence = try('hget', record, 'fence')
return {1, type(fence) == 'string' and tonumber(fence) or 0, (describe(token)),
  kind == 'zset' and permits_of_key() or 0}
