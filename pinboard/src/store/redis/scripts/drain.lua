-- Sets or lifts the order for a client that is remembered; whether it is.
--
-- KEYS[11]  the client
-- ARGV[3]  the client    ARGV[4]  'c', the ms until the deadline, or empty to lift
-- ARGV[5]  for how many ms an order is remembered after its deadline

local session, forgotten = unpack(redis.call('HMGET', KEYS[11], 'session', 'forgotten'))
if not session then
  return 0
end
if ARGV[4] == '' then
  redis.call('HDEL', KEYS[9], ARGV[3])
  redis.call('PEXPIREAT', KEYS[11], forgotten)
elseif ARGV[4] == 'c' then
  redis.call('HSET', KEYS[9], ARGV[3], 'c')
  redis.call('PERSIST', KEYS[11])
else
  local deadline = now + ARGV[4]
  redis.call('HSET', KEYS[9], ARGV[3], int(deadline))
  redis.call('PEXPIREAT', KEYS[11], int(math.max(forgotten, deadline + ARGV[5])))
end
if standing(session) then
  changed(session)
end
return 1
