-- Queues control messages for a session, in place of earlier ones for the same ids; whether it lives.
--
-- KEYS[15]  the messages: a sorted set, member by number    KEYS[16]  their deadlines
-- ARGV[3]  the session    ARGV[4]  a lease TTL in ms
-- ARGV[5..]  the member of each, and the ms until its deadline, or '-'

if not standing(ARGV[3]) then
  return 0
end
-- Numbered from the versions, so that no number comes twice in a session, nor in two lives.
local number = versions()
for n = 5, #ARGV, 2 do
  local member, left = ARGV[n], ARGV[n + 1]
  number = number + 1
  redis.call('ZADD', KEYS[15], int(number), member)
  redis.call('HSET', KEYS[16], member, left == '-' and '-' or int(now + left))
end
redis.call('HSET', KEYS[2], 'last', int(number))
redis.call('PEXPIRE', KEYS[15], ARGV[4] * 4)
redis.call('PEXPIRE', KEYS[16], ARGV[4] * 4)
return 1
