-- Permits are slots: of the N of -P, one token has each, and the others wait. A request names a slot, from which
-- on the first free one is granted: servers that know the same grant the same. Votes for different slots
-- make no lock, so the next request may ask to be moved. Moves are counted, and no request that came before,
-- or comes twice, moves the token from there.

-- "permits", or for -P "permits/slot/moves". Nil if it is neither, as an earlier version's -P.
local function read_permits(text)
  local permits, slot, moves = (text or ''):match('^(%d+)/?(%d*)/?(%d*)$')
  if permits == '0' or moves ~= '' then
    return number(permits), number(slot), number(moves)
  end
end

-- From the wish's slot on, and bounded. The record may still name who had one before.
local function free_slots(wish)
  local free = {}
  for i = 0, wish.permits - 1 do
    local slot = (wish.slot - 1 + i) % wish.permits + 1
    local who = get('taken:' .. slot)
    if not who or slot_of(who) ~= slot then
      free[#free + 1] = slot
    end
    if free[20] or i > 40 and free[1] then
      break
    end
  end
  return free
end

-- The slot for a wish (nil: there is none), and those that are free. A token keeps the slot that it has,
-- but for the first request after a move: that moves it, if its slot is free. What is put back gets its
-- own slot, or none.
local function pick_slot(who, wish)
  local own, moves = slot_of(who)
  local free, back = free_slots(wish), (wish.kept or 0) > 0
  if free[1] ~= wish.slot and (own or back) or own and moves >= wish.moves then
    return (own == wish.slot or not back) and own or nil, free
  end
  return free[1], free
end
