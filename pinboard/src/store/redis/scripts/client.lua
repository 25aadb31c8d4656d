-- The record of a client, if it is remembered.
--
-- ARGV[3]  the client    ARGV[4]  for how many ms a client is remembered, and an order after its deadline

return remembers(ARGV[3], ARGV[4]) and redis.call('HGET', KEYS[13], ARGV[3])
