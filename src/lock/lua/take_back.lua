-- In place of release.lua: takes an attempt back whose answer is not known yet, so it is as short as it
-- can be (script.h). KEY is handed on by telling waiters to ask, the first in each line and the last ones,
-- which are the most likely to be there. Whichever request comes first does the rest.
-- ARGV: hold
-- returns as release.lua does
local hold, kind = ARGV[3], kind_of_key()
local held = holds(token, kind)
if held > 0 then
  remove(token, hold, kind)
  if kind == reentrant then
    tell_redisson()
  end
end
-- What is done stays done: nothing from here on may turn it into an error.
for _, line in each({queue, waits}) do
  pcall(leave, line, place_of(token, hold))
  for _, range in each({{0, 0}, {-5, -1}}) do
    local places = try('zrange', line, unpack(range))
    for _, place in each(places) do
      tell(place, 0, 0, 0, '-')
    end
  end
end
return {held > 0 and 1 or kind == 'none' and -1 or 0}
