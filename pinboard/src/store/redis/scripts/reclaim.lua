-- Gives a session the rows of instances that live in its worker: for each, 'm' (moved), 'c' (claimed) or 'd' (another
-- may live with it), and its epoch; or nothing, when this shard does not know the session.
--
-- KEYS[5]  the rows of the session    KEYS[6..]  the rows of each previous one, then the rows, one each
-- ARGV[3]  the session                ARGV[4]    how many previous ones there are
-- ARGV[5..] these, then the member of each row

local session, previous = ARGV[3], tonumber(ARGV[4])
if standing(session) ~= 'l' then
  return false
end
local held_by = {}
for n = 1, previous do
  held_by[ARGV[4 + n]] = KEYS[5 + n]
end
local answers = {}
local function answer(code, epoch)
  answers[#answers + 1] = code
  answers[#answers + 1] = epoch
end

for n = 6 + previous, #KEYS do
  local key, member = KEYS[n], ARGV[n - 1]
  local text = redis.call('GET', key)
  local row = parse(text)
  if row and row.session == session then
    answer('m', row.epoch)
  elseif row and held_by[row.session] then
    redis.call('SREM', held_by[row.session], member)
    redis.call('SADD', KEYS[5], member)
    local code = 'm'
    if row.generation ~= generation then
      -- It may be an earlier row than the worker has been told of.
      row.epoch, code = fresh_epoch(row.epoch, '0'), 'c'
    end
    row.session, row.generation = session, generation
    write(key, row)
    answer(code, row.epoch)
  elseif row and (unheard(row) or not is_dead(row)) then
    answer('d', '0')
  else
    local last = row and row.epoch or (text and string.match(text, '^f (%d+)')) or '0'
    local epoch = fresh_epoch(last, '0')
    place(key, session, epoch)
    -- A dead holder keeps the member among its rows, until it is swept.
    if not row then
      count(member, 1)
    end
    redis.call('SADD', KEYS[5], member)
    answer('c', epoch)
  end
end
return answers
