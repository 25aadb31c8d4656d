-- What the scripts of a shard share.
--
-- KEYS[2]  sessions: a hash, session -> '<generation> <expires> <state> <client>'
-- KEYS[3]  the highest epoch of any row that has gone
-- KEYS[4]  counts: a hash, '<env>:<ns>' -> rows
--
-- A row is a string, 'h <generation> <epoch> <placed> <fence starts> <fence ends> <session>', or, for a release that is
-- remembered, 'f <epoch> <session>'. The generation is that in which its holder got or confirmed it.

-- Epochs are decimal strings here: they have more digits than a number of Lua keeps.
local function is_above(a, b)
  return #a > #b or (#a == #b and a > b)
end

local function successor(n)
  if #n <= 15 then
    return int(n + 1)
  end
  local head, tail = tonumber(string.sub(n, 1, -13)), string.sub(n, -12) + 1
  if tail == 1e12 then
    head, tail = head + 1, 0
  end
  return int(head) .. string.format('%012.0f', tail)
end

-- An epoch above all of these, and no lower than the time.
local function fresh_epoch(last, above)
  local top = int(now - 1)
  for _, epoch in ipairs({ redis.call('GET', KEYS[3]) or '0', last or '0', above or '0' }) do
    if is_above(epoch, top) then
      top = epoch
    end
  end
  return successor(top)
end

-- Remembers the epoch of a row that goes.
local function retire(epoch)
  local floor = redis.call('GET', KEYS[3])
  if not floor or is_above(epoch, floor) then
    redis.call('SET', KEYS[3], epoch)
  end
end

-- 'l' for a session that lives, 'e' for one that lives but takes neither heartbeats nor ids, nil for one that is dead;
-- then what it is known by.
local function standing(session)
  local text = redis.call('HGET', KEYS[2], session)
  if not text then
    return nil
  end
  local born, expires, state, client = string.match(text, '^(%d+) (%d+) (%a) (.*)$')
  if born == generation and tonumber(expires) > now then
    return state, expires, client
  end
  return nil, expires, client
end

local function enroll(session, expires, state, client)
  redis.call('HSET', KEYS[2], session, table.concat({ generation, expires, state, client }, ' '))
end

-- A row that somebody holds, and the text as it is.
local function read(key)
  local text = redis.call('GET', key)
  if not text then
    return nil, nil
  end
  local born, epoch, placed, starts, ends, session =
    string.match(text, '^h (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  if not born then
    return nil, text
  end
  return {
    generation = born,
    epoch = epoch,
    placed = placed,
    starts = starts,
    ends = ends,
    session = session,
  }, text
end

local function write(key, row)
  local text = table.concat(
    { 'h', row.generation, row.epoch, row.placed, row.starts, row.ends, row.session }, ' ')
  redis.call('SET', key, text)
  return text
end

local function new_row(session, epoch)
  return {
    generation = generation,
    epoch = epoch,
    placed = int(now),
    starts = '0',
    ends = '0',
    session = session,
  }
end

-- Whether the holder of a row may be alive although this life of the data does not know it: it has not had a lease
-- TTL to say so.
local function unheard(row)
  return row.generation ~= generation and now < quarantined_until
end

local function is_dead(row)
  return row.generation ~= generation or not standing(row.session)
end

-- The counts are kept by what a member, '<env>:<ns>:<id>', begins with.
local function count(member, by)
  local namespace = string.match(member, '^[^:]*:[^:]*')
  if redis.call('HINCRBY', KEYS[4], namespace, by) <= 0 then
    redis.call('HDEL', KEYS[4], namespace)
  end
end
