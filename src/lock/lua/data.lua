-- Whether KEY is a lock of ours, or the data of another program that happens to have its name.

-- A lock ends by itself, or the record knows who holds it. Another program's lock may be a string
-- that never ends: nobody may enter it, and nobody may break it unasked.
local function is_lock(kind)
  if kind ~= exclusive and kind ~= reentrant and kind ~= sorted then
    return false
  elseif call('pttl', key) >= 0 then
    return true
  end
  local first = kind == exclusive and call('getrange', key, '0', '256')
    or kind == reentrant and call('hlen', key) == 1 and call('hkeys', key)[1]
    or kind == sorted and call('zrange', key, 0, 0)[1]
  return first and type(peek('holder:' .. first)) == 'string'
end

-- A later protocol writes `v` and its number in front of the fence. All that know only earlier ones
-- then find no fence, and take nothing.
local function later_protocol()
  local fence = peek('fence')
  return type(fence) == 'string' and fence:match('^v(%d+)')
end

local function refuse_later()
  local n = later_protocol()
  return n and fail('PROTOCOL protocol ' .. n)
end

local function refuse(why, kind)
  local name = kind == sorted and 'sorted set' or kind:sub(1, 20)
  local lasts = kind == exclusive or kind == reentrant or kind == sorted
  return fail(format('%s KEY is a %s%s, which is not a lock', why, name,
    lasts and ' without an expiry' or ''))
end
