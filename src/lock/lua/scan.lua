-- Looks for records.
-- ARGV: cursor, pattern
-- returns {1, next cursor, keys looked at, keys there are (-1: unknown), {record ...}}
local cursor, pattern = ARGV[3], ARGV[4]
local looked, names = 0, {}
repeat
  local page = call('scan', cursor, 'match', pattern, 'count', 250)
  cursor = page[1]
  looked = looked + 250
  for _, name in each(page[2]) do
    if #name < 4200 then
      names[#names + 1] = name
    end
  end
until cursor == '0' or looked >= 10000 or #names >= 250
local keys = try('dbsize')
return {1, cursor, looked, type(keys) == 'number' and keys or -1, names}
