-- What the scripts of the slot {fleet} share.
--
-- KEYS[2]   versions: a hash of 'last', 'base', 'trimmed', 'namespaces' and the 'generation' that these are of
-- KEYS[3]   sessions: a hash, session -> '<generation> <expires> <state> <last heartbeat> <client>'
-- KEYS[4]   records: a hash, session -> JSON
-- KEYS[5]   updates: a hash, session -> JSON
-- KEYS[6]   addresses: a hash, session -> JSON, of those whose addresses were found out anew
-- KEYS[7]   changes: a sorted set, session by the version of its latest change
-- KEYS[8]   expiries: a sorted set, session by when it expires, of those whose end has not been noted
-- KEYS[9]   drains: a hash, client -> 'c' or the deadline
-- KEYS[10]  namespaces: a set of '<env>:<ns>'
-- KEYS[11]  clients: a sorted set, client by when it is forgotten, but for orders
-- KEYS[12]  latest: a hash, client -> its latest session
-- KEYS[13]  client records: a hash, client -> JSON
-- KEYS[14]  ended: a sorted set, session by when its end was noted

-- Versions rise by one for each change, and begin far above any that an earlier life can have reached: a thousand for
-- each ms. So a reader that comes from an earlier life is known by its version.
local function versions()
  local last, base, trimmed, namespaces, born = unpack(redis.call(
    'HMGET', KEYS[2], 'last', 'base', 'trimmed', 'namespaces', 'generation'))
  if born ~= generation then
    last = int(math.max((tonumber(last) or 0) + 1, now * 1024))
    base, trimmed, namespaces = last, last, last
    redis.call('HSET', KEYS[2], 'last', last, 'base', base, 'trimmed', trimmed,
      'namespaces', namespaces, 'generation', generation)
  end
  return tonumber(last), tonumber(base), tonumber(trimmed), tonumber(namespaces)
end

-- Notes that a session has changed.
local function changed(session)
  local version = versions() + 1
  redis.call('HSET', KEYS[2], 'last', int(version))
  redis.call('ZADD', KEYS[7], int(version), session)
  return version
end

-- 'l' for a session that lives, 'e' for one that lives but takes neither heartbeats nor ids, nil for one that is dead;
-- then what it is known by.
local function standing(session)
  local text = redis.call('HGET', KEYS[3], session)
  if not text then
    return nil
  end
  local born, expires, state, beat, client = string.match(text, '^(%d+) (%d+) (%a) (%d+) (.*)$')
  if born == generation and state ~= 'x' and tonumber(expires) > now then
    return state, expires, beat, client
  end
  return nil, expires, beat, client
end

local function enroll(session, expires, state, beat, client)
  redis.call('HSET', KEYS[3], session,
    table.concat({ generation, expires, state, beat, client }, ' '))
  if state == 'x' then
    redis.call('ZREM', KEYS[8], session)
    redis.call('ZADD', KEYS[14], int(now), session)
  else
    redis.call('ZADD', KEYS[8], expires, session)
  end
end

-- Notes the end of sessions that have expired, so that every reader learns of it.
local function note_expired()
  for _, session in ipairs(redis.call('ZRANGEBYSCORE', KEYS[8], '-inf', int(now))) do
    local _, expires, beat, client = standing(session)
    if expires then
      enroll(session, expires, 'x', beat, client)
      changed(session)
    else
      redis.call('ZREM', KEYS[8], session)
    end
  end
end

-- The order for a client, or false.
local function drain(client)
  return redis.call('HGET', KEYS[9], client)
end

-- Whether an order stands still: a cordon does, and others until they have been over for so long.
local function stands(order, remembered)
  return order and (order == 'c' or order + remembered > now)
end

-- Whether a client is remembered: since it was last heard of, or for its order.
local function remembers(client, remembered)
  local forgotten = redis.call('ZSCORE', KEYS[11], client)
  return forgotten and (tonumber(forgotten) > now or stands(drain(client), remembered))
end
