-- Whether the owner has a hold that nobody keeps. Nothing is written.
-- returns {1} it has, {0} not
local found = 0
for _, hold in each(holds(token) > 0 and known_holds() or {}) do
  if hold:find('^%+') then
    found = 1
  end
end
return {found}
