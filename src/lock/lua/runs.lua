-- What a run of KEY leaves behind: how it ended, in a list beside the record. An entry is
-- "token held fence waited how" (of the token 16 characters), and the description of its holder below,
-- whose first line is "since=TIME HOLD"; a dot after TIME says that the run was noted, and a ~ that nobody has answered
-- the grant yet. The list is not among KEYS: a user whose rights name each key has no history, but locks.

-- ended: the first line, as its holder knows it; or "waited how" (ms, or -) alone. ends: when a run ended whose
-- holder never came back, at the latest; if it had not answered, there was none. Returns the description if the run
-- was noted now: then the caller removes it, or puts the dot in. told: what to note instead of it. Never fails.
local function note_run(who, ended, ends, told)
  local text, name = peek('holder:' .. who), record .. ':runs'
  local mark = type(text) == 'string' and text:match('^since=%d+([^.%d])')
  if not mark or ends and mark == '~' then
    return
  end
  if ended:byte(-1) ~= 10 then
    ended = format('%s %.0f %s %s\n', who:sub(1, 16),
      max(min(ends or now, number(peek('until')) or now) - text:match('%d+'), 0),
      peek('fence:' .. who) or peek('fence') or 0, ended)
  end
  local count = try('rpush', name, ended .. (told or text))
  -- the last twenty stay, and in front of them, of those that succeeded, the last to begin and the last to end
  if (number(count) or 0) > 30 then
    local kept, last = {}
    for _, run in each(try('lrange', name, -99, -21)) do
      local began = number(run:match(' exit 0\nsince=(%d+)'))
      if began and began - now < 3600000 then -- or else it was noted by a wrong clock
        if began > (last or -1) then
          kept, last = {run}, began
        else
          kept[2] = run
        end
      end
    end
    if try('ltrim', name, -20, -1).ok and kept[1] then
      for _, run in each(try('lrange', name, 0, -1)) do
        kept[#kept + 1] = run
      end
      try('rpush', name, unpack(kept))
      try('ltrim', name, -#kept, -1)
    end
  end
  if count == 1 then -- after that it is prolonged with the record (outlive)
    local lasts = outlives(text)
    try('pexpire', name, lasts > 0 and max(lasts, time_left(record)) or 0)
  end
  return text
end

-- The last run of KEY that succeeded, if it began less than `once` ago (--once-in: a line of the
-- description), and how long ago (ms). An error, if the history cannot be read.
local function find_success(description)
  if not description:find('\nonce=', 1, true) then
    return
  end
  local once, found, age = number(description:match('\nonce=(%d+)\n')) or 0
  local all = try('lrange', record .. ':runs', -99, -1)
  for _, run in each(all) do
    local began = number(run:match('^%S+ %d+ %d+ %S+ exit 0\nsince=(%d+)~? '))
    if began and now - began < (age or once) and began - now < 3600000 then -- as above
      found, age = run, now - began
    end
  end
  return all.err and all or found, age
end

-- How a run has ended whose holder never came back.
local unknown = '- unknown'

-- Holders of a sorted set end one by one, by this server's clock. Returns KEY's kind after that.
local function drop_expired()
  local kind = kind_of_key()
  if kind == sorted and permits_of_key() then
    for _, who in each(call('zrangebyscore', key, '-inf', now)) do
      note_run(who, unknown, call('zscore', key, who))
      call('zrem', key, who)
      forget(who)
    end
    kind = kind_of_key()
    if kind == 'none' then -- it was not lost, however long others would have had it
      try('hdel', record, 'until', 'permits')
    end
  end
  return kind
end
