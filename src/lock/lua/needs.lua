-- In front of an acquire: refuses a user who could take KEY, but not keep it, give it back or hand it
-- on. What each acquire runs before it writes KEY needs no look. Redis 7 is asked, and runs nothing. An
-- older server can only be tried, on a key that does not exist, or with arguments that make no sense. There
-- EVAL has looked at the keys, which are the same for all commands: only the command may be refused, and
-- EVAL itself cannot be tried.
local kind, key, record, queue, may, x, y = ARGV[7], KEYS[1], KEYS[2], KEYS[3], redis.acl_check_cmd, 'x', 'y'
if not may then
  key = record .. ':' .. ARGV[2]
  record, queue = key, key
  function may(...)
    local reply = redis.pcall(...)
    local why = type(reply) == 'table' and reply.err or ''
    if why:find('OOM command') then
      error(why, 0) -- after a command that may write, the server would let others grow
    end
    return not (why:find('this command') or why:find('Unknown Redis'))
  end
end
if not ((kind ~= 'string' or may('set', key, x, y) and may('getrange', key, x, y) and may('del', key))
    and (kind ~= 'hash' or may('hincrby', key, x, y) and may('hdel', key, x))
    and (kind ~= 'zset' or may('zadd', key, x, y) and may('zscore', key, x) and may('zrem', key, x)
      and may('zrange', key, x, y))
    and may('eval', '', '0') -- this may be EVALSHA
    and (kind == 'none' or may('hdel', record, x) and may('zrem', queue, x) and may('zrange', queue, x, y)
      and may('pttl', key) and may('pexpire', record, '1'))) then
  return redis.error_reply('NOPERM could take KEY, but not keep it')
end
