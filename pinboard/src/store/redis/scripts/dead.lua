-- Some dead sessions whose rows have to be swept. What has been swept long enough ago is forgotten.
--
-- ARGV[3]  for how many ms dead sessions are remembered    ARGV[4]  how many to name

local dead, limit = {}, tonumber(ARGV[4])
local sessions = redis.call('HGETALL', KEYS[2])
for n = 1, #sessions, 2 do
  local session = sessions[n]
  local born, expires, state = string.match(sessions[n + 1], '^(%d+) (%d+) (%a) ')
  local lives = born == generation and tonumber(expires) > now
  if not lives then
    if state == 's' then
      if now - expires > tonumber(ARGV[3]) then
        redis.call('HDEL', KEYS[2], session)
      end
    -- One of an earlier life may be alive, until it has had a lease TTL to say so.
    elseif #dead < limit and (born == generation or now >= quarantined_until) then
      dead[#dead + 1] = session
    end
  end
end
return dead
