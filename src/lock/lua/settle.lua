-- The one place where KEY is granted: to the head of the queue, as long as KEY is free for it.

-- A wish is "ttl kind permits clock hold request seen", and the description on the lines below.
-- A 0 or + before `seen` says that the waiter understands ages. A waiter of an earlier version has
-- neither, and takes no message with an age. That version cannot read a wish with +: it would grant
-- KEY to the place and not to the token. Nor can it read one with a slot. Its own wish for a permit has no
-- slot, so it is not granted here, but leaves the queue: its waiter asks again. Its description may say
-- since when it had KEY before.
local function read_wish(place)
  local text = call('hget', wishes, place)
  local ttl, kind, permits, clock, hold, request, knows, seen, description =
    (text or ''):match('^(%d+) (%l+) (%S+) (%d+) (%S+) (%d+) ?([0+]?)(%d*)\n(.*)$')
  local permits, slot, moves = read_permits(permits)
  local named = ttl and place:sub(1, #hold + 1) == hold .. ':' -- an earlier version's is the token
  return permits and {who = named and place:sub(#hold + 2) or place,
    ttl = number(ttl), kind = kind, permits = permits, slot = slot, moves = moves,
    clock = number(clock), kept = 0, hold = hold, request = request, seen = number(seen) or now,
    knows_age = knows ~= '', description = description:gsub('^since=.-\n', '')}
end

-- Whether KEY, as it is now, has room for this wish; for a permit what pick_slot returns.
local function fits(who, wish, kind)
  if kind == 'none' then
    return not wish.slot or pick_slot(who, wish)
  elseif kind ~= wish.kind then
    return false
  elseif kind == reentrant then
    return call('hexists', key, who) == 1
  end
  local permits, has_slots = permits_of_key()
  return kind == sorted and permits == wish.permits and (permits == 0
    or has_slots and (slot_of(who) or call('zcard', key) < permits) and pick_slot(who, wish))
end

-- A fence is a whole number that a double can hold: past it counting would stand still. It is read
-- once, as only a grant writes it.
local known_fence
local function stored_fence()
  local fence = known_fence or number(get('fence') or 0)
  known_fence = fence and fence >= 0 and fence < 2^53 - 1 and fence % 1 == 0 and fence
  return known_fence
end

-- The fence for `who`, which is also the one to store. A new one is larger than all that were granted here. By
-- the clock, it is also larger than fences that this server has not heard of (a replica that lagged behind) or
-- has forgotten (a restart from an older dump). A token that is put back gets its own, or the stored one if that
-- is larger. A token that asks again keeps its fence, unless somebody who shares KEY has been granted a larger
-- one since; then it gets a new one. It may have no quorum yet, and when it does, this server may be the only
-- one of that quorum that knows how far the fences have come.
local function next_fence(who, wish, again)
  local stored = stored_fence()
  if wish.kept > 0 then
    return max(stored, wish.kept)
  elseif again and stored > 0 and (number(get('fence:' .. who)) or stored) >= stored then
    return stored
  end
  return max(stored + 1, min(wish.clock, now + 86400000))
end

-- Nobody holds KEY: what the record says of holders is over, except for `kept`. Their runs are noted,
-- but for that of `spared`, which gets KEY back. ended: how (note_run); nil: that is unknown.
local function forget_holders(kept, spared, ended)
  for _, field in each(call('hkeys', record)) do
    if not (' fence broken began given ' .. kept):find(' ' .. field .. ' ', 1, true) then
      local who = field:match('^holder:(.*)')
      if who and who ~= spared then
        note_run(who, ended or unknown, not ended and now)
      end
      call('hdel', record, field)
    end
  end
end

-- If the record has not seen its holder go, KEY was evicted or deleted: the record begins anew.
local function note_loss(kind)
  local ends = kind == 'none' and number(get('until')) or 0
  if ends > now + 100 then
    call('hset', record, 'began', now)
    try('hdel', record, 'last', 'until')
  end
end

-- The record first and KEY last: a refusal on the way leaves nothing held. kind: KEY's, as it is. room: what
-- fits() has found. Returns the fence, and for a permit its slot, free slots, and the longest ttl of those who
-- hold other slots. A token that moves to another slot gets a new fence: the old one may be smaller than
-- that of the slot's last holder.
local function grant(who, wish, lease, kind, room)
  local again = kind ~= 'none' and holds(who, kind) > 0
  local slot, longest = wish.slot and room[1], 0
  if slot and call('zcard', key) > (again and 1 or 0) then
    longest = longest_ttl()
  end
  again = again and slot == (wish.slot and slot_of(who))
  local fence = next_fence(who, wish, again)
  local text, fields = wish.description, {'fence', format('%.0f', fence)}
  local function note(...)
    for _, item in each({...}) do
      fields[#fields + 1] = item
    end
  end
  -- what is put back has been held elsewhere for so long (extend.lua)
  local ago, rest = text:match('^since=(%d+)(.*)')
  text = 'since=' .. now - (ago or 0) .. (rest or format('%s %s\n', wish.mark or '', wish.hold) .. text)
  if not again or wish.kind ~= reentrant then
    note('holder:' .. who, text)
  end
  if wish.kind == sorted then
    note('permits', wish.permits + (slot and 0.25 or 0), 'fence:' .. who, format('%.0f', fence))
  end
  if slot then
    local before, moves = slot_of(who)
    note_slots(before, slot, who)
    note('slot:' .. who, max(moves or 0, wish.kept > 0 and settled or wish.moves) * 2^20 + slot)
  end
  if kind == 'none' then
    forget_holders('last until ttl ', who)
    note(lease_fields(who, wish.ttl, lease))
  end
  call('hset', record, unpack(fields))
  known_fence = fence
  outlive(max(kind ~= 'none' and call('pttl', key) or 0, lease), text, call)
  if wish.kind == exclusive and not again then
    call('set', key, who, 'px', lease)
    return fence
  elseif wish.kind == sorted then
    call('zadd', key, 'nx', now + lease, who)
  elseif wish.kind == reentrant and call('hset', record, 'hold:' .. wish.hold, wish.mark and 0 or now) == 1 then
    call('hincrby', key, who, 1)
  end
  local left = prolong(who, lease, wish.kind)
  if kind ~= 'none' then
    note_lease(who, wish.ttl, left)
  end
  return fence, slot or 0, slot and table.concat(room[2], ' ') or '', longest
end

-- How many subscribers each place has: {channel, number, ...}.
local function listeners(places)
  local channels = {}
  for i, place in each(places) do
    channels[i] = record .. ':' .. place
  end
  return try('pubsub', sharded and 'shardnumsub' or 'numsub', unpack(channels))
end

-- A waiter that dies as it is granted KEY keeps the others out no longer than this (ms).
local unanswered = 3000

-- A head that could take KEY, or keeps others waiting, must be there: it listens. A head that has to
-- wait must also have asked within two heartbeats. If KEY was granted just now, it is told when to ask,
-- should nobody answer: KEY is its own after that.
local function is_away(place, wish, may_take, granted)
  if not may_take and now - wish.seen > 10000 then
    return true
  end
  return (granted and not may_take and tell(place, 0, 0, unanswered, '-') or listeners({place})[2]) == 0
end

-- Whether a waiter need not run any more: it is told to ask, and then hears why.
local function has_run(place, wish)
  return find_success(wish.description) and tell(place, 0, 0, 0, '-')
end

-- Grants KEY to a waiter other than the caller. False if it cannot be told: it will ask by itself. The
-- message says how long after the arrival of its request the grant ends: the waiter knows when it sent
-- that request, but not when this happens.
local function grant_to_waiter(place, wish, kind, room)
  local lease = min(wish.ttl, unanswered)
  wish.mark = '~'
  local ends = min(max(now - wish.seen, 0) + lease, wish.ttl)
  local age = max(now - (number(peek('began')) or now), 0)
  local fence, slot, _, longest = grant(wish.who, wish, lease, kind, room)
  local heard = tell(place, wish.request, format('%.0f', fence), ends, wish.hold,
    wish.knows_age and age or nil, wish.slot and slot .. ' ' .. format('%.0f', longest) or nil)
  local told = type(heard) == 'number'
  if told then
    leave(queue, place)
  end
  if not told or heard == 0 then
    remove(wish.who, wish.hold, wish.kind)
    note_slots(slot)
  end
  return told
end

-- A request looks at no more places than this, however long the lines are. Of each line it tells the last five
-- that listen to ask: their requests continue the work.
local most = 100
local function hand_on()
  for _, line in each({queue, waits}) do
    local places, told = call('zrange', line, -1000, -1), 0
    for i = #places, 1, -1 do
      told = told < 5 and told + (number(tell(places[i], 0, 0, 0, '-')) or 1) or told
    end
  end
end

-- Those after a head that was away, up to the first that listens, are away, too: a host that dies may leave hundreds.
local function drop_away(caller)
  for _ = 1, most do
    local places, gone = call('zrange', queue, 0, most - 1), 0
    local heard = listeners(places)
    while heard[2 * gone + 2] == 0 and places[gone + 1] ~= caller do
      gone = gone + 1
    end
    if gone > 0 then
      leave(queue, unpack(places, 1, gone))
    end
    if gone < most then
      return
    end
  end
end

-- Waiters that take nothing stand beside the queue. If KEY is free, each that came before `before` is
-- told so, once. Returns whether the caller is one of them, and whether these were all.
local function tell_waits(before, caller)
  local places, told = call('zrangebyscore', waits, '-inf', before, 'limit', 0, most), false
  local heard = places[1] and listeners(places)
  for i, place in each(places) do
    local wish = place ~= caller and heard[2 * i] ~= 0 and read_wish(place)
    if place == caller then
      told = true
    elseif wish then
      tell(place, wish.request, 0, min(wish.ttl, 10000), wish.hold)
    end
  end
  if places[1] then
    leave(waits, unpack(places))
  end
  return told, not places[most]
end

-- Returns what grant() does if the caller, a place, was granted KEY; 0 if it takes nothing and KEY
-- was free. A queue beside a record that holds no fence is not ours. kind: KEY's, if the caller has looked
-- for those whose lease is over, and whether KEY was lost.
local function settle(caller, kind)
  local free, all, granted
  if not stored_fence() then
    return
  end
  if not kind then
    kind = drop_expired()
    note_loss(kind)
  end
  for _ = 1, most do
    local head, came = unpack(call('zrange', queue, '0', '0', 'withscores'))
    local wish = head and read_wish(head)
    local room = wish and fits(wish.who, wish, kind)
    if head and (not wish or head ~= caller
        and (is_away(head, wish, room, granted) or room and has_run(head, wish))) then
      leave(queue, head)
      drop_away(caller)
    else
      if not free and kind == 'none' then
        free, all = tell_waits(came or '+inf', caller)
      end
      if not head and all == false then
        break
      elseif room and head == caller then
        leave(queue, head)
        return grant(wish.who, wish, wish.ttl, kind, room)
      end
      granted = room and grant_to_waiter(head, wish, kind, room)
      if not granted then
        return free and 0
      end
      kind = kind_of_key()
    end
  end
  hand_on()
  return free and 0
end
