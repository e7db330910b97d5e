-- Lifts the stored fence to the one that the quorum agreed on, only while the token owns KEY here.
-- ARGV: fence
-- returns {1} at or above it now, {0} another's or gone
local fence = ARGV[3]
if holds(token) == 0 then
  return {0}
end
if (tonumber(redis.call('hget', record, 'fence') or 0) or 0) < tonumber(fence) then
  redis.call('hset', record, 'fence', fence)
end
return {1}
