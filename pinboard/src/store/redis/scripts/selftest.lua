-- Sets a value if it is what is expected; whether it was.
--
-- KEYS[2]  the value
-- ARGV[3]  what is expected    ARGV[4]  what it becomes    ARGV[5]  for how many ms

if redis.call('GET', KEYS[2]) ~= ARGV[3] then
  return 0
end
redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[5])
return 1
