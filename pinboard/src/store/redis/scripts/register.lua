-- Makes a session known; the earlier session of its client, if that lives, and the order for the client.
--
-- KEYS[11]  the client
-- ARGV[3]  the session        ARGV[4]  the client         ARGV[5]  when the session expires
-- ARGV[6]  its record         ARGV[7]  its update         ARGV[8]  the record of the client
-- ARGV[9]  for how many ms a client is remembered         ARGV[10..]  what it serves, '<env>:<ns>' each

local session, client = ARGV[3], ARGV[4]
local earlier = redis.call('HGET', KEYS[11], 'session')
if earlier then
  local state, expires, beat, whose = standing(earlier)
  if earlier == session or not state then
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

local forgotten = now + ARGV[9]
redis.call('HSET', KEYS[11], 'session', session, 'record', ARGV[8], 'forgotten', int(forgotten))
local order = drain(client)
if order == 'c' then
  redis.call('PERSIST', KEYS[11])
else
  local ordered = order and order + ARGV[9] or 0
  redis.call('PEXPIREAT', KEYS[11], int(math.max(forgotten, ordered)))
end

for n = 10, #ARGV do
  if redis.call('SADD', KEYS[10], ARGV[n]) == 1 then
    redis.call('HSET', KEYS[2], 'namespaces', int(version))
  end
end
return { earlier, order }
