-- Lets a session live, and retires an earlier one of the same worker.
--
-- ARGV[3]  the session    ARGV[4]  its client    ARGV[5]  for how many ms    ARGV[6]  the earlier session, or empty

enroll(ARGV[3], int(now + ARGV[5]), 'l', ARGV[4])
if ARGV[6] ~= '' then
  local state, known = standing(ARGV[6])
  if state == 'l' then
    local expires, client = particulars(known)
    enroll(ARGV[6], expires, 'e', client)
  end
end
return 1
