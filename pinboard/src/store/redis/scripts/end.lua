-- Ends a session; whether it lived.
--
-- ARGV[3]  the session    ARGV[4]  'now', or 'later' to let its lease run out

local state, known = standing(ARGV[3])
if not state then
  return 0
end
local expires, client = particulars(known)
if ARGV[4] == 'now' then
  expires = int(now)
end
enroll(ARGV[3], expires, 'e', client)
return 1
