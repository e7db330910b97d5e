-- Tells how the last runs of KEY ended (runs.lua). Nothing is written.
-- returns {1, this server's clock (ms), {run ...}}, the oldest first
local runs = redis.pcall('lrange', record .. ':runs', -31, -1)
for i, run in each(runs) do
  runs[i] = run:sub(1, 900)
end
return runs.err and runs or {1, now, runs}
