-- Takes KEY for a token, or says who has it.
-- ARGV: ttl (ms), clock (ms), description, fence to keep (0: none), kind, permits (slots.lua), hold,
--       request, wait (1: stay in the queue), waited (ms), ancestor's token
-- returns {1, fence, the record's age (ms), the beginning of the last holder's token, slot (0: none),
--         up to 20 free slots, the longest ttl of those who hold other slots (ms), who has which slot}, or
--         {-1, ms since it began, a run (runs.lua)} that is why this one need not be (--once-in), or
--         {0, ttl left (ms; -1 for ever, -2 nobody holds it),
--         held for (ms; -1 unknown), description, place in the queue (-1: none),
--         1 if the ancestor holds it, the beginning of the holder's token ('': none, '*': several, and for
--         slots the beginning of a digest of their tokens after it),
--         the record's age (ms), the longest ttl of those who hold KEY (ms; 0 unknown),
--         how many hold it, of how many permits (0: none), KEY's type, who has which slot}; if several
--         hold it, the description is that of the one that has held it longest, of the fifty whose leases end first
-- who has which slot: "slot held token" and a blank, each, of the token its beginning, while the record is young;
-- slot 0: one of those who keep another kind out together
local ttl, clock, description, kept, kind, permits, hold, request, wait, waited, ancestor =
  unpack(ARGV, 3)
local wish = {ttl = number(ttl), clock = number(clock), description = description,
  kept = number(kept), kind = kind, hold = hold}
wish.permits, wish.slot, wish.moves = read_permits(permits)

local own = place_of(token, hold)
local line = kind == 'none' and waits or queue

-- For how long this server has known KEY without a gap (ms), and who held it last. A waiter that
-- takes nothing begins no record. A record that began in the future was begun before the clock was set back:
-- its age is counted from now, as it would be 0 until the clock is there again.
local function remember(in_use)
  note_loss(in_use)
  local began, last = number(get('began')), get('last')
  if kind ~= 'none' and (began or now + 1) > now then
    call('hset', record, 'began', now)
    if not began then
      outlive(time_left(key) + wish.ttl, description, try)
    end
    began = now
  end
  return max(min(now - (began or now), 2^53), 0), last or ''
end

if not stored_fence() then
  return refuse_later() or fail('WRONGTYPE no fence')
end
local in_use = drop_expired()
local of, has_slots
if in_use == sorted and kind == sorted then
  of, has_slots = permits_of_key()
  if of and of ~= wish.permits then
    return fail(format('PERMITS KEY is held with %s now, not with %s',
      of == 0 and '-s' or '-P ' .. of, wish.permits == 0 and '-s' or '-P ' .. wish.permits))
  elseif of and of > 0 and not has_slots then
    return fail('NOSLOTS KEY')
  end
end

local age, last = remember(in_use)

-- By that one sees what a server has forgotten whose record is as young (trust.h). Later its age shows it.
local function tell_holders(of_kind)
  local texts, others = {}, {}
  if of_kind ~= sorted or age >= max(longest_ttl(), wish.ttl) + 1000 then
    return ''
  elseif wish.slot then
    others = select(2, survey_slots(wish, 20))
  elseif kind ~= sorted then
    for i, who in each(call('zrange', key, 0, 19)) do
      others[i] = {0, who}
    end
  end
  for _, other in each(others) do
    local _, held_for = describe(other[2])
    if other[2] ~= token and held_for >= 0 then
      texts[#texts + 1] = format('%.0f %.0f %s ', other[1], held_for, other[2]:sub(1, 16))
    end
  end
  return table.concat(texts)
end

local function granted(fence, slot, free, longest)
  return {1, fence, age, last, slot or 0, free or '', longest or 0, tell_holders(kind)}
end

-- A holder is granted it again; a holder that lost it here, and kept it elsewhere, gets it back. If somebody
-- else has its slot here, it gets none.
local room, held = fits(token, wish, in_use), in_use == kind and holds(token, in_use) > 0
if held and wish.slot and not room then
  note_slots((slot_of(token)))
  remove(token, hold, kind)
  settle()
  held, in_use = false, kind_of_key()
end
local success, ago
if wish.kept == 0 and not (held and (kind ~= reentrant or call('hexists', record, 'hold:' .. hold) == 1)) then
  success, ago = find_success(description)
end
if success then
  leave(line, own)
  return success.err and success or {-1, ago, success}
elseif held or wish.kept > 0 and room then
  leave(line, own)
  return granted(grant(token, wish, wish.ttl, in_use, room))
end

local place = -1
local others = call('exists', queue, waits) > 0
if not others and room then
  if kind == 'none' then
    -- changes nothing, but is refused where nobody can take KEY: by a replica, or without memory
    call('zadd', line, 'xx', 0, own)
    return granted(0)
  end
  return granted(grant(token, wish, wish.ttl, in_use, room))
elseif wish.kept == 0 and in_use ~= 'none' and in_use ~= exclusive and not is_lock(in_use) then
  leave(line, own)
  return refuse('NOLOCK', in_use)
elseif wish.kept == 0 and (wait == '1' or others) then
  -- if the clock has been set back since, whoever came later would pass
  local came = number(call('zscore', line, own))
  if not came or came > now - waited + 1000 then
    call('zadd', line, now - waited, own)
  end
  call('hset', wishes, own, table.concat({ttl, kind, permits, clock, hold, request,
    (hold == '-' and '0' or '+') .. now}, ' ') .. '\n' .. description)
  call('pexpire', line, 60000)
  call('pexpire', wishes, 60000)
  local granted_here = {settle(own, in_use)}
  if granted_here[1] then
    return granted(unpack(granted_here))
  end
  place = call('zrank', line, own) or -1
end
if wait ~= '1' then
  leave(line, own)
end

local left, count, holder, prefix = call('pttl', key), 1
in_use = kind_of_key()
if in_use == exclusive then
  holder = call('getrange', key, '0', '256')
elseif in_use == reentrant and call('hlen', key) == 1 then
  holder = call('hkeys', key)[1]
else
  prefix = in_use == 'none' and '' or '*'
  of, has_slots = permits_of_key()
  if of then -- bounded: the first fifty to end
    local page, longest = call('zrange', key, 0, 49, 'withscores'), -2
    count = call('zcard', key)
    for i = 1, #page, 2 do
      local _, since = describe(page[i])
      if since > longest then
        holder, longest = page[i], since
      end
    end
    if has_slots then
      local tokens = call('zrange', key, 0, 49)
      table.sort(tokens)
      prefix = prefix .. redis.sha1hex(table.concat(tokens)):sub(1, 15)
    end
    if left >= 0 then -- for who shares KEY until the first place is free, for others until all of these are
      left = max(page[kind == sorted and 2 or #page] - now, 0)
    end
  end
end
local text, held_for = describe(holder)
return {0, left, held_for, text, place, ancestor ~= '' and holds(ancestor, in_use) > 0 and 1 or 0,
  prefix or holder:sub(1, 16), age, text ~= '' and longest_ttl() or 0, count, of or 0, in_use,
  tell_holders(in_use)}
