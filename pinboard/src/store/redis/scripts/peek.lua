-- What stands before a register: the time, and the latest session of the client, if it lives.
--
-- ARGV[3]  the client

local earlier = redis.call('HGET', KEYS[12], ARGV[3])
if earlier and not standing(earlier) then
  earlier = false
end
return { now, earlier }
