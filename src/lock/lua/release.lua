-- Gives the owner's hold back, or a waiter's place; the fence stays in the record.
-- ARGV: hold ('-': none; '*' and a number that is drawn once: any of them, and untracked ones
--       first, which begin with '+'; '*+' and a number: none but these), min_hold (ms; -1: by hand), how the
--       run ended ('': there was none; note_run); and perhaps for how long all that it wanted was held (ms)
-- returns {1, for how long KEY is kept (ms)} released, {0, min_hold} held by someone else, {-1, min_hold} gone,
-- {-1} alone: the token has holds, but no untracked one, as '*+' wants
local hold, min_hold, ended = ARGV[3], number(ARGV[4]), ARGV[5]
local kind = kind_of_key()
local held = holds(token, kind)

-- A hold of the token: an untracked one first, then one that the record has lost. It is the same on
-- every server. Nil for a request that arrives twice; false if there is none of the kind that is wished.
local function pick_hold()
  local past = peek('last:' .. token)
  past = type(past) == 'string' and past or ''
  if (past .. ' '):find(hold .. ' ', 1, true) then
    return
  end
  local known = known_holds()
  table.sort(known)
  local untracked = known[1] and known[1]:find('^%+')
  if hold:find('^%*%+') and not untracked and #known >= held then
    return false
  end
  try('hset', record, 'last:' .. token, hold .. ' ' .. past:sub(1, 10 * #hold)) -- others may come in between
  return known[1] and (untracked or #known >= held) and known[1] or hold
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
    if not head.err and head[1] then
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
-- Returns until when KEY has to be kept then.
local function hand_on_min_hold(last)
  local kept = number(peek('kept:' .. token)) or 0
  if not last and min_hold > 0 then
    kept = max(kept, now + min_hold)
    min_hold = 0
    return kept
  elseif last and min_hold >= 0 and not ended:find(' lost\n', 1, true) and not ended:find(' broken ', 1, true) then
    min_hold = max(min_hold, min(kept - now, 86400000))
  end
end

-- Notes the end of the token's run at a release. A run of a hash ends with the first of its holds, or
-- else with the last.
local function note_end(is_last)
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

if kind == reentrant and held > 0 and hold:find('^%*') then
  hold = pick_hold()
  if hold == false then
    return {-1}
  end
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
    try('hset', record, 'kept:' .. token, format('%.0f', handed_on))
  end
  if min_hold > 0 then -- else a grant, or an extend, has seen to it
    outlive(call('pttl', key), describe(token), try)
  elseif afterlife == 0 then
    try('pexpire', record, call('pttl', key))
  end
  if kind == reentrant then
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
return {held > 0 and 1 or kind == 'none' and -1 or 0, min_hold}
