-- What is left of the quarantine, in ms; makes it longer when it is shorter than that.
--
-- ARGV[3]  how long it has to be, or 0

local until_then = now + ARGV[3]
if tonumber(ARGV[3]) > 0 and until_then > quarantined_until then
  quarantined_until = until_then
  mark()
end
return math.max(0, quarantined_until - now)
