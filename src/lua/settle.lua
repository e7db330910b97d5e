-- The one place where KEY is granted: to the head of the queue, as long as KEY is free for it.

-- A place is a request's: of several that one owner makes each has one, by its hold.
local function place_of(who, hold)
  return hold == '-' and who or hold .. ':' .. who
end

-- A wish is "ttl kind permits clock hold request seen", and the description on the lines below.
local function read_wish(place)
  local text = call('hget', wishes, place)
  local ttl, kind, permits, clock, hold, request, seen, description =
    (text or ''):match('^(%d+) (%l+) (%d+) (%d+) (%S+) (%d+) ?(%d*)\n(.*)$')
  return ttl and {who = hold == '-' and place or place:sub(#hold + 2),
    ttl = tonumber(ttl), kind = kind, permits = tonumber(permits),
    clock = tonumber(clock), hold = hold, request = request, seen = tonumber(seen) or now,
    description = description}
end

local function leave_queue(place, ...)
  call('zrem', queue, place, ...)
  call('zrem', waits, place, ...)
  call('hdel', wishes, place, ...)
end

-- Whether KEY, as it is now, has room for this wish.
local function fits(who, wish)
  drop_expired()
  local kind = kind_of_key()
  if kind == 'none' then
    return true
  elseif kind ~= wish.kind then
    return false
  elseif kind == 'hash' then
    return call('hexists', key, who) == 1
  end
  return kind == 'zset' and permits_of_key() == wish.permits
    and (wish.permits == 0 or call('zcard', key) < wish.permits)
end

-- A fence is a whole number that a double can hold: past it counting would stand still.
local function stored_fence()
  local fence = tonumber(call('hget', record, 'fence') or 0)
  return fence and fence >= 0 and fence < 2^53 - 1 and fence % 1 == 0 and fence
end

-- Larger than all that were granted here; and, by the clock, than those that this server has not
-- heard of, as a replica that lagged behind, or has forgotten, as one restarted from an older dump.
-- One that holds KEY keeps its own: the stored one may be that of another which shares KEY.
-- Returns it, and what is to be stored.
local function next_fence(who, wish, again)
  local stored = stored_fence() or error('WRONGTYPE the record holds no fence')
  if (wish.kept or 0) > 0 then
    stored = math.max(stored, wish.kept)
  elseif again and stored > 0 then
    return tonumber(call('hget', record, 'fence:' .. who)) or stored, stored
  else
    stored = math.max(stored + 1, math.min(wish.clock, now + 86400000))
  end
  return stored, stored
end

-- Nobody holds KEY: what the record says of holders is about the dead.
local function forget_holders()
  for _, field in ipairs(call('hkeys', record)) do
    if field ~= 'fence' and field ~= 'broken' then
      call('hdel', record, field)
    end
  end
end

-- The record first and KEY last: a refusal on the way leaves nothing held.
local function grant(who, wish, lease)
  local again = holds(who) > 0
  local fence, stored = next_fence(who, wish, again)
  if kind_of_key() == 'none' then
    forget_holders()
  end
  local text = wish.description
  if not text:find('^since=') then
    text = format('since=%.0f\n', now) .. text
  end
  call('hset', record, 'fence', format('%.0f', stored))
  if not again or wish.kind ~= 'hash' then
    call('hset', record, 'holder:' .. who, text)
  end
  call('pexpire', record, lease + afterlife)
  if wish.kind == 'string' and not again then
    call('set', key, who, 'px', lease)
    return fence
  elseif wish.kind == 'zset' then
    call('hset', record, 'permits', wish.permits, 'fence:' .. who, format('%.0f', fence))
    call('zadd', key, 'nx', now + lease, who)
  elseif wish.kind == 'hash' and call('hset', record, 'hold:' .. wish.hold, 1) == 1 then
    call('hincrby', key, who, 1)
  end
  prolong(who, lease)
  return fence
end

-- Whether KEY counts this hold; then it is not to be asked for again, as a request may come twice.
-- Where the record was lost, KEY counts holds that it does not know: those that are out are noted.
local function is_counted(who, hold)
  local lost = holds(who) - #known_holds()
  local known = try('hdel', record, 'hold:' .. hold) ~= 0
  if lost > 0 then
    return try('hset', record, 'gone:' .. hold, 1) ~= 0
  end
  return known
end

-- Takes one hold back. What is done stays done: an error behind it changes nothing.
local function remove(who, hold)
  local kind = kind_of_key()
  if kind == 'string' then
    call('del', key)
  elseif kind == 'zset' then
    call('zrem', key, who)
    if call('exists', key) == 0 then
      try('hdel', record, 'permits')
    end
  elseif not is_counted(who, hold) or call('hincrby', key, who, -1) > 0 then
    return
  else
    call('hdel', key, who)
  end
  try('hdel', record, 'holder:' .. who, 'fence:' .. who)
end

-- Of a cluster all nodes would be told by a PUBLISH; since Redis 7 there is one for a slot.
local sharded = clustered and redis.REDIS_VERSION_NUM

local function tell(place, ...)
  return try(sharded and 'spublish' or 'publish', record .. ':' .. place, table.concat({...}, ' '))
end

local function count_listeners(...)
  return try('pubsub', sharded and 'shardnumsub' or 'numsub', ...)
end

-- Who keeps others waiting must be there: it listens, and has asked within two heartbeats.
local function is_away(place, wish)
  return count_listeners(record .. ':' .. place)[2] == 0 or now - wish.seen > 10000
end

-- However long a line is, or was made by somebody, a script looks at so many places of it.
local most = 100

-- With the head all who are gone of those behind it.
local function drop_dead(head, caller)
  local places, channels, dead = call('zrange', queue, 0, most - 1), {}, {head}
  for i, place in ipairs(places) do
    channels[i] = record .. ':' .. place
  end
  local heard = count_listeners(unpack(channels))
  for i, place in ipairs(places) do
    if heard[2 * i] == 0 and place ~= caller then
      dead[#dead + 1] = place
    end
  end
  leave_queue(unpack(dead))
end

-- More is to be done than one script does: who came last, and so will still be there, goes on.
local function hand_on(line)
  for _, place in ipairs(call('zrange', line, -10, -1)) do
    if tell(place, 0, 0, 0, '-') ~= 0 then
      return
    end
  end
end

-- Those who only wait take nothing, so they stand beside the queue. KEY is free: those who came
-- before this are told, once. Returns whether that is the caller, too.
local function tell_waits(before, caller)
  local places, told = call('zrangebyscore', waits, '-inf', before, 'limit', 0, most)
  for _, place in ipairs(places) do
    local wish = read_wish(place)
    told = told or place == caller
    if wish and place ~= caller then
      tell(place, wish.request, 0, math.min(wish.ttl, 10000), wish.hold)
    end
  end
  if places[1] then
    leave_queue(unpack(places))
  end
  if #places == most then
    hand_on(waits)
  end
  return told
end

-- A waiter that dies as it is granted KEY keeps the others out no longer than this (ms).
local unanswered = 3000

-- To one that is not the caller; returns how many heard it. Whoever cannot be told will ask. It is
-- told when the grant ends, from when its request came: it knows when it sent that, but not when
-- this is.
local function grant_to_waiter(place, wish)
  local lease = math.min(wish.ttl, unanswered)
  local ends = math.min(math.max(now - wish.seen, 0) + lease, wish.ttl)
  local fence = grant(wish.who, wish, lease)
  local heard = tell(place, wish.request, format('%.0f', fence), format('%.0f', ends), wish.hold)
  heard = type(heard) == 'number' and heard
  if not heard or heard == 0 then
    remove(wish.who, wish.hold)
  else
    leave_queue(place)
  end
  return heard
end

-- Returns the caller's fence where the caller, a place, was granted KEY; 0 where it only waits, and
-- KEY is free.
local function settle(caller)
  local rest, answer, granted = most
  while rest > 0 and call('exists', queue, waits) > 0 do
    rest = rest - 1
    local head, came = unpack(call('zrange', queue, 0, 0, 'withscores'))
    if kind_of_key() == 'none' and tell_waits(came or '+inf', caller) then
      answer = 0
    end
    if not head then
      return answer
    end
    local wish, heard = read_wish(head), 0
    if wish and fits(wish.who, wish) then
      if head == caller then
        leave_queue(head)
        return grant(wish.who, wish, wish.ttl)
      end
      heard = grant_to_waiter(head, wish)
      granted = true
    elseif wish and (head == caller or not is_away(head, wish)) then
      if granted and head ~= caller then
        tell(head, 0, 0, unanswered, '-') -- should nobody answer, KEY is its own after that
      end
      return answer
    end
    if not heard then
      return answer
    elseif heard == 0 then
      drop_dead(head, caller)
      rest = rest - most / 5
    end
  end
  if rest <= 0 then
    hand_on(queue)
  end
  return answer
end
