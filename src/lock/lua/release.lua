-- Gives the owner's hold back, or a waiter's place; the fence stays in the record.
-- ARGV: hold ('-': none; '*': not known; '*+': not known, but untracked), and perhaps a blank and a number that is
--       drawn once: with it the hold is given back, of '*' one that is picked here; without it '*' only asks;
--       min_hold (ms; -1: by hand), how the run ended ('': there was none; note_run; with a + before it: in time,
--       though this release may come when the lease is over); and perhaps for how long
--       all that it wanted was held (ms)
-- returns {1, for how long KEY is kept (ms), the number of the release that gave that hold back first (nil: none)}
-- released, {0, min_hold, number} held by someone else, {-1, min_hold, number} gone, or {-2, how many holds of the
-- token the record does not know, "hold ms-since-entered-or-renewed hold ..."}: nothing was given back (pick.h)
local hold, drawn = ARGV[3]:match('^(%S+) ?(.*)$')
local min_hold, ended = number(ARGV[4]), ARGV[5]
local kind = kind_of_key()
local held = holds(token, kind)
local is_any = kind == reentrant and held > 0 and hold:find('^%*%+?$')

-- When a hold was entered or renewed; now, if it was granted by a message that is not confirmed.
local function time_of(name)
  local time = number(peek('hold:' .. name)) or 0
  return time > 0 and time or now
end

-- In this order: an untracked hold of the script's own, which begins as its number does (token.h), another
-- untracked one, one that the record has lost, any; the oldest of its group. Nil: there is none.
local function pick_here()
  local known, oldest, least = known_holds()
  for _, name in each(known) do
    local time = time_of(name)
      + (name:find('^%+' .. drawn:sub(1, 8)) and 0 or name:find('^%+') and 2^51 or 2^52)
    if time < (least or time + 1) then
      oldest, least = name, time
    end
  end
  if held > #known and (least or 2^52) >= 2^52 then
    return '*' .. drawn
  elseif hold == '*' or (least or 2^52) < 2^52 then
    return oldest
  end
end

-- Which release gave this hold back first, and whether it is this request. For another release a hold that was
-- entered again is a new one. The note outlasts the holders: a request that comes again may find a later hold of
-- its owner. If there is no memory for it, only a hold with a name is given back: that happens once anyway.
local function first_to_give()
  local past = peek('given')
  past = type(past) == 'string' and past or ''
  local _, at = past:find((is_any and drawn or hold) .. ' ', 1, true)
  local first = at and (is_any and drawn or past:match('^%x+', at + 1))
  if first == drawn then
    return first
  elseif is_any then
    hold = pick_here()
  elseif try('hexists', record, 'hold:' .. hold) ~= 1 and (first or held <= #known_holds()) then
    return first
  end
  local noted = hold and try('hset', record, 'given', format('%s %s %s', hold, drawn, past:sub(1, 6000)))
  if noted and (type(noted) ~= 'table' or not is_any) then
    return drawn, true
  end
end

-- KEY stays with its owner for that long, and nobody can take it.
local function keep_for_min_hold()
  local left = max(kind == sorted and call('pttl', key) or 0, min_hold)
  call('pexpire', key, left)
  if kind == sorted then
    call('zadd', key, 'xx', now + min_hold, token)
  end
  note_lease(token, min_hold, left)
  for _, line in each({queue, waits}) do
    local head = try('zrange', line, 0, 0)
    if head[1] then
      tell(head[1], 0, 0, min_hold, '-')
    end
  end
end

-- Whether this hold is the one that KEY counts, and not one that has been given back.
local function is_last()
  return held == 1 and (kind ~= reentrant or #known_holds() == 0
    or try('hexists', record, 'hold:' .. hold) ~= 0)
end

-- A hold that is not the last leaves its min_hold to the last one, unless that is given back by hand, or lost.
-- Returns for how long KEY has to be kept then (ms).
local function hand_on_min_hold(last)
  local kept = peek('kept:' .. token)
  local ends, length = (type(kept) == 'string' and kept or ''):match('^(%d+) ?(%d*)$')
  local left = min((number(ends) or 0) - now, number(length) or 86400000) -- the clock may have been set back
  if not last and min_hold > 0 then
    left = max(left, min_hold)
    min_hold = 0
    return left
  elseif last and min_hold >= 0 and not ended:find('^%S+ %S+ %S+ %S+ [lb]') then -- lost, broken
    min_hold = max(min_hold, left)
  end
end

-- Notes the end of the token's run at a release. A run of a hash ends with the first of its holds, or
-- else with the last. If KEY was gone by then, it was lost, however it ended.
local function note_end(is_last)
  local in_time = ended:byte() == 43 -- a +
  if in_time then
    ended = ended:sub(2)
  elseif held == 0 then
    ended = ended:gsub('^(%S+ %S+ %S+ %S+) [es].*', '%1 lost\n') -- of exit and signal
  end
  if kind == reentrant and describe(token):match('^since=%d+%p* (%S+)') ~= ARGV[3] then
    if not is_last then
      return
    end
    ended = '- released'
  end
  local told
  if ARGV[6] then -- it began later than KEY was granted
    told = describe(token):gsub('%d+', max(describe(token):match('%d+') or 0, now - ARGV[6]), 1)
  end
  local text = note_run(token, ended, nil, told)
  if text and (min_hold > 0 or not is_last) then
    try('hset', record, 'holder:' .. token, (text:gsub('^since=%d+', '%0.')))
  end
end

local first, is_now
if drawn ~= '' then
  first, is_now = first_to_give()
  hold = (is_now or kind ~= reentrant) and hold
end
if is_any and not first then
  local told = {}
  for _, sort in each({'^%+', '^[^+]'}) do -- untracked ones first
    for _, name in each(known_holds()) do
      if #told < 100 and name:find(sort) then
        told[#told + 1] = format('%s %.0f', name, max(now - time_of(name), 0))
      end
    end
  end
  return {-2, max(held - #known_holds(), 0), table.concat(told, ' ')}
end
local last = hold and is_last()
local handed_on = kind == reentrant and hold and hand_on_min_hold(last)
if ended ~= '' and hold then
  note_end(last)
end
if held > 0 then
  if min_hold > 0 then
    keep_for_min_hold()
  elseif hold then
    remove(token, hold, kind)
  end
  if handed_on then -- not sooner: if no memory is left, only a script that has written already may do this
    try('hset', record, 'kept:' .. token, format('%.0f %.0f', now + handed_on, handed_on))
  end
  if min_hold > 0 then -- else a grant, or an extend, has seen to it
    outlive(call('pttl', key), describe(token), try)
  elseif afterlife == 0 then
    try('pexpire', record, call('pttl', key))
  end
  if kind == reentrant then
    if time_left(record) == -1 then -- it was lost, and is begun anew by what is noted of this
      outlive(max(call('pttl', key), 0), '', try)
    end
    tell_redisson()
  end
end
-- What is done stays done: nothing from here on may turn it into an error.
if try('exists', queue, waits) ~= 0 then
  if held == 0 or kind == reentrant then -- no other kind's holder has a place
    pcall(leave, queue, place_of(token, ARGV[3]))
    pcall(leave, waits, place_of(token, ARGV[3]))
  end
  pcall(settle)
elseif kind == sorted then
  pcall(drop_expired) -- of others that never came back: nobody may ever look again
end
return {held > 0 and 1 or kind == 'none' and -1 or 0, min_hold, first}
