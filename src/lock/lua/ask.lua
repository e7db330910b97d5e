-- Asks holders of KEY to stop. From then on each renewal is answered with who asks and why, and KEY stays
-- until the holder gives it back, or its lease is over.
-- A holder that does not say that it understands this, such as an earlier redlock or another program,
-- keeps its lease, but as nobody's: under a name that no token has. Its next renewal finds that KEY is
-- held by someone else, as does its release, and KEY is free when the lease is over.
-- ARGV: digests of the tokens that are asked, with a blank after each, a thousand at most; who asks and why
-- returns {1 one of them holds KEY, 0 KEY is free, -1 only others hold it; Redis type, permits (-1: none),
--         fence (0: none), how many of them hold it, 0, {one ...} as inspect has them, {one ...} as waiters:
--         those that have lost KEY, and have not released it; "waited" is 1 if the lease was over, else 0},
--         since when the server has known KEY (ms by its clock, -1 unknown)
local asked, why = set_of(ARGV[3]), ARGV[4]
local most = 10000 -- that are looked at
local later = refuse_later()
if later then
  return later
end
local kind, kind_of_record, items, total = drop_expired(), call('type', record).ok, {}, 0
local permits, fence = permits_of_key(), peek('fence')

-- Each who holds KEY, and how often; nil: nobody can tell.
local function everybody()
  if kind == exclusive then
    return {call('getrange', key, 0, 256), 1}
  elseif kind == reentrant and call('hlen', key) <= most then
    return call('hgetall', key)
  elseif kind == sorted and permits then
    return call('zrange', key, 0, most - 1, 'withscores')
  end
  return kind == 'none' and {} or nil
end

-- KEY lasts as long as it did; without an expiry, as long as a lease may that was known of.
local function freeze(who, count, left)
  local cold = who .. frozen
  note_run(who, broken_by(why))
  local text = describe(who):gsub('^since=%d+', '%0.')
  if text ~= '' then
    try('hset', record, 'holder:' .. cold, text)
  end
  if kind == exclusive then
    call('set', key, cold, 'px', max(left, 1))
  elseif kind == reentrant then
    call('hset', key, cold, count)
    call('hdel', key, who)
  else
    local slot = slot_of(who)
    if slot then
      call('hset', record, 'slot:' .. cold, slot)
    end
    call('zadd', key, count, cold)
    call('zrem', key, who)
  end
  try('hdel', record, 'holder:' .. who, 'slot:' .. who)
end

-- What is older than a day is of no use to anybody.
local function sweep()
  local fields = try('hkeys', record)
  for _, field in each(fields.err and {} or fields) do
    local at = field:find('^break:') and get(field):match('^at=(%d+)')
    if at and now - at > 86400000 then
      call('hdel', record, field)
    end
  end
end

local function ask(who, count, left)
  if type(peek('break:' .. who)) ~= 'string' then
    local put = (kind_of_record == reentrant or kind_of_record == 'none') and call or try -- a record that is something else saves nobody
    put('hset', record, 'break:' .. who, format('at=%.0f\n', now) .. why)
    tell_to_renew(who, holds_of(kind))
  end
  local heard = peek('break:' .. who)
  heard = type(heard) == 'string' and heard:find('\nheard=', 1, true) -- extend.lua
  if not describe(who):find('\nbreak=') and not heard and #who < 250 then
    freeze(who, count, left)
  end
end

-- Those of them that have lost KEY: it was taken from them, or the lease was over. Whoever releases it leaves
-- neither field; a dot says that the run was noted.
local function losers()
  local fields, lost, known = try('hkeys', record), {}, {}
  local ends = kind == 'none' and number(peek('until'))
  local over = ends and ends <= now and 1 or 0
  for _, field in each(fields.err and {} or fields) do
    local sort, who = field:match('^(%l+):(.*)')
    local digest = redis.sha1hex(who or '')
    if (sort == 'break' or sort == 'holder' and describe(who):find('^since=%d+[^.%d]'))
        and asked[digest] and not known[who] and holds(who) == 0 then
      known[who] = true
      lost[#lost + 1] = format('%s %d none 0\n', digest, over)
    end
  end
  return lost
end

if kind ~= 'none' and not is_lock(kind) then
  return refuse('NOBREAK', kind)
end
local all, left = everybody(), call('pttl', key)
if not all then
  return redis.error_reply('NOASK KEY is held by another program')
elseif left == -1 then
  left = min(number(peek('ttl')) or 60000, 86400000)
  call('pexpire', key, left)
end
for i = 1, #all, 2 do
  local who, count = all[i], all[i + 1]
  local digest = redis.sha1hex(name_of(who))
  if asked[digest] then
    if name_of(who) == who then
      ask(who, count, left)
    end
    total = total + 1
    items[total] = format('%s %.0f -1 1 %.0f\n', digest,
      kind == sorted and max(count - now, 0) or left, slot_of(who) or 0)
  end
end
if total > 0 then
  sweep()
  if type(fence) ~= 'table' then -- else another program's data is in the record's place
    outlive(left, '', try)
  end
end
return {total > 0 and 1 or #all > 0 and -1 or 0, kind, permits or -1,
  type(fence) == 'string' and number(fence) or 0, total, 0, items, losers(), known_since()}
