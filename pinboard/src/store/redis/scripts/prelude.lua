-- What every script begins with: the time, and which life of the data this is.
--
-- KEYS[1]  the boot mark of the slot: '<run id> <generation> <when the quarantine ends>'
-- ARGV[1]  the run id of the server, as the connection has seen it
-- ARGV[2]  how long a cold start quarantines, in ms
--
-- A mark that is missing, or was written under another run id, is a cold start: this server may not have what was last
-- written to the one before it. All times are in ms since the Unix epoch, by the clock of the server.

-- Numbers up to 2^53, with all of their digits.
local function int(n)
  return string.format('%.0f', n)
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local generation, quarantined_until
local function mark()
  local text = table.concat({ ARGV[1], generation, int(quarantined_until) }, ' ')
  redis.call('SET', KEYS[1], text)
end
do
  local run, last, ends = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (%d+) (%d+)$')
  if run == ARGV[1] then
    generation, quarantined_until = last, tonumber(ends)
  else
    -- Above the one before, so that nothing of that life counts in this one.
    generation = int(math.max(now, (tonumber(last) or 0) + 1))
    quarantined_until = now + ARGV[2]
    mark()
  end
end
