-- Takes rows back from a session that holds them; how many did.
--
-- KEYS[5]  the rows of the session    KEYS[6..]  the rows, one each
-- ARGV[3]  the session                ARGV[4]    within how many ms of its placement a release is remembered
-- ARGV[5]  for how many ms            ARGV[6..]  the member and the epoch of each; an empty one is any

local session = ARGV[3]
local takes_ids = standing(session) == 'l'
local freed = 0
for n = 6, #KEYS do
  local member, epoch = ARGV[n * 2 - 6], ARGV[n * 2 - 5]
  local row = read(KEYS[n])
  if row and row.session == session and (epoch == '' or row.epoch == epoch) then
    if takes_ids and now - row.placed < tonumber(ARGV[4]) then
      redis.call('SET', KEYS[n], 'f ' .. row.epoch .. ' ' .. session, 'PX', ARGV[5])
    else
      redis.call('DEL', KEYS[n])
    end
    retire(row.epoch)
    redis.call('SREM', KEYS[5], member)
    count(member, -1)
    freed = freed + 1
  end
end
return freed
