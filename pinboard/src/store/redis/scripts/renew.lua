-- Renews a session; whether it lives and takes heartbeats.
--
-- ARGV[3]  the session    ARGV[4]  for how many ms

local state, known = standing(ARGV[3])
if state ~= 'l' then
  return 0
end
local _, client = particulars(known)
enroll(ARGV[3], int(now + ARGV[4]), 'l', client)
return 1
