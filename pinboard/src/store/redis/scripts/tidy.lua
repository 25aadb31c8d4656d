-- Forgets sessions that have long been dead, clients that have long been away, and orders that are long over; whether there
-- may be more.
--
-- ARGV[3]  for how many ms dead sessions are remembered    ARGV[4]  how many of each at most
-- ARGV[5]  for how many ms a client is remembered, and an order after its deadline

note_expired()
local limit = tonumber(ARGV[4])
local _, _, trimmed = versions()
local dead = redis.call('ZRANGEBYSCORE', KEYS[14], '-inf', int(now - ARGV[3]), 'LIMIT', 0, limit)
for _, session in ipairs(dead) do
  trimmed = math.max(trimmed, tonumber(redis.call('ZSCORE', KEYS[7], session) or '0'))
  redis.call('ZREM', KEYS[7], session)
  redis.call('ZREM', KEYS[14], session)
  for key = 3, 6 do
    redis.call('HDEL', KEYS[key], session)
  end
end
if #dead > 0 then
  redis.call('HSET', KEYS[2], 'trimmed', int(trimmed))
end

local away = redis.call('ZRANGEBYSCORE', KEYS[11], '-inf', int(now), 'LIMIT', 0, limit)
for _, client in ipairs(away) do
  if stands(drain(client), ARGV[5]) then
    -- Looked at again after as long again.
    redis.call('ZADD', KEYS[11], int(now + ARGV[5]), client)
  else
    redis.call('ZREM', KEYS[11], client)
    for _, key in ipairs({ 9, 12, 13 }) do
      redis.call('HDEL', KEYS[key], client)
    end
  end
end
return (#dead == limit or #away == limit) and 1 or 0
