-- In place of settle.lua: hands KEY on by telling waiters to ask, the first in each line and the last ones,
-- which are the most likely to be there. Whichever request comes first does the rest.
local function settle()
  for _, line in ipairs({queue, waits}) do
    for _, range in ipairs({{0, 0}, {-5, -1}}) do
      for _, place in ipairs(call('zrange', line, unpack(range))) do
        tell(place, 0, 0, 0, '-')
      end
    end
  end
end
