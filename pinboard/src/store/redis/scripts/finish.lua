-- Ends a session; whether it lived.
--
-- KEYS[15]  its messages    KEYS[16]  their deadlines
-- ARGV[3]  the session      ARGV[4]  'now', or 'later' to let its lease run out

local state, expires, beat, client = standing(ARGV[3])
if not state then
  return 0
end
if ARGV[4] == 'now' then
  enroll(ARGV[3], int(now), 'x', beat, client)
  redis.call('DEL', KEYS[15], KEYS[16])
else
  enroll(ARGV[3], expires, 'e', beat, client)
end
changed(ARGV[3])
return 1
