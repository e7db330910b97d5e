-- Takes KEY for a token, or says who has it.
-- ARGV: ttl (ms), clock (ms), description, fence to keep (0: none), kind, permits, hold,
--       request, wait (1: stay in the queue), waited (ms), ancestor's token
-- returns {1, fence, the record's age (ms), the beginning of the last holder's token}, or
--         {-1, ms since it began, a run (runs.lua)} that is why this one need not be (--once-in), or
--         {0, ttl left (ms; -1 for ever, -2 nobody holds it),
--         held for (ms; -1 unknown), description, place in the queue (-1: none),
--         1 if the ancestor holds it, the beginning of the holder's token ('': none, '*': several),
--         the record's age (ms), the longest ttl of those who hold KEY (ms; 0 unknown),
--         how many hold it, of how many permits (0: none), KEY's type}; if several hold it, the
--         description is that of the one that has held it longest
local ttl, clock, description, kept, kind, permits, hold, request, wait, waited, ancestor =
  unpack(ARGV, 3)
local wish = {ttl = tonumber(ttl), clock = tonumber(clock), description = description,
  kept = tonumber(kept), kind = kind, permits = tonumber(permits), hold = hold}

local own = place_of(token, hold)
local line = kind == 'none' and waits or queue

-- For how long this server has known KEY without a gap (ms), and who held it last. A waiter that
-- takes nothing begins no record.
local function remember(in_use)
  note_loss(in_use)
  local began, last = tonumber(call('hget', record, 'began')), call('hget', record, 'last')
  if kind ~= 'none' and not began then
    began = now
    call('hset', record, 'began', format('%.0f', now))
    try('pexpire', record, math.max(call('pttl', key), wish.ttl) + outlives(description))
  end
  return math.max(math.min(now - (began or now), 2^53), 0), last or ''
end

if not stored_fence() then
  return refuse_later() or redis.error_reply('WRONGTYPE no fence')
end
local in_use = drop_expired()
if in_use == 'zset' and kind == 'zset' and permits_of_key() and permits_of_key() ~= wish.permits then
  return redis.error_reply(format('PERMITS KEY is held with %s now, not with %s',
    permits_of_key() == 0 and '-s' or '-P ' .. permits_of_key(),
    wish.permits == 0 and '-s' or '-P ' .. permits))
end

local age, last = remember(in_use)
-- A holder is granted it again; a holder that lost it here, and kept it elsewhere, gets it back.
local has_room = fits(token, wish, in_use)
if (in_use == kind and holds(token, in_use) > 0) or (wish.kept > 0 and has_room) then
  leave(line, own)
  return {1, grant(token, wish, wish.ttl, in_use), age, last}
end
local success, ago = find_success(description)
if success then
  leave(line, own)
  return success.err and success or {-1, ago, success}
end

local place = -1
local others = call('exists', queue, waits) > 0
if not others and has_room then
  return {1, kind == 'none' and 0 or grant(token, wish, wish.ttl, in_use), age, last}
elseif wish.kept == 0 and in_use ~= 'none' and in_use ~= 'string' and not is_lock(in_use) then
  leave(line, own)
  return refuse('NOLOCK', in_use)
elseif wish.kept == 0 and (wait == '1' or others) then
  call('zadd', line, 'nx', now - waited, own)
  call('hset', wishes, own, table.concat({ttl, kind, permits, clock, hold, request,
    format('%s%.0f', hold == '-' and '0' or '+', now)}, ' ') .. '\n' .. description)
  call('pexpire', line, '60000')
  call('pexpire', wishes, '60000')
  local fence = settle(own, in_use)
  if fence then
    return {1, fence, age, last}
  end
  place = call('zrank', line, own) or -1
end
if wait ~= '1' then
  leave(line, own)
end

local left, count, of, holder = call('pttl', key), 1, 0
in_use = kind_of_key()
local prefix = in_use == 'none' and '' or '*'
if in_use == 'string' then
  holder = call('getrange', key, '0', '256')
  prefix = holder:sub(1, 16)
elseif in_use == 'hash' and call('hlen', key) == 1 then
  holder = call('hkeys', key)[1]
  prefix = holder:sub(1, 16)
elseif in_use == 'zset' and permits_of_key() then
  -- bounded: the first fifty to end
  local page, longest = call('zrange', key, 0, 49, 'withscores'), -2
  count, of = call('zcard', key), permits_of_key()
  for i = 1, #page, 2 do
    local _, since = describe(page[i])
    if since > longest then
      holder, longest = page[i], since
    end
  end
  if kind == 'zset' and left >= 0 then
    left = math.max(page[2] - now, 0)
  end
end
local text, held_for = describe(holder)
return {0, left, held_for, text, place, ancestor ~= '' and holds(ancestor, in_use) > 0 and 1 or 0,
  prefix, age, text ~= '' and math.min(tonumber(call('hget', record, 'ttl')) or 0, 2^53) or 0, count, of, in_use}
