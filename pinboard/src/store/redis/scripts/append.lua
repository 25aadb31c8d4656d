-- Appends to the ring of events.
--
-- KEYS[2]  the ring: a stream, whose ids are the numbers    KEYS[3]  the latest number, and its generation
-- ARGV[3]  how many the ring keeps                          ARGV[4..]  the events

local last, born = unpack(redis.call('HMGET', KEYS[3], 'last', 'generation'))
last = tonumber(last) or 0
if born ~= generation then
  -- Above any number that an earlier life has given, so that nobody who follows the ring misses what comes.
  last = math.max(last, now)
end
for n = 4, #ARGV do
  last = last + 1
  redis.call('XADD', KEYS[2], 'MAXLEN', '=', ARGV[3], int(last) .. '-0', 'event', ARGV[n])
end
redis.call('HSET', KEYS[3], 'last', int(last), 'generation', generation)
return int(last)
