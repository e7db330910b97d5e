-- -P N makes N slots, and each is one token's at a time. A request names a slot, and the first free one from there
-- on is granted: servers that have the same holders grant the same slot. Votes for different slots make no lock,
-- so a later request may ask for another slot, a move. Moves are counted: a request with an earlier number, or
-- with the same one again, moves nothing. Once the lock is held, a token gets another slot only if it is put back.

-- "permits", or for -P "permits/slot/moves". Nil if it is neither: an earlier version's -P names no slot.
local function read_permits(text)
  local permits, slot, moves = (text or ''):match('^(%d+)/?(%d*)/?(%d*)$')
  if permits == '0' or moves ~= '' then
    return number(permits), number(slot), number(moves)
  end
end

-- Who has which slot; looked for once, as a hundred waiters may be looked at.
local taken
local function taken_slots()
  if not taken then
    taken = {}
    for _, who in each(call('zrange', key, 0, -1)) do
      local slot = get('slot:' .. who)
      if slot then
        taken[slot % 2^20] = who
      end
    end
  end
  return taken
end

-- A token has left one slot, or has another. nil: none.
local function note_slots(left, entered, who)
  if taken then
    taken[left or 0] = nil
    taken[entered or 0] = who
  end
end

-- The free slots, from the wish's on: up to 20; and up to `most` of the others, {slot, token} each.
local function survey_slots(wish, most)
  local has, free, others = taken_slots(), {}, {}
  for i = wish.slot, wish.slot + wish.permits - 1 do
    local slot = (i - 1) % wish.permits + 1
    if has[slot] and #others < most then
      others[#others + 1] = {slot, has[slot]}
    elseif not has[slot] and #free < 20 then
      free[#free + 1] = slot
    elseif #free == 20 and #others == most then
      break
    end
  end
  return free, others
end

-- {the slot for a wish, free slots}; nil if there is none for it. A token keeps the slot that it has, but at the
-- first request with a larger number of moves it gets that request's slot, if it is free. A token that is put back
-- gets the slot that the request names, or none.
local function pick_slot(who, wish)
  local own, moves = slot_of(who)
  local free, back = survey_slots(wish, 0), wish.kept > 0
  if own == wish.slot or own and not back and (moves >= wish.moves or free[1] ~= wish.slot) then
    return {own, free}
  elseif free[1] and (free[1] == wish.slot or not back) then
    return {free[1], free}
  end
end
