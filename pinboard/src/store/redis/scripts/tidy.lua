-- Forgets sessions that have long been dead, and orders that are long over; whether there may be more.
--
-- ARGV[3]  for how many ms dead sessions are remembered    ARGV[4]  how many at most
-- ARGV[5]  for how many ms an order is remembered after its deadline

local _, _, trimmed = versions()
local dead = redis.call('ZRANGEBYSCORE', KEYS[8], '-inf', int(now - ARGV[3]), 'LIMIT', 0, ARGV[4])
for _, session in ipairs(dead) do
  trimmed = math.max(trimmed, tonumber(redis.call('ZSCORE', KEYS[7], session) or '0'))
  redis.call('ZREM', KEYS[7], session)
  redis.call('ZREM', KEYS[8], session)
  for key = 3, 6 do
    redis.call('HDEL', KEYS[key], session)
  end
end
if #dead > 0 then
  redis.call('HSET', KEYS[2], 'trimmed', int(trimmed))
end

local drains = redis.call('HGETALL', KEYS[9])
for n = 1, #drains, 2 do
  if drains[n + 1] ~= 'c' and drains[n + 1] + ARGV[5] < now then
    redis.call('HDEL', KEYS[9], drains[n])
  end
end
return #dead == tonumber(ARGV[4]) and 1 or 0
