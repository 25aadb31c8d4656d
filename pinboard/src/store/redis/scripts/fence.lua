-- Fences the row of an id, or lifts its fence; the holder and its epoch.
--
-- KEYS[5]  the row
-- ARGV[3]  when refusals begin, in ms from now; empty to lift     ARGV[4]  when the row may be taken

local row = read(KEYS[5])
if not row then
  return false
end
if ARGV[3] == '' then
  row.starts, row.ends = '0', '0'
else
  row.starts, row.ends = int(now + ARGV[3]), int(now + ARGV[4])
end
write(KEYS[5], row)
return { row.session, row.epoch }
