-- Tells who holds each of many: the first holder, and how many there are.
-- KEYS: KEY and its record, for each
-- returns {1, {one ...}}; one is "type permits holders digest left held count" and the holder's
--         description below; '' if it is not held; "later N" if its record is of protocol N
local answer = {}
for i = 1, #KEYS, 2 do
  key, record = KEYS[i], KEYS[i + 1]
  local later, items, total = later_protocol(), holders(0, 1)
  local first = (total or 0) > 0 and items[1]
  answer[#answer + 1] = later and 'later ' .. later:sub(1, 15) or first
    and format('%s %.0f %.0f ', kind_of_key(), permits_of_key() or -1, total) .. first or ''
end
return {1, answer}
