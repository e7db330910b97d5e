-- Tells who holds each of many: the first holder, and how many there are.
-- KEYS: KEY and its record, for each
-- returns {1, {one ...}}; one is "type permits holders mark left held count" and the holder's
--         description below; '' where it is not held
local answer = {}
for i = 1, #KEYS, 2 do
  key, record = KEYS[i], KEYS[i + 1]
  local items, total = holders(0, 1)
  local first = (total or 0) > 0 and items[1]
  answer[#answer + 1] = first
    and format('%s %.0f %.0f ', kind_of_key(), permits_of_key() or -1, total) .. first or ''
end
return {1, answer}
