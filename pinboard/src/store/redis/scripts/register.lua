-- Makes a session known; the earlier session of its client, if that lives, and the order for the client.
--
-- ARGV[3]  the session        ARGV[4]  the client         ARGV[5]  when the session expires
-- ARGV[6]  its record         ARGV[7]  its update         ARGV[8]  the record of the client
-- ARGV[9]  for how many ms a client is remembered         ARGV[10..]  what it serves, '<env>:<ns>' each

local session, client = ARGV[3], ARGV[4]
-- A register that is repeated after its session has ended comes too late to change anything.
local state, known = standing(session)
if known and state ~= 'l' then
  return { false, drain(client) }
end
local earlier = redis.call('HGET', KEYS[12], client)
if earlier then
  local still, expires, beat, whose = standing(earlier)
  if earlier == session or not still then
    earlier = false
  else
    enroll(earlier, expires, 'e', beat, whose)
    changed(earlier)
  end
end

enroll(session, ARGV[5], 'l', int(now), client)
redis.call('HSET', KEYS[4], session, ARGV[6])
redis.call('HSET', KEYS[5], session, ARGV[7])
redis.call('HDEL', KEYS[6], session)
local version = changed(session)

redis.call('ZADD', KEYS[11], int(now + ARGV[9]), client)
redis.call('HSET', KEYS[12], client, session)
redis.call('HSET', KEYS[13], client, ARGV[8])

for n = 10, #ARGV do
  if redis.call('SADD', KEYS[10], ARGV[n]) == 1 then
    redis.call('HSET', KEYS[2], 'namespaces', int(version))
  end
end
return { earlier, drain(client) }
