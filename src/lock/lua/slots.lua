-- Permits are slots: of the N of -P, one token has each, and the others wait. A request names a slot, from which
-- on the first free one is granted: servers that know the same grant the same. Votes for different slots
-- make no lock, so the next request may ask to be moved. Moves are counted, and no request that came before,
-- or comes twice, moves the token from there. Once the lock is held, only what is put back moves it.

-- "permits", or for -P "permits/slot/moves". Nil if it is neither, as an earlier version's -P.
local function read_permits(text)
  local permits, slot, moves = (text or ''):match('^(%d+)/?(%d*)/?(%d*)$')
  if permits == '0' or moves ~= '' then
    return number(permits), number(slot), number(moves)
  end
end

-- The slots that are free, from the wish's on, and the others, {slot, token} each: as many as a reply tells.
local function survey_slots(wish)
  local taken, free, others = {}, {}, {}
  for _, who in each(call('zrange', key, 0, -1)) do
    local slot = get('slot:' .. who)
    if slot then
      taken[slot % 2^20] = who
    end
  end
  for i = wish.slot, wish.slot + wish.permits - 1 do
    local slot = (i - 1) % wish.permits + 1
    if taken[slot] and #others < 20 then
      others[#others + 1] = {slot, taken[slot]}
    elseif not taken[slot] and #free < 20 then
      free[#free + 1] = slot
    end
  end
  return free, others
end

-- The slot for a wish, and those that are free: {slot, free}; nil if there is none. A token keeps the slot that
-- it has, but for the first request after a move: that moves it, if its slot is free. What is put back gets its
-- own slot, or none.
local function pick_slot(who, wish)
  local own, moves = slot_of(who)
  local free, back = survey_slots(wish), (wish.kept or 0) > 0
  if own == wish.slot or own and not back and (moves >= wish.moves or free[1] ~= wish.slot) then
    return {own, free}
  elseif free[1] and (free[1] == wish.slot or not back) then
    return {free[1], free}
  end
end
