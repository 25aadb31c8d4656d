-- What the scripts of a shard share.
--
-- KEYS[2]  sessions: a hash, session -> '<generation> <expires> <state> <client>'
-- KEYS[3]  the highest epoch of any row that has gone
-- KEYS[4]  counts: a hash, '<env>:<ns>' -> rows
--
-- A row is a string, 'h <generation> <epoch> <placed> <fence starts> <fence ends> <session>', or, for a release that is
-- remembered, 'f <epoch> <session>'. The generation is that in which its holder got or confirmed it.

-- Epochs are decimal strings here: they may have more digits than a number of Lua keeps.
local function is_above(a, b)
  return #a > #b or (#a == #b and a > b)
end

local function successor(n)
  local head, tail = tonumber(string.sub(n, 1, -13)), string.sub(n, -12) + 1
  if tail == 1e12 then
    head, tail = head + 1, 0
  end
  return int(head) .. string.format('%012.0f', tail)
end

-- An epoch above these and those of all rows that have gone, and no lower than the time.
local function fresh_epoch(last, above)
  local floor = redis.call('GET', KEYS[3]) or '0'
  local top = math.max(now - 1, tonumber(floor), tonumber(last), tonumber(above))
  if top < 1e15 then
    return int(top + 1)
  end
  top = int(now - 1)
  for _, epoch in ipairs({ floor, last, above }) do
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
  local known = redis.call('HGET', KEYS[2], session)
  if not known then
    return nil
  end
  local born, expires, state = string.match(known, '^(%d+) (%d+) (%a)')
  if born == generation and tonumber(expires) > now then
    return state, known
  end
  return nil, known
end

-- When a session expires, and its client.
local function particulars(known)
  return string.match(known, '^%d+ (%d+) %a (.*)$')
end

local function enroll(session, expires, state, client)
  redis.call('HSET', KEYS[2], session, table.concat({ generation, expires, state, client }, ' '))
end

-- A row that somebody holds; nothing when that is not what the text says.
local function parse(text)
  local born, epoch, placed, starts, ends, session =
    string.match(text or '', '^h (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  return born and {
    generation = born,
    epoch = epoch,
    placed = placed,
    starts = starts,
    ends = ends,
    session = session,
  }
end

local function read(key)
  return parse(redis.call('GET', key))
end

-- Writes a row that has changed.
local function write(key, row)
  redis.call('SET', key, 'h ' .. row.generation .. ' ' .. row.epoch .. ' ' .. row.placed .. ' '
    .. row.starts .. ' ' .. row.ends .. ' ' .. row.session)
end

-- Writes the row of an id that is placed now.
local function place(key, session, epoch)
  redis.call('SET', key, 'h ' .. generation .. ' ' .. epoch .. ' ' .. int(now) .. ' 0 0 ' .. session)
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
