-- Removes rows of a dead session.
--
-- KEYS[5]  the rows of the session    KEYS[6..]  the rows, one each
-- ARGV[3]  the session                ARGV[4..]  the member of each row

local session = ARGV[3]
local state, known = standing(session)
if state then
  return 0
end
for n = 6, #KEYS do
  local row, member = read(KEYS[n]), ARGV[n - 2]
  local removed = not row or row.session ~= session
  if not removed and not unheard(row) then
    redis.call('DEL', KEYS[n])
    retire(row.epoch)
    count(member, -1)
    removed = true
  end
  if removed then
    redis.call('SREM', KEYS[5], member)
  end
end
if known and redis.call('EXISTS', KEYS[5]) == 0 then
  local expires, client = particulars(known)
  enroll(session, int(math.min(expires, now)), 's', client)
end
return 1
