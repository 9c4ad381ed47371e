-- fleet.lua keeps the list of the processes that use one vendor key.
-- KEYS[1] sorted set: name, last seen (us). KEYS[2] hash: name, report (opaque).
-- ARGV[1] life (us): who was not seen for so long is gone. ARGV[2] name, or '' to list.
-- ARGV[3] report; ARGV[4] '1' when the process leaves.
-- Reply   how many there are; or, to list, name, last seen, report of each in turn.
-- Expiry  both keys, one life after the last word of anyone.
local call = redis.call
local t = call('TIME')
local now, life = t[1] * 1000000 + t[2], tonumber(ARGV[1])
local function text(n) return string.format('%.0f', n) end
local ms = text(math.floor(life / 1000))
local gone = call('ZRANGEBYSCORE', KEYS[1], '-inf', text(now - life))
if ARGV[2] == '' then
  local out, dead, all = {}, {}, call('ZRANGE', KEYS[1], '0', '-1', 'WITHSCORES')
  for _, name in ipairs(gone) do dead[name] = true end
  for i = 1, #all, 2 do
    if not dead[all[i]] then
      local n = #out
      out[n + 1], out[n + 2], out[n + 3] = all[i], all[i + 1], call('HGET', KEYS[2], all[i]) or ''
    end
  end
  return out
end
if ARGV[4] == '1' then gone[#gone + 1] = ARGV[2] end
if ARGV[4] ~= '1' then
  call('ZADD', KEYS[1], text(now), ARGV[2])
  call('PEXPIRE', KEYS[1], ms) -- at once: whatever fails below leaves no key for ever
  call('HSET', KEYS[2], ARGV[2], ARGV[3])
end
for _, name in ipairs(gone) do
  if name ~= ARGV[2] or ARGV[4] == '1' then
    call('ZREM', KEYS[1], name)
    call('HDEL', KEYS[2], name)
  end
end
call('PEXPIRE', KEYS[1], ms)
call('PEXPIRE', KEYS[2], ms)
return call('ZCARD', KEYS[1])
