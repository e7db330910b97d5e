-- Makes the owner's lease last for a ttl from now on, if it does not already.
-- ARGV: ttl (ms), hold, 1: for the ttl that the lock was taken with, if that is known;
--       and perhaps the pid of the keeper, for the description
-- returns {1, fence, description (after since= for how long KEY is held (ms), as clocks differ), slot (0: none),
--         lease left (ms)} kept,
--         {0} held by someone else, {-1} gone, {-2, who has broken it and why} (ask.lua, break.lua)
local ttl, hold = number(ARGV[3]), ARGV[4]
local broken = peek('break:' .. token)

-- If the record was lost, whoever asked has not seen that this holder understands: KEY is nobody's until the lease
-- is over (ask.lua). It is its own again, which stops now and gives it back.
local function thaw(cold)
  local kind, left = kind_of_key(), max(call('pttl', key), 1)
  if holds(cold) == 0 or kind == sorted or type(peek('holder:' .. cold)) == 'string' then
    return
  end
  call('hset', record, 'break:' .. token, broken .. '\nheard=1')
  if kind == exclusive then
    call('set', key, token, 'px', left)
  else
    call('hset', key, token, holds(cold))
    call('hdel', key, cold)
  end
end

if type(broken) == 'string' then
  if holds(token) == 0 then
    pcall(thaw, token .. ' broken')
  end
  return {-2, broken:sub(1, 1024)}
end
local kind = kind_of_key()
if kind == 'none' then
  return {-1}
elseif holds(token, kind) == 0 then
  return {kind == sorted and permits_of_key() and -1 or 0} -- others' entries are no reason
end
local text, held_for = describe(token)
if text:find('^since=%d+~') then -- it has taken what a message granted
  text = text:gsub('~', '', 1)
  try('hset', record, 'holder:' .. token, text)
end
local taken = number(text:match('\nttl=(%d+)\n')) or 0
if ARGV[5] == '1' and taken > 0 and taken <= 86400000 then
  ttl = taken
end
local keeper = ARGV[6] and '\nkeeper=' .. ARGV[6] .. '\n'
if keeper and text:find('\n') and not text:find(keeper, 1, true) then
  text = text:gsub('\nkeeper=%d+', ''):gsub('\n', keeper, 1)
  try('hset', record, 'holder:' .. token, text)
end
if kind == reentrant and hold ~= '-' and try('hset', record, 'hold:' .. hold, now) == 1
    and #known_holds() > holds(token) then
  call('hincrby', key, token, 1) -- KEY was put back for another hold, the record not just lost
end
local left = prolong(token, ttl, kind)
note_lease(token, ttl, left)
local fence, slot = peek('fence'), kind == sorted and slot_of(token)
if type(fence) ~= 'table' then -- else another program's data is in the record's place
  outlive(left, text, try)
end
if slot then -- it counts for this slot from here on: no move that is still on its way may change that
  try('hset', record, 'slot:' .. token, settled * 2^20 + slot)
end
return {1, type(fence) == 'string' and number(fence) or 0,
  (text:gsub('^since=%d+', format('since=%.0f', held_for), 1)), slot or 0,
  kind == sorted and call('zscore', key, token) - now or left}
