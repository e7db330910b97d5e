-- Tells Redisson's waiters that a hash was given back. By its settings, and the server's version, Redisson
-- listens in a cluster to a hash slot, or everywhere.
local function tell_redisson()
  local name = 'redisson_lock__channel:' .. (key:find('{', 1, true) and key or '{' .. key .. '}')
  try('publish', name, '0')
  if sharded then
    try('spublish', name, '0')
  end
end
