-- Takes KEY for a token, or says who has it.
-- KEYS: KEY, its record
-- ARGV: database, token, ttl (ms), clock (ms), description, fence to keep (0: none)
-- returns {1, fence}, or {0, ttl left (ms; -1 for ever), held for (ms; -1 unknown), description}
local key, record = KEYS[1], KEYS[2]
local database, token, ttl, clock, description, kept = unpack(ARGV)
if database ~= '0' then
  redis.call('select', database)
end
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local kind = redis.call('type', key).ok
local owner = kind == 'string' and redis.call('getrange', key, 0, 256)
if kind ~= 'none' and owner ~= token then
  local text = owner and redis.pcall('hget', record, owner)
  text = type(text) == 'string' and text:sub(1, 1024) or ''
  local since = tonumber(text:match('^since=(%d+)'))
  return {0, redis.call('pttl', key), since and math.max(now - since, 0) or -1, text}
end

-- A fence is a whole number that a double can hold: past it counting would stand still.
local stored = redis.call('hget', record, 'fence')
local fence = tonumber(stored or 0)
if not fence or fence < 0 or fence >= 2^53 - 1 or fence % 1 ~= 0 then
  return redis.error_reply('WRONGTYPE the record holds no fence')
end
if tonumber(kept) > 0 then
  fence = math.max(fence, tonumber(kept))
elseif fence == 0 then
  fence = math.min(tonumber(clock), now + 86400000)
elseif not owner then
  fence = fence + 1
end
if not description:find('^since=') then
  description = string.format('since=%.0f\n', now) .. description
end

-- The record first and KEY last: a refusal on the way leaves nothing held.
redis.call('hset', record, 'fence', string.format('%.0f', fence), token, description)
for _, field in ipairs(redis.call('hkeys', record)) do
  if field ~= 'fence' and field ~= token then
    redis.call('hdel', record, field)
  end
end
redis.call('pexpire', record, ttl + 604800000)
redis.call('set', key, token, 'px', ttl)
return {1, fence}
