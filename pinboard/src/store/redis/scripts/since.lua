-- What has happened to sessions since a version: the version that this brings a reader to, whether it is everything,
-- the sessions that live (each with its state, what is left of its lease in ms, its last heartbeat, its record, its
-- update, its addresses, and the order for its client), those that have ended, and the namespaces, when they have grown.
--
-- ARGV[3]  the version

note_expired()
local since = tonumber(ARGV[3])
local last, base, trimmed, namespaces = versions()
local complete = since < base or since < trimmed or since > last
local sessions, live, ended = nil, {}, {}
if complete then
  sessions = redis.call('HKEYS', KEYS[3])
else
  sessions = redis.call('ZRANGEBYSCORE', KEYS[7], '(' .. int(since), '+inf')
end
for _, session in ipairs(sessions) do
  local state, expires, beat, client = standing(session)
  local record = state and redis.call('HGET', KEYS[4], session)
  if record then
    live[#live + 1] = {
      session, state, expires - now, beat, record,
      redis.call('HGET', KEYS[5], session),
      redis.call('HGET', KEYS[6], session),
      drain(client),
    }
  elseif not complete then
    ended[#ended + 1] = session
  end
end
local served = (complete or namespaces > since) and redis.call('SMEMBERS', KEYS[10])
return { int(last), complete and 1 or 0, now, live, ended, served }
