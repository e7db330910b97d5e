-- What a request has on this server, its place and its hold, and how it is taken back.

-- A place belongs to a request: an owner with several requests has several places, named by the hold.
local function place_of(who, hold)
  return hold == '-' and who or hold .. ':' .. who
end

-- A place stands in one line: the queue, or beside it if it takes nothing.
local function leave(line, ...)
  call('zrem', line, ...)
  call('hdel', wishes, ...)
end

-- Whether KEY counts this hold. The answer is yes only once, as a request may come twice. If the
-- record was lost, KEY counts holds that it does not know: those that were given back are noted.
local function is_counted(who, hold)
  local lost = holds(who) - #known_holds()
  local known = try('hdel', record, 'hold:' .. hold) ~= 0
  if lost > 0 then
    return try('hset', record, 'gone:' .. hold, 1) ~= 0
  end
  return known
end

-- Takes one hold back. What is done stays done: a later error changes nothing.
local function remove(who, hold, kind)
  if kind == exclusive then
    call('del', key)
  elseif kind == sorted then
    call('zrem', key, who)
  elseif not is_counted(who, hold) or call('hincrby', key, who, -1) > 0 then
    return
  else
    call('hdel', key, who)
  end
  local gone = kind == exclusive or call('exists', key) == 0
  forget(who, unpack(gone and {'until', 'permits'} or {}))
end

-- In a cluster PUBLISH goes to all nodes; since Redis 7 SPUBLISH goes only to those of the hash slot.
local sharded = clustered and redis.REDIS_VERSION_NUM

local function tell(place, ...)
  return try(sharded and 'spublish' or 'publish', record .. ':' .. place, table.concat({...}, ' '))
end
