-- In front of an acquire with --replicas: a server that has fewer says so at once, and takes nothing.
-- If KEY is held, who has it says more.
-- Defined in front of it: `replicas`.
-- returns (if it does at all) the error REPLICAS
if kind_of_key() == 'none' then
  local info, up = try('info', 'replication'), 0
  for _ in (type(info) == 'string' and info or ''):gmatch('\nslave%d+:[^\n]*state=online') do
    up = up + 1
  end
  if type(info) == 'string' and up < replicas then
    return redis.error_reply(format('REPLICAS only %d of %d replicas are online', up, replicas))
  end
end
