-- A row as a claim would find it: 'held <time> <generation> <row>', or nothing when nobody holds the id.
--
-- KEYS[5]  the row

local text = redis.call('GET', KEYS[5])
return parse(text) and table.concat({ 'held', int(now), generation, text }, ' ') or nil
