-- take.lua decides a batch of operations on one vendor key, in order, each all or nothing, in one round trip.
--
-- Three kinds of state, all in the store's own time (microseconds):
--   a scope (the key, or one of its models) says since when and until when nobody may send;
--   a tape (one a limit) lists what went and when: "never more than N in any window" is a sum over its end;
--   a line lists who waits, in order: nobody goes before there is room for everyone ahead of them too.
-- A call goes when its scopes are open and every limit has room for what is on the tape in the window ending now,
-- for the calls ahead of it, and for itself. Times told to waiting calls are forecasts; the truth is decided when they ask.
--
-- KEYS    scopes, lines and tapes, named by the operations by their index; all carry the same hash tag.
-- ARGV[1] '<dddd' now (0: the server's clock), lead: how early a call may be granted, lease of a probe, number of operations.
-- ARGV[2] the operations: '<ddddd' kind, key's scope, model's scope, line, number of limits; '<dddddddd' operands a to h (below);
--         then a limit each '<dddddddd' tape, tag, window, ceiling, amount, burst (-1 Fixed, 0 Sliding), cost, margin (of
--         the window, not the vendor's); and behind a Fixed one '<ddd' offset of its time zone, when that changes, offset from then on.
--           1 take    a share, b longest wait, d model, 5 hold      a scope, b length, c longest rung (0: no ladder), d calm,
--                     e how many limits are the key's               e one call first, f generation, g rule, h why
--           3 leave   c id                             6 answered  a scope, f generation: its probe got through
--           4 adjust  c when it was charged,           7 freed     a scope, f generation: its probe learned nothing
--                     a, b input guessed, taken,       8 resume    a scope
--                     d, e output guessed, taken       9 look      a scope (and at most one limit)
--          10 charge  c when: no question asked       11 heed      b time to the vendor's reset (0 unknown), c when the call that heard
--                                                                  of it was charged, d used before it; a limit, its cost went to others
-- Reply   '<dddddd' an operation: status, wait, at, key's generation, model's generation, by.
--           take, ask: 1 go after wait (0 or up to lead), charged at at, by = whose probe it is (1 key, 2 model, 3 both);
--                        and '<dd' a limit: units that this fleet left of the vendor's window, units that went to others
--                      2 wait in line and ask again with id at; 0 refused, room after wait; by = the limit that decides, -1 model, -2 key
--           adjust: wait, at = what input and output take of their guesses lately, in millionths, 0 unknown
--           hold: 1 began, 2 grew, 0 nothing; answered, freed, resume: 1 done, 0 nothing; wait = what is left of the hold
--           look: phase, what is left of the hold, units used, why, how many wait, generation (with a limit: units that went to others)
-- Expiry  tapes two windows and 10 s after their last new entry; lines 10 s after their last forecast;
--         scopes an hour after their hold, a day after they have learned.
--         It only collects garbage: what counts is the times inside.
local U, P, floor, ceil, max, min = struct.unpack, struct.pack, math.floor, math.ceil, math.max, math.min
local call, sub = redis.call, string.sub
local now, lead, lease, count = U('<dddd', ARGV[1])
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local DAY, HOUR, MINUTE, GRACE = 86400000000, 3600000000, 60000000, 2000000
local EXACTLY = 9007199254740991 -- the largest whole number that all parts keep exactly
local SLOTS, EXACT = 112, 16 -- a tape of fewer than EXACT entries is exact; a longer one merges what goes in the same 1/112 of a window

local function set(i, value, life) call('SET', KEYS[i], value, 'PX', string.format('%.0f', floor(life / 1000) + 1)) end

-- Scopes. phase 0: open from till on. 1: from till on one call may try (the probe). 2: it is out; its lease ends at till.
local scopes = {}
local function scope(i)
  local s = scopes[i]
  if s then return s end
  s = {till = 0, phase = 0, gen = 0, rung = 0, why = 0}
  local v = call('GET', KEYS[i])
  if v and U('<d', v) + HOUR > now then s.till, s.phase, s.gen, s.rung, s.why = U('<ddddd', v) end
  s.learned = v and sub(v, 41) or ''
  scopes[i] = s
  return s
end

-- learn remembers what a model's calls took of what was guessed: about the last LATELY of them, for a day.
local LATELY, ENOUGH = 256, 10
local function learn(s, gi, ti, go, to)
  local at, n, GI, TI, GO, TO = 0, 0, 0, 0, 0, 0
  if s.learned ~= '' then at, n, GI, TI, GO, TO = U('<dddddd', s.learned) end
  if at + DAY <= now then n, GI, TI, GO, TO = 0, 0, 0, 0, 0 end
  if gi + go > 0 then
    n, GI, TI, GO, TO = n + 1, GI + gi, TI + ti, GO + go, TO + to
    if n == LATELY then n, GI, TI, GO, TO = n / 2, floor(GI / 2), floor(TI / 2), floor(GO / 2), floor(TO / 2) end
    s.learned, s.dirty = P('<dddddd', now, n, GI, TI, GO, TO), true
  end
  local function share(took, guessed) return n >= ENOUGH and guessed > 0 and min(1000000000, max(1, floor(took * 1000000 / guessed))) or 0 end
  return share(TI, GI), share(TO, GO)
end

-- turn begins a new generation: what was admitted before it can no longer change the scope.
local function turn(s, phase, till)
  s.phase, s.till, s.gen, s.dirty = phase, till, max(now, s.gen + 1), true
end

-- hold closes a scope. rule 0: an operator's word. 1: a vendor's "later": from an earlier generation it may lengthen a
-- pause that is running, not start one. 2: a refusal: only from the present generation. A pause only grows.
local function hold(s, length, longest, calm, first, gen, rule, why)
  local mine, running = gen == s.gen, s.till > now and s.phase < 2
  if rule > 0 and not mine and (rule == 2 or not running) then return 0 end
  if longest > 0 and mine then
    if s.rung > 0 and now < s.till + calm then length = min(2 * s.rung, longest) end
    s.rung = length
  end
  local till = now + length
  if running then
    if till <= s.till and first <= s.phase then return 0 end
    s.till, s.phase, s.why, s.dirty = max(till, s.till), max(first, s.phase), why, true
    return 2
  end
  if rule == 0 and s.phase > 0 then first = 1 end -- an operator's pause does not excuse a refused key from its probe
  s.why = why
  turn(s, first, till)
  return 1
end

-- Lines. An entry whose owner did not ask when its time came is gone; the owner comes back in by its id, in order.
local lines = {}
local function tally(q, e, sign)
  q.mixed = q.mixed or e.model ~= q[1].model or #q > 1 and e.model ~= q[2].model -- e itself may be the first
  local w = q.waiting[e.share] or {}
  q.waiting[e.share] = w
  for tag, units in pairs(e.cost) do w[tag] = (w[tag] or 0) + sign * units end
  q.dirty = true
end
local function line(i)
  local q = lines[i]
  if q then return q end
  q = {waiting = {}}
  local v, pos = call('GET', KEYS[i]), 1
  while v and pos <= #v do
    local e, n = {cost = {}}, 0
    e.id, e.share, e.told, e.model, e.by, n, pos = U('<dddddd', v, pos)
    for _ = 1, n do
      local tag, units
      tag, units, pos = U('<dd', v, pos)
      e.cost[tag] = units
    end
    if e.told + GRACE >= now then
      q[#q + 1] = e
      tally(q, e, 1)
    end
  end
  q.dirty = false
  lines[i] = q
  return q
end
local function find(q, id) -- where id stands, or would stand; and whether it does
  local j = #q
  while j > 0 and q[j].id > id do j = j - 1 end
  if j > 0 and q[j].id == id then return j, true end
  return j + 1, false
end
local function leave(q, id)
  local j, there = find(q, id)
  if there then
    tally(q, q[j], -1)
    table.remove(q, j)
  end
  return there
end

-- before: does a waiting call e go before call c on a limit? Everyone of a larger share does, and of its own share those
-- who came first. One of another model (they meet under a limit of the key) counts when it waits for this very limit, or
-- when its time has come: it must not keep others from room that it cannot use yet.
local function before(e, c, tag)
  return (e.share > c.share or e.share == c.share and e.id < c.id) and (e.model == c.model or e.by == tag or e.told <= c.open)
end

-- ahead sums the units of those who go before a call.
local function ahead(q, tag, c)
  if #q == 0 then return 0 end
  local share, id, newest, n = c.share, c.id, c.id > q[#q].id, 0
  if q.mixed or q[1].model ~= c.model then
    for j = 1, #q do
      if before(q[j], c, tag) then n = n + (q[j].cost[tag] or 0) end
    end
    return n
  end
  for s, w in pairs(q.waiting) do
    if s > share or (s == share and newest) then n = n + (w[tag] or 0) end
  end
  for j = 1, newest and 0 or #q do
    local e = q[j]
    if e.id >= id then break end
    if e.share == share then n = n + (e.cost[tag] or 0) end
  end
  return n
end

-- Tapes: sum of the window, meter (when the bucket would be empty), the newest entry, and the older entries as '<dd'
-- time, units, from byte pos of the stored string on. Of a Fixed one: sum and, in T, the number of the window.
-- others, until gone, and then next, until last: what went to somebody else who uses the key, as the vendor tells.
local HEAD = 72
local tapes = {}
local function tape(r)
  local t = tapes[r.i]
  if t then return t end
  t = {sum = 0, meter = 0, T = 0, a = 0, pos = HEAD + 1, others = 0, gone = 0, next = 0, last = 0, W = r.W}
  local v, old = call('GET', KEYS[r.i]), now - r.W
  t.v = v or string.rep('\0', HEAD)
  if v then
    t.sum, t.meter, t.T, t.a, t.pos, t.others, t.gone, t.next, t.last = U('<ddddddddd', v)
    if t.gone <= now then t.others, t.gone, t.next, t.last = t.next, t.last, 0, 0 end
    if r.burst >= 0 then
      if t.T <= old then
        t.sum, t.meter, t.T, t.a, t.pos = 0, 0, 0, 0, #v + 1
      else
        while t.pos <= #v do
          local at, units = U('<dd', v, t.pos)
          if at > old then break end
          t.sum, t.pos = t.sum - units, t.pos + 16
        end
      end
    end
  end
  tapes[r.i] = t
  return t
end
local function merges(t) return #t.v - t.pos + 1 >= 16 * EXACT end

-- Fixed windows are numbered by the clock of their time zone.
local function offset(r, at) return at < r.change and r.off or r.off2 end
local function number(r, at) return floor((at + offset(r, at)) / r.W) end
local function boundary(r, at)
  local e = (number(r, at) + 1) * r.W
  local b = e - offset(r, at)
  if at < r.change and b >= r.change then b = max(r.change, e - r.off2) end -- a midnight that is skipped ends with the skip
  return b
end
local function used(t, r, x) return (r.burst >= 0 or t.T >= number(r, x)) and t.sum or 0 end
local function counted(t, r, x) -- used in the vendor's window, which is shorter by the margin
  local n, edge = used(t, r, x), x - r.W + r.margin
  if r.burst >= 0 and t.T <= edge then return 0 end
  for pos = t.pos, r.burst >= 0 and #t.v or 0, 16 do
    local at, units = U('<dd', t.v, pos)
    if at > edge then break end
    n = n - units
  end
  return n
end
local function others(t, x) return x < t.gone and t.others or x < t.last and t.next or 0 end
local function fixed(t, r, x, front)
  local need = used(t, r, x) + (r.cost - r.ceiling) + front
  if need <= 0 and need + others(t, x) > 0 then
    x = max(t.gone, t.last)
  elseif need > 0 then
    x = boundary(r, x) + max(0, ceil((front + r.cost) / r.ceiling) - 1) * r.W
  end
  if r.margin > 0 then
    local into = (x + offset(r, x)) % r.W
    if into < r.margin then x = x + r.margin - into
    elseif into > r.W - r.margin then x = boundary(r, x) + r.margin end
  end
  return x
end

-- freed forecasts when need units will have left the window: those that went leave a window after they went, oldest
-- first; then those ahead (front units in all), a window after their own times.
local function freed(t, r, need, q, c, front)
  for pos = t.pos, #t.v, 16 do
    local at, units = U('<dd', t.v, pos)
    need = need - units
    if need <= 0 then return at + r.W end
  end
  local last, slot = t.T, r.W / SLOTS
  if merges(t) then last = ceil((floor(last / slot) + 1) * slot) end -- the newest entry may still move within its slot
  need = need - t.a
  if need <= 0 then return last + r.W end
  local stay = front - need -- of those ahead, the last ones, which need not have left
  for j = #q, 1, -1 do
    local e = q[j]
    if before(e, c, r.tag) then
      stay = stay - (e.cost[r.tag] or 0)
      if stay < 0 then
        last = max(last, e.told)
        break
      end
    end
  end
  return max(last, now) + r.W
end

-- room returns the earliest time from c.open on at which the limit has room for call c behind those ahead of it, and how
-- early it may be granted. Until ramp (a pause has just ended) every limit is a bucket with a burst of a tenth.
local function room(t, r, q, c, ramp)
  local x, front, early = c.open, ahead(q, r.tag, c), lead
  if r.burst < 0 then return fixed(t, r, x, front), 0 end
  if t.sum + r.cost > EXACTLY then early = 0 end -- what leaves the window by then is still in the sum
  local y = x
  local need, o = t.sum + (r.cost - r.ceiling) + front, others(t, x) -- in the order that stays exact
  if need + o > 0 then y = max(x, freed(t, r, need + o, q, c, front)) end
  if o > 0 then y = min(y, max(x, t.gone, t.last, need > 0 and freed(t, r, need, q, c, front) or x)) end
  if r.burst > 0 or x < ramp then
    if front > 0 then early = 0 end -- a meter has no place left for those who are overtaken
    local burst = r.burst > 0 and r.burst or r.amount
    if x < ramp then burst = min(burst, max(1, floor(r.amount / 10))) end
    local at = max(t.meter, x) + (front + r.cost - max(burst, r.cost)) * r.W / r.amount
    if r.burst == 0 then at = min(at, ramp) end
    y = max(y, ceil(at))
  end
  return y, early
end

-- change adds units to the entry that holds at, the first one not before it (behind the older ones: the newest), never
-- below zero. It returns what it added.
local function change(t, at, d)
  local lo, hi = 0, floor((#t.v - t.pos + 1) / 16)
  local n = hi
  if n > 0 and U('<d', t.v, #t.v - 15) < at then lo = n end
  while lo < hi do
    local m = floor((lo + hi) / 2)
    if U('<d', t.v, t.pos + 16 * m) >= at then hi = m else lo = m + 1 end
  end
  if lo < n then
    local p = t.pos + 16 * lo
    local when, had = U('<dd', t.v, p)
    d = max(d, -had)
    t.v, t.whole = sub(t.v, 1, p - 1) .. P('<dd', when, had + d) .. sub(t.v, p + 16), true
  else
    d = max(d, -t.a)
    t.a = t.a + d
  end
  t.sum, t.dirty = t.sum + d, true
  return d
end

local function charge(t, r, x, metered)
  if r.burst < 0 then
    local k = number(r, x)
    if t.T < k then t.T, t.sum, t.whole = k, 0, true end
    t.sum, t.dirty = t.sum + r.cost, true
    return
  end
  if metered then t.meter = max(t.meter, x) + r.cost * r.W / r.amount end
  local slot = r.W / SLOTS
  if t.T >= x then
    change(t, x, r.cost)
    return
  end
  if merges(t) and floor(t.T / slot) == floor(x / slot) then
    t.a = t.a + r.cost -- counted until later than needed, never less
  else
    if t.T > 0 then t.v = t.v .. P('<dd', t.T, t.a) end
    t.a, t.whole = r.cost, true
  end
  t.T, t.sum, t.dirty = x, t.sum + r.cost, true
end

-- adjust changes what was charged at at, never below zero and never in a window that is over.
local function adjust(t, r, at)
  local d = min(r.cost, EXACTLY - t.sum)
  if r.burst < 0 then
    if t.sum == 0 or number(r, at) ~= t.T then return 0 end
    t.sum, t.dirty = max(0, t.sum + d), true
    return 1
  end
  if t.T == 0 or at <= now - r.W or at > t.T then return 0 end
  d = change(t, at, d)
  if d > 0 and r.burst > 0 then
    t.meter = max(t.meter, now) + d * r.W / r.amount
  elseif t.meter > now then -- given back, but not what the meter would have lost to standing idle
    local m = 0
    for pos = t.pos, #t.v, 16 do
      local then_, units = U('<dd', t.v, pos)
      m = max(m, then_) + units * r.W / r.amount
    end
    m = max(m, t.T) + t.a * r.W / r.amount
    t.meter = max(m, t.meter + d * r.W / r.amount)
  end
  return 1
end

-- heed believes a vendor that has less left than this fleet left: r.cost units went to others. Since then they have done
-- as this fleet did, in proportion. That counts until what the call that heard of it saw has left the window, or the
-- vendor's reset comes; the most that is heard in a window counts.
local function heed(t, r, at, reset, mine)
  local till = r.burst < 0 and boundary(r, at) or at + r.W
  if reset > 0 then till = min(till, now + reset) end
  if till <= now or used(t, r, now) == 0 then return 0 end -- the tape is gone: what went is not known to be of this window
  local o, since = others(t, now), max(0, counted(t, r, now) - mine)
  local n = min(r.amount, r.cost + ceil(since * min(1, r.cost / max(1, mine))))
  if n >= o and till >= t.gone then
    t.others, t.gone = n, till
  elseif n >= o then
    t.others, t.gone, t.next, t.last = n, till, max(t.next, o), max(t.last, t.gone)
  else
    t.next, t.last = max(t.next, n), max(t.last, till)
  end
  t.dirty = true
  return n > o and 1 or 0
end

-- decide is the heart: when may this call go? Then it goes, stands in line, or is refused and leaves no trace.
local function decide(K, M, q, rows, share, patience, id, model, ofKey)
  local held = max(K.till, M.till)
  -- a limit is a ramp for a window, a minute at most, after the end of a pause of its own scope
  local function ramp(j) return (j <= ofKey and K.till or held) + min(rows[j].W, MINUTE) end
  local c = {id = id > 0 and id or max(now, #q > 0 and q[#q].id + 1 or 0), share = share, model = model, open = max(now, held)}
  local x, by, early = c.open, K.till >= M.till and -2 or -1, lead
  for j = 1, #rows do
    local r = rows[j]
    if r.cost > 0 then
      local y, e = room(tape(r), r, q, c, ramp(j))
      if y > x then x, by = y, j end
      early = min(early, e)
    end
  end
  if id > 0 then leave(q, id) end
  local wait = x - now
  if wait <= early and wait <= patience then
    local probe, left = 0, ''
    for j = 1, #rows do
      local r = rows[j]
      local t = tape(r)
      charge(t, r, x, r.burst > 0 or x < ramp(j))
      left = left .. P('<dd', r.amount - counted(t, r, x), others(t, x))
    end
    if M.phase > 0 then probe = 2; turn(M, 2, x + lease) end
    if K.phase > 0 then probe = probe + 1; turn(K, 2, x + lease) end
    return 1, wait, x, probe, left
  end
  if wait > patience then return 0, wait, 0, by end
  c.told, c.by, c.cost = x, by > 0 and rows[by].tag or 0, {}
  for j = 1, #rows do c.cost[rows[j].tag] = rows[j].cost end
  table.insert(q, (find(q, c.id)), c)
  tally(q, c, 1)
  return 2, wait, c.id, by
end

local out, pos = {}, 1
for op = 1, count do
  local kind, k, m, l, n, a, b, c, d, e, f, g, h
  kind, k, m, l, n, pos = U('<ddddd', ARGV[2], pos)
  a, b, c, d, e, f, g, h, pos = U('<dddddddd', ARGV[2], pos)
  local rows = {}
  for j = 1, n do
    local r = {}
    r.i, r.tag, r.W, r.ceiling, r.amount, r.burst, r.cost, r.margin, pos = U('<dddddddd', ARGV[2], pos)
    if r.burst < 0 then r.off, r.change, r.off2, pos = U('<ddd', ARGV[2], pos) end
    rows[j] = r
  end
  local K, M, status, wait, at, by, left = scope(k), scope(m), 0, 0, 0, 0, nil
  if kind <= 2 then
    status, wait, at, by, left = decide(K, M, line(l), rows, a, b, kind == 2 and c or 0, d, e)
  elseif kind == 3 then
    status = leave(line(l), c) and 1 or 0
  elseif kind == 4 then
    for j = 1, n do status = max(status, adjust(tape(rows[j]), rows[j], c)) end
    wait, at = learn(M, a, b, d, e)
  elseif kind == 11 then
    for j = 1, n do status = max(status, heed(tape(rows[j]), rows[j], c, b, d)) end
  elseif kind == 10 then
    for j = 1, n do
      local r, t = rows[j], tape(rows[j])
      local x = max(now, c)
      r.cost = min(r.cost, EXACTLY - used(t, r, x))
      charge(t, r, x, r.burst > 0)
    end
    status = 1
  elseif kind == 9 then
    local s = scope(a)
    by = s.gen
    if n > 0 then
      local t = tape(rows[1])
      at = used(t, rows[1], now)
      by = others(t, now)
    end
    out[op] = P('<dddddd', s.phase, max(0, s.till - now), at, s.why, #line(l), by)
  else
    local s = scope(a)
    if kind == 5 then
      status = hold(s, b, c, d, e, f, g, h)
    elseif kind == 8 then
      if s.till > now or s.phase > 0 then status = 1; s.rung = 0; turn(s, 0, now) end
    elseif s.phase == 2 and f == s.gen then
      status = 1
      turn(s, kind == 6 and 0 or 1, now)
    end
    wait = max(0, s.till - now)
  end
  out[op] = out[op] or P('<dddddd', status, wait, at, K.gen, M.gen, by) .. (left or '')
end

for i, s in pairs(scopes) do
  if s.dirty then
    set(i, P('<ddddd', s.till, s.phase, s.gen, s.rung, s.why) .. s.learned, max(0, s.till - now) + (s.learned == '' and HOUR or DAY))
  end
end
for i, q in pairs(lines) do
  if q.dirty and #q == 0 then
    call('DEL', KEYS[i])
  elseif q.dirty then
    local v, last = {}, now
    for j = 1, #q do
      local e, costs, n = q[j], '', 0
      for tag, units in pairs(e.cost) do costs, n = costs .. P('<dd', tag, units), n + 1 end
      v[j], last = P('<dddddd', e.id, e.share, e.told, e.model, e.by, n) .. costs, max(last, e.told)
    end
    set(i, table.concat(v), last - now + 10000000)
  end
end
for i, t in pairs(tapes) do
  if t.dirty then
    local head = P('<ddddddddd', t.sum, t.meter, t.T, t.a, t.whole and HEAD + 1 or t.pos, t.others, t.gone, t.next, t.last)
    if t.whole then set(i, head .. sub(t.v, t.pos), 2 * t.W + 10000000) else call('SETRANGE', KEYS[i], '0', head) end
  end
end
return table.concat(out)
