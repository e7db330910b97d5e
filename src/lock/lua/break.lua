-- Takes KEY away from whoever holds it; the fence stays, and the queue moves on.
-- A request that arrives twice evicts nobody twice: the token is drawn for this one. Its first answer, which was
-- lost, is given again.
-- ARGV: digests of tokens, with a blank after each: one of them must still hold KEY, unless KEY is no lock;
--       1: even if KEY is no lock; who takes it away and why: each renewal by those that had it is answered
--       with that
-- returns {1 taken away, 0 free, -1 others hold it by now; then as inspect does}
-- What is known of those who were evicted, until somebody else has KEY: "kind permits total", and below it the
-- length of each item, a blank and the item.
local function remember(kind, permits, total, items)
  local text = format('%s %.0f %.0f\n', kind, permits or -1, total)
  for i, item in each(items) do
    if i <= 60 and #text < 10000 then
      text = text .. #item .. ' ' .. item
    end
  end
  try('hset', record, 'evicted', text)
end

local function recall()
  local text, items = peek('evicted'), {}
  text = type(text) == 'string' and text or ''
  local kind, permits, total, at = text:match('^(%l+) (%S+) (%d+)\n()')
  local length, from = text:match('^(%d+) ()', at)
  while length do
    items[#items + 1] = text:sub(from, from + length - 1)
    length, from = text:match('^(%d+) ()', from + length)
  end
  return {1, kind or 'none', number(permits) or -1, 0, number(total) or 0, 0, items, {}}
end

if peek('broken') == token then
  return recall()
end
local later = ARGV[4] ~= '1' and refuse_later()
if later then
  return later
end
drop_expired()
local kind, permits, fence = kind_of_key(), permits_of_key(), peek('fence')
local items, total = holders('', 1000)
if kind ~= 'none' and ARGV[4] ~= '1' and not is_lock(kind) then
  return refuse('NOBREAK', kind)
end
local found, asked = not total, set_of(ARGV[3])
if not total then
  items, total = {show_holder('', call('pttl', key), 1)}, 1
elseif #items < total then -- the rest of them
  for _, who in each(kind == sorted and call('zrange', key, 0, 9999) or call('hkeys', key)) do
    found = found or asked[redis.sha1hex(name_of(who))]
  end
end
for _, item in each(items) do
  found = found or asked[item:sub(1, 40)]
end

-- Those that the record knows.
local function described()
  local fields, known = try('hkeys', record), {}
  for _, field in each(fields.err and {} or fields) do
    known[#known + 1] = field:match('^holder:(.*)')
  end
  return known
end

local answer = total == 0 and 0 or found and 1 or -1
if answer == 1 then
  local evicted, held = described(), holds_of(kind)
  call('del', key)
  -- What is done stays done: nothing from here on may turn it into an error.
  pcall(forget_holders, '', nil, broken_by(ARGV[5]))
  if kind == reentrant then
    tell_redisson()
  end
  pcall(settle)
  try('hset', record, 'broken', token)
  remember(kind, permits, total, items)
  for i, who in each(evicted) do
    -- an owner of a reentrant lock may be the next one, too
    if i <= 1000 and holds(name_of(who)) == 0 then
      try('hset', record, 'break:' .. name_of(who), format('at=%.0f\n', now) .. ARGV[5])
      tell_to_renew(name_of(who), held)
    end
  end
  if type(fence) ~= 'table' then -- else another program's data is in the record's place
    outlive(0, '', try)
  end
end
while #items > 60 do
  table.remove(items)
end
return {answer, kind, permits or -1, type(fence) == 'string' and number(fence) or 0,
  answer == 1 and total or 0, 0, answer == 1 and items or {}, {}}
