-- Those who hold KEY, and have waited for it, may still listen (listening.h): a renewal will tell them more.

-- Each hold of a hash has a channel of its own. kind: KEY's.
local function holds_of(kind)
  return kind == reentrant and known_holds() or {'-'}
end

local function tell_to_renew(who, holds)
  for i = 1, min(#holds, 100) do
    tell(place_of(who, holds[i]), 0, 0, 0, '-')
  end
end
