-- What stands before a register: the time, and the latest session of the client, if it lives.
--
-- KEYS[11]  the client

local earlier = redis.call('HGET', KEYS[11], 'session')
if earlier and not standing(earlier) then
  earlier = false
end
return { now, earlier }
