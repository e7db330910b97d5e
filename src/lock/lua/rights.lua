-- Names the rights of the other scripts that this user lacks, as ACL SETUSER writes them, and the commands that
-- the server lacks, with a ! in front: nobody can be granted these. Nothing is written: Redis 7 is asked, and runs nothing. An older server can only be tried: each command finds no
-- key, or cannot make sense of the words that follow the name.
-- ARGV: database, a name that no key has ('': none of these has one), the names of KEY and of what is
--       beside it, 1 if KEY is to be taken, not only waited for
-- returns {1, {what a lock needs ...}, {what waiters, status and list can do without ...}}
local database, dead, key, record = unpack(ARGV)
local sharded = clustered and redis.REDIS_VERSION_NUM
local lacks = {}
dead = dead ~= '' and dead or nil

-- '!' if there is no such command, '+' if the user may not run it, '&' or '~' if not on this channel or key
local function refusal(command, spare, name, tried)
  local may = redis.acl_check_cmd
  local words = {not may and tried or name}
  for i = 1, tonumber(spare) or 0 do
    words[#words + 1] = ('xyz'):sub(i, i)
  end
  if may then
    local known, granted = pcall(may, command, unpack(words))
    if known and granted then
      return
    elseif not known and not granted:find('Invalid command') then
      error(granted, 0) -- it was not asked for as it should be: it need not be missing
    end
  end
  -- only its refusal tells which of the two is missing, and what is refused does nothing
  local reply = redis.pcall(command, unpack(words))
  local why = type(reply) == 'table' and reply.err or ''
  return (why:find('Unknown Redis command') or why:find('Unknown command called')) and '!' -- or Valkey
    or why:find('run this command') and '+'
    or (why:find('The user executing the script') or why:find('No permissions to access'))
      and (command:find('publish') and '&' or '~')
    or may and '+'
end

-- What is beside KEY has the record's name and something more.
local function lack(sign, name)
  if sign == '~' and name:sub(1, #record) == record then
    name = record .. '*'
  end
  local rule = (sign .. name):gsub(':doctor:.*', '*')
  if not lacks[rule] then
    lacks[rule] = true
    lacks[#lacks + 1] = rule
  end
end

-- Each of the commands, on a key or channel of this name; tried: or of that one. The digit after a
-- command: how many words more it takes.
local function need(commands, name, tried)
  for command, spare in commands:gmatch('(%l+)(%d?)') do
    local sign = refusal(command, spare, name, tried)
    if sign then
      lack(sign, (sign == '+' or sign == '!') and command or name)
    end
  end
end

if database ~= '0' then
  need('select', database)
end
need('time')
for i = 3, 7 do
  need('exists pexpire1', ARGV[i], dead)
end
need('type pttl hkeys hlen zcard hget1 hdel1 hexists1 zrem1 zscore1 zrank1 getrange2 hset3 zadd3 zrange3'
  .. ' zrangebyscore3', key, dead)
if ARGV[8] == '1' then
  need('del hincrby2 set3', key, dead)
end
-- a command that is refused says nothing of its key, but this user may run EVAL
for i = 3, redis.acl_check_cmd and 7 or 0 do
  if not redis.acl_check_cmd('eval', '', '1', ARGV[i]) then
    lack('~', ARGV[i])
  end
end
local needed = lacks
lacks = {}
need(sharded and 'spublish1' or 'publish1', record .. ':')
need(sharded and 'publish1 spublish1' or 'publish1', 'redisson_lock__channel:' .. record)
need('pubsub', sharded and 'shardnumsub' or 'numsub')
-- with all of its words: without a number of keys the server would read what it was not given
local known, granted = pcall(redis.acl_check_cmd or tostring, 'evalsha', '', '0')
if not (known and granted) then
  lacks[#lacks + 1] = (known and '+' or '!') .. 'evalsha'
end
need('scan', '0')
need('dbsize')
need('info', 'replication')
need('hgetall zcount2', key, dead)
need('lrange2 ltrim2', record .. ':runs', dead)
if redis.acl_check_cmd then -- any RPUSH that makes sense to an older server would write
  need('rpush1', record .. ':runs')
end
return {1, needed, lacks}
