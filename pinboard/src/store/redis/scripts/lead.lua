-- Takes, renews or gives up a lease of the fleet; whether the node has it, or had it.
--
-- KEYS[2]  the lease
-- ARGV[3]  the node    ARGV[4]  for how many ms; empty to give it up

local holder = redis.call('GET', KEYS[2])
if ARGV[4] == '' then
  return holder == ARGV[3] and redis.call('DEL', KEYS[2]) or 0
end
if holder and holder ~= ARGV[3] then
  return 0
end
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
return 1
