-- Whether a cluster's node misses itself among the shards, and would abort at SPUBLISH. So it is when a
-- version that names shards has read the nodes.conf of one that did not. Nothing is written.
-- returns {1, 1 if it does; 0 if not, or if the user may not ask}
local id, shards = redis.pcall('cluster', 'myid'), redis.pcall('cluster', 'shards')
local function has(items)
  for _, item in ipairs(items) do
    if item == id or type(item) == 'table' and has(item) then
      return true
    end
  end
end
local known = type(id) == 'string' and type(shards) == 'table' and not shards.err
return {1, known and not has(shards) and 1 or 0}
