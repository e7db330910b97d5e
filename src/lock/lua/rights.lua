-- Names what this user may not do, of what the other scripts do, as ACL SETUSER has it.
-- Nothing is written: each command finds no key, or cannot make sense of the rest.
-- ARGV: database, token, then the names of KEY and of what is beside it, as no lock has them
-- returns {1, {what a lock needs ...}, {what waiters, status and list can do without ...}}
local lacks = {{}, {}}
local sharded = clustered and redis.REDIS_VERSION_NUM

local function try(list, commands, ...)
  for command in commands:gmatch('%a+') do
    local reply = redis.pcall(command, ...)
    local why = type(reply) == 'table' and reply.err or ''
    local rule = '+' .. command
    if why:find('channel') or why:find('key') and not why:find('to run') then
      rule = (command:find('publish') and '&' or '~') .. tostring((...)):gsub(':doctor:.*', '*')
    end
    if not lacks[rule] and (why:find('NOPERM') or why:find('executing the script')
        or why:find('Unknown Redis')) then
      lacks[rule] = true
      table.insert(lacks[list], rule)
    end
  end
end

local database, token, key, record = unpack(ARGV)
if database ~= '0' then
  try(1, 'select', database)
end
try(1, 'time')
for i = 3, 7 do
  try(1, 'exists', ARGV[i])
  try(1, 'pexpire', ARGV[i], 'x')
end
try(1, 'type pttl del hkeys hlen zcard', key)
try(1, 'hget hdel hexists zrem zscore zrank', key, 'x')
try(1, 'getrange hincrby', key, 'x', 'y')
try(1, 'set hset zadd zrange zrangebyscore', key, 'x', 'y', 'z')
try(2, sharded and 'spublish' or 'publish', record .. ':' .. token, '')
try(2, 'publish', 'redisson_lock__channel:' .. record, '')
try(2, 'pubsub', sharded and 'shardnumsub' or 'numsub')
try(2, 'scan', 0, 'count', 1)
try(2, 'dbsize')
try(2, 'info', 'replication')
try(2, 'hgetall', key)
try(2, 'zcount', key, 'x', 'y')
return {1, lacks[1], lacks[2]}
