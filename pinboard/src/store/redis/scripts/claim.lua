-- One attempt to place an id. What came of it, in one line: 'placed <epoch>', 'replaced <epoch>', 'held <time> <generation> <row>',
-- 'quarantined <ms>', 'preferred <session>' or 'gone'.
--
-- KEYS[5]  the row                    KEYS[6]  the rows of the candidate
-- KEYS[7]  the rows of the holder, when one was read
-- ARGV[3]  the candidate              ARGV[4]  the member
-- ARGV[5]  what the epoch is above    ARGV[6]  'a' when a remembered release counts for nothing, 'v' otherwise
-- ARGV[7]  the holder that was read   ARGV[8]  its epoch

local candidate, member = ARGV[3], ARGV[4]
local text = redis.call('GET', KEYS[5])
local row = parse(text)
local last = '0'
if row then
  local free = row.session == ARGV[7] and row.epoch == ARGV[8] and is_dead(row)
  if not free then
    return table.concat({ 'held', int(now), generation, text }, ' ')
  end
  last = row.epoch
end
if now < quarantined_until then
  return 'quarantined ' .. int(quarantined_until - now)
end
if text and not row then
  local epoch, preferred = string.match(text, '^f (%d+) (.*)$')
  if ARGV[6] == 'v' and preferred ~= candidate and standing(preferred) == 'l' then
    return 'preferred ' .. preferred
  end
  last = epoch
end
if standing(candidate) ~= 'l' then
  return 'gone'
end

local epoch = fresh_epoch(last, ARGV[5])
place(KEYS[5], candidate, epoch)
if not row then
  count(member, 1)
elseif row.session ~= candidate then
  redis.call('SREM', KEYS[7], member)
end
redis.call('SADD', KEYS[6], member)
return (row and 'replaced ' or 'placed ') .. epoch
