-- Sets or lifts the order for a client that is remembered; whether it is.
--
-- ARGV[3]  the client    ARGV[4]  'c', the ms until the deadline, or empty to lift
-- ARGV[5]  for how many ms a client is remembered, and an order after its deadline

local client, order = ARGV[3], ARGV[4]
if not remembers(client, ARGV[5]) then
  return 0
end
if order == '' then
  redis.call('HDEL', KEYS[9], client)
else
  redis.call('HSET', KEYS[9], client, order == 'c' and order or int(now + order))
end
local session = redis.call('HGET', KEYS[12], client)
if session and standing(session) then
  changed(session)
end
return 1
