-- Says who holds each of many KEYs: the first holder, and how many there are; and who waits for it.
-- KEYS: KEY, its record, its queue, and those that only wait, for each
-- ARGV: 1 to report the last runs (runs.lua), too
-- returns {1, {one ...}, this server's clock (ms), {last run, last one that succeeded ...}}; a run is ''
--         if there is none; one is "known waiting oldest longest crowd" (1 if the record is a lock's; how many
--         wait; ms that the first of them has waited, and that one of those who share KEY has held it; a digest
--         of these), and below: "type permits holders digest left held count slot" and the holder's description
--         below that; '' if it is not held; "later N" if its record is of protocol N
local answer, told = {}, {}

local function count(line)
  local places = try('zcard', line)
  return type(places) == 'number' and places or 0
end

local function longest_wait(line)
  local came = try('zrange', line, '0', '0', 'withscores')[2]
  return max(min(now - (number(came) or now), 2^53), 0)
end

-- Of those who share KEY: for how long the first of them has held it (-1: unknown), and a digest that differs if one
-- of them does, or has another slot. '-': nobody shares it; '*': there are too many to be looked at here.
local function look_at_crowd(total)
  local longest, names = -1, {}
  if total == 0 or kind_of_key() ~= sorted or not permits_of_key() then
    return longest, '-'
  elseif total > 60 then
    return longest, '*'
  end
  for i, who in each(call('zrangebyscore', key, format('(%.0f', now), '+inf')) do
    local _, held_for = describe(who)
    longest = max(longest, held_for)
    names[i] = format('%s %.0f', who, slot_of(who) or 0)
  end
  table.sort(names)
  return longest, redis.sha1hex(table.concat(names, '\n'))
end

-- Those that ended last: if KEY was shared, these need not be those that began last.
local function tell_runs()
  local last, success, ended, succeeded = '', '', -1, -1
  for _, run in each(ARGV[3] == '1' and try('lrange', record .. ':runs', '-31', '-1') or {}) do
    local held, how, since = run:match('^%S+ (%d+) %d+ %S+ ([^\n]+)\nsince=(%d+)')
    since = number(since) or -1
    if since - now > 3600000 then -- noted by a wrong clock
      since = -1
    end
    local at = since < 0 and since or since + held
    if at > ended then
      last, ended = run, at
    end
    if at > succeeded and how == 'exit 0' then
      success, succeeded = run, at
    end
  end
  told[#told + 1] = last:sub(1, 500)
  told[#told + 1] = success:sub(1, 500)
end

for i = 1, #KEYS, 4 do
  key, record, queue, waits = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  local later, items, total = later_protocol(), holders('', 1)
  local first = (total or 0) > 0 and items[1]
  answer[#answer + 1] = format('%d %.0f %.0f %.0f %s\n', type(peek('fence')) == 'string' and 1 or 0,
    count(queue) + count(waits), max(longest_wait(queue), longest_wait(waits)), look_at_crowd(total or 0))
    .. (later and 'later ' .. later:sub(1, 15) or first
    and format('%s %.0f %.0f ', kind_of_key(), permits_of_key() or -1, total) .. first or '')
  tell_runs()
end
return {1, answer, now, told}
