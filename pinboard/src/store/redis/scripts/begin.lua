-- Lets a session live, and retires an earlier one of the same worker.
--
-- ARGV[3]  the session    ARGV[4]  its client    ARGV[5]  for how many ms    ARGV[6]  the earlier session, or empty

-- A register that is repeated after its session has ended comes too late to change anything.
local state, known = standing(ARGV[3])
if known and state ~= 'l' then
  return 0
end
enroll(ARGV[3], int(now + ARGV[5]), 'l', ARGV[4])
if ARGV[6] ~= '' then
  local earlier, of_earlier = standing(ARGV[6])
  if earlier == 'l' then
    local expires, client = particulars(of_earlier)
    enroll(ARGV[6], expires, 'e', client)
  end
end
return 1
