-- Renews a session; the order for its client, the time, and the control messages that wait: for each its number, the member, and
-- what is left until its deadline in ms, or -1. Nothing, when the session does not take heartbeats.
--
-- KEYS[15]  the messages: a sorted set, member by number    KEYS[16]  their deadlines
-- ARGV[3]  the session    ARGV[4]  for how many ms          ARGV[5]  its update
-- ARGV[6]  its addresses, if they were found out anew, or empty
-- ARGV[7]  how many messages at most                        ARGV[8]  for how many ms a client is remembered
-- ARGV[9..]  the numbers of the messages that are confirmed

local session = ARGV[3]
local state, _, _, client = standing(session)
if state ~= 'l' then
  return false
end
enroll(session, int(now + ARGV[4]), 'l', int(now), client)
redis.call('HSET', KEYS[5], session, ARGV[5])
if ARGV[6] ~= '' then
  redis.call('HSET', KEYS[6], session, ARGV[6])
end
changed(session)
redis.call('ZADD', KEYS[11], int(now + ARGV[8]), client)

for n = 9, #ARGV do
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[15], ARGV[n], ARGV[n])) do
    redis.call('ZREM', KEYS[15], member)
    redis.call('HDEL', KEYS[16], member)
  end
end
local waiting = redis.call('ZRANGE', KEYS[15], 0, ARGV[7] - 1, 'WITHSCORES')
local messages = {}
for n = 1, #waiting, 2 do
  local deadline = redis.call('HGET', KEYS[16], waiting[n])
  messages[#messages + 1] = int(waiting[n + 1])
  messages[#messages + 1] = waiting[n]
  messages[#messages + 1] = deadline == '-' and -1 or math.max(0, (deadline or now) - now)
end
if #waiting > 0 then
  -- They go with their session, however that ends.
  redis.call('PEXPIRE', KEYS[15], ARGV[4] * 4)
  redis.call('PEXPIRE', KEYS[16], ARGV[4] * 4)
end
return { drain(client), now, messages }
