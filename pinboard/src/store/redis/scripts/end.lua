-- Ends a session; whether it lived.
--
-- ARGV[3]  the session    ARGV[4]  'now', or 'later' to let its lease run out

local state, expires, client = standing(ARGV[3])
if not state then
  return 0
end
if ARGV[4] == 'now' then
  expires = int(now)
end
enroll(ARGV[3], expires, 'e', client)
return 1
