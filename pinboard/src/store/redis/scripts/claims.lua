-- Places several ids that nobody holds. A list with an answer for each: 'placed <epoch>', 'held <time> <generation> <row>', or '' for one
-- that is to be claimed alone, because something about it is out of the ordinary; no list when that is so of all of them.
--
-- It does without what the other scripts share: to set that up takes longer than to place an id.
--
-- KEYS[1..4]  as in the shard         ARGV[1..2]  as in the prelude
-- KEYS[5..]   the rows, then the rows of each candidate
-- ARGV[3]     how many rows           ARGV[4..]   of each: the member, its namespace, what the epoch is above, and which of
--                                                 the candidates; then these
local call = redis.call
local many = tonumber(ARGV[3])

local found = call('MGET', KEYS[1], KEYS[3], unpack(KEYS, 5, 4 + many))
local run, generation, ends = string.match(found[1] or '', '^(%S+) (%d+) (%d+)$')
if run ~= ARGV[1] then
  return nil
end
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if now < tonumber(ends) then
  return nil
end

-- An id that is placed now gets the time as its epoch, if that is above all that it must be.
local epoch = string.format('%.0f', now)
local function is_below(other)
  return #other < #epoch or (#other == #epoch and other < epoch)
end
local ordinary = is_below(found[2] or '0')

local row = table.concat({ 'h', generation, epoch, epoch, '0 0 ' }, ' ')
local members, counts, taken, answers = {}, {}, {}, {}
for n = 1, many do
  local key, text, at = KEYS[4 + n], found[2 + n], 4 * n
  local answer = ''
  if text then
    if string.sub(text, 1, 2) == 'h ' then
      answer = table.concat({ 'held', epoch, generation, text }, ' ')
    end
  elseif ordinary and not taken[key] and is_below(ARGV[at + 2]) then
    local which, namespace = tonumber(ARGV[at + 3]), ARGV[at + 1]
    local candidate = ARGV[3 + 4 * many + which]
    local new = members[which]
    if new == nil then
      -- In this generation, with a lease, and open for more.
      local known = call('HGET', KEYS[2], candidate)
      local born, expires = string.match(known or '', '^(%d+) (%d+) l')
      new = born == generation and tonumber(expires) > now and {}
      members[which] = new
    end
    if new then
      taken[key] = true
      call('SET', key, row .. candidate)
      new[#new + 1] = ARGV[at]
      counts[namespace] = (counts[namespace] or 0) + 1
      answer = 'placed ' .. epoch
    end
  end
  answers[n] = answer
end
for which, new in pairs(members) do
  if new and #new > 0 then
    call('SADD', KEYS[4 + many + which], unpack(new))
  end
end
for namespace, more in pairs(counts) do
  call('HINCRBY', KEYS[4], namespace, more)
end
return answers
