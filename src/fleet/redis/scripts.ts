import { createHash } from 'node:crypto';
import type { Script } from '../../stores/redis/scripts.ts';

const script = (body: string): Script => {
  const text = body.trim();
  return { text, sha: createHash('sha1').update(text).digest('hex') };
};

/** A turn is a hash: its plan, whose it is, `n:<node>` and `d:<node>` for its journal. Its events are a stream. */
const NOW = `
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local text = function(number) return string.format('%d', number) end
`;
const TELL = (channel: string): string => `redis.pcall('PUBLISH', ${channel}, '')`;

/**
 * KEYS turn open waiting tenant places; ARGV id digest record tenant timeout submission maxOpen keep. Gives state,
 * whether it has settled, its deadline, its place, and the first submission. Tenants take turns by the places: each
 * turn comes after its tenant's last one, and a tenant that begins after what has begun. That moves on by one at most
 * for each turn: an engine that gives turns in another order would put whoever comes next behind all that wait.
 */
export const ENTER: Script = script(`${NOW}
local known = call('HMGET', KEYS[1], 'digest', 'submission', 'settled', 'deadline', 'place')
if known[1] then
  if known[1] ~= ARGV[2] then return { 'conflict' } end
  return { known[2] == ARGV[6] and 'accepted' or 'known', known[3] and 1 or 0, known[4], known[5], known[2] }
end
local gone = text(now - ARGV[8])
for _, id in ipairs(call('ZRANGEBYSCORE', KEYS[2], '-inf', gone)) do call('ZREM', KEYS[3], id) end
call('ZREMRANGEBYSCORE', KEYS[2], '-inf', gone)
call('ZREMRANGEBYSCORE', KEYS[4], '-inf', gone)
local open = call('ZCARD', KEYS[2])
if open == 0 then call('DEL', KEYS[5]) end
if open >= tonumber(ARGV[7]) then return { 'full', open } end
local deadline = now + ARGV[5]
local begun, last = unpack(call('HMGET', KEYS[5], '', ':' .. ARGV[4]))
if call('ZCARD', KEYS[4]) == 0 then last = nil end
local place = text(math.max(tonumber(begun or 0), tonumber(last or 0)) + 1)
call('HSET', KEYS[5], ':' .. ARGV[4], place)
call('HSET', KEYS[1], 'digest', ARGV[2], 'record', ARGV[3], 'tenant', ARGV[4], 'submission', ARGV[6], 'deadline', text(deadline), 'epoch', 0, 'seq', 0, 'place', place)
call('PEXPIREAT', KEYS[1], text(deadline + ARGV[8]))
call('ZADD', KEYS[2], text(deadline), ARGV[1])
call('ZADD', KEYS[3], text(now), ARGV[1])
call('ZADD', KEYS[4], text(deadline), ARGV[1])
call('PEXPIRE', KEYS[4], text(ARGV[5] + ARGV[8]))
return { 'accepted', 0, text(deadline), place, ARGV[6] }`);

/**
 * KEYS turn waiting versions places; ARGV id worker version evenSo once. `tries` are the owners since the turn last
 * came further, `u:` when the owner of an epoch was told for the last time that it is one, `once` which beginning the
 * present epoch is, and `from` who had the turn before. A Redis that stood still gets a beginning as often as it was
 * asked for: it is one.
 */
export const BEGIN: Script = script(`${NOW}
local names = { 'digest', 'settled', 'version', 'worker', 'at', 'deadline', 'place', 'epoch', 'once' }
local turn = call('HMGET', KEYS[1], unpack(names))
if not turn[1] then return { 'unknown' } end
if turn[2] then return { 'settled' } end
if turn[3] and turn[3] ~= ARGV[3] and ARGV[4] ~= '1' then
  local seen = call('ZSCORE', KEYS[3], turn[3])
  return { 'other_version', turn[3], text(now - (seen or turn[5] or 0)), turn[6], text(now) }
end
if turn[9] ~= turn[8] .. ' ' .. ARGV[5] then
  local epoch = text(call('HINCRBY', KEYS[1], 'epoch', 1))
  call('HSET', KEYS[1], 'worker', ARGV[2], 'u:' .. turn[8], turn[5] or '0')
  call('HSET', KEYS[1], 'once', epoch .. ' ' .. ARGV[5], 'from', turn[4] or '', 'fromAt', turn[5] or '0')
  if ARGV[4] ~= '1' then call('HSET', KEYS[1], 'version', ARGV[3]) end
  call('HINCRBY', KEYS[1], 'tries', 1)
  call('ZREM', KEYS[2], ARGV[1])
  local begun = tonumber(call('HGET', KEYS[4], '') or 0)
  if tonumber(turn[7] or 0) > begun then call('HSET', KEYS[4], '', text(begun + 1)) end
end
call('HSET', KEYS[1], 'at', text(now))
local epoch, from, fromAt = unpack(call('HMGET', KEYS[1], 'epoch', 'from', 'fromAt'))
return { 'begun', epoch, text(now), from, fromAt, call('HGETALL', KEYS[1]) }`);

/**
 * KEYS turn events open waiting tenant; ARGV id epoch channel firstSeq events settles keep maxEvents further, then
 * the events, then names and values of the journal, where `@` is the time. A batch that was written and sent again is
 * known by the place of its events; the journal's part is the same anyway. `further` is whether the turn comes further.
 */
export const WRITE: Script = script(`${NOW}
local turn = call('HMGET', KEYS[1], 'epoch', 'seq', 'deadline')
if turn[1] ~= ARGV[2] then return 0 end
local first, count = tonumber(ARGV[4]), tonumber(ARGV[5])
local seq = tonumber(turn[2])
if count > 0 and seq < first + count - 1 then
  for i = 1, count do
    if first + i - 1 > seq then
      call('XADD', KEYS[2], 'MAXLEN', '=', ARGV[8], text(first + i - 1) .. '-0', 'e', ARGV[9 + i])
    end
  end
  call('HSET', KEYS[1], 'seq', first + count - 1)
  if seq == 0 then call('PEXPIREAT', KEYS[2], text(turn[3] + ARGV[7])) end
end
for i = 10 + count, #ARGV, 2 do
  call('HSET', KEYS[1], ARGV[i], (string.gsub(ARGV[i + 1], '^@', text(now) .. ' ')))
end
call('HSET', KEYS[1], 'at', text(now))
if ARGV[9] == '1' then call('HDEL', KEYS[1], 'tries') end
if ARGV[6] == '1' then
  call('HSET', KEYS[1], 'settled', 1)
  for i = 3, 5 do call('ZREM', KEYS[i], ARGV[1]) end
  local over = text(now + ARGV[7])
  call('PEXPIREAT', KEYS[1], over)
  call('PEXPIREAT', KEYS[2], over)
end
${TELL('ARGV[3]')}
return 1`);

/** KEYS turn; ARGV epoch. Its owner gives it back: it has not died of it. */
export const YIELD: Script = script(`
if redis.call('HGET', KEYS[1], 'epoch') == ARGV[1] then redis.call('HDEL', KEYS[1], 'tries') end
return 1`);

/** KEYS turn; ARGV epoch. */
export const OWNS: Script = script(`${NOW}
if call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
call('HSET', KEYS[1], 'at', text(now))
return 1`);

/** KEYS turn events; ARGV after count. */
export const READ: Script = script(`
local turn = redis.call('HMGET', KEYS[1], 'digest', 'settled')
if not turn[1] then return { 0, 0, {} } end
return { 1, turn[2] and 1 or 0, redis.call('XRANGE', KEYS[2], '(' .. ARGV[1] .. '-0', '+', 'COUNT', ARGV[2]) }`);

/** KEYS turn; ARGV ordersChannel. */
export const CANCEL: Script = script(`
local turn = redis.call('HMGET', KEYS[1], 'digest', 'settled')
if not turn[1] or turn[2] then return 0 end
redis.call('HSET', KEYS[1], 'cancelled', 1)
${TELL('ARGV[1]')}
return 1`);

/**
 * KEYS workers versions info open, then turns; ARGV worker version report silent, then of each its epoch, and its id if
 * it may undo something behind its deadline: such a one is not overdue while it is held. Gives their states.
 */
export const BEAT: Script = script(`${NOW}
call('ZADD', KEYS[1], text(now), ARGV[1])
call('ZADD', KEYS[2], text(now), ARGV[2])
call('HSET', KEYS[3], ARGV[1], ARGV[3])
for _, gone in ipairs(call('ZRANGEBYSCORE', KEYS[1], '-inf', text(now - ARGV[4]))) do
  call('ZREM', KEYS[1], gone)
  call('HDEL', KEYS[3], gone)
end
local states = {}
for i = 1, #KEYS - 4 do
  local key, id = KEYS[i + 4], ARGV[2 * i + 4]
  local turn = call('HMGET', key, 'epoch', 'cancelled')
  if turn[1] == ARGV[2 * i + 3] then
    call('HSET', key, 'at', text(now))
    if id ~= '' then call('ZADD', KEYS[4], 'XX', 'GT', text(now), id) end
    states[i] = turn[2] and 'cancelled' or 'held'
  else
    states[i] = 'taken'
  end
end
return states`);

/** KEYS workers info; ARGV worker. */
export const LEAVE: Script = script(`
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
return 1`);

/** KEYS open waiting workers info; ARGV overdueAfter overdueMax silent. */
export const REPORT: Script = script(`${NOW}
local oldest = call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
local workers = {}
local beats = call('ZRANGEBYSCORE', KEYS[3], text(now - ARGV[3]), '+inf', 'WITHSCORES')
for i = 1, #beats, 2 do
  workers[#workers + 1] = { beats[i], text(now - beats[i + 1]), call('HGET', KEYS[4], beats[i]) or '' }
end
return {
  text(now), call('ZCARD', KEYS[1]), call('ZCARD', KEYS[2]), oldest[2] or text(now),
  call('ZRANGEBYSCORE', KEYS[1], '-inf', text(now - ARGV[1]), 'WITHSCORES', 'LIMIT', 0, ARGV[2]), workers,
}`);

/**
 * KEYS buckets; ARGV maxWait, then perSecond and burst of each. A bucket is the moment at which it is full again
 * (GCRA). Gives 0 and how long to wait for the places that are kept, or which bucket has none for so long that none is
 * kept of any, and how long that is.
 */
export const TAKE: Script = script(`${NOW}
local exact = time[1] * 1000 + time[2] / 1000
local fulls, longest = {}, 0
for i, key in ipairs(KEYS) do
  local each = 1000 / ARGV[2 * i]
  fulls[i] = math.max(tonumber(call('GET', key) or 0), exact) + each
  local wait = math.max(0, math.ceil(fulls[i] - exact - each * ARGV[2 * i + 1]))
  if wait > tonumber(ARGV[1]) then return { i, text(wait) } end
  longest = math.max(longest, wait)
end
for i, key in ipairs(KEYS) do
  call('SET', key, string.format('%.3f', fulls[i]), 'PX', text(math.ceil(fulls[i] - exact) + 1000))
end
return { 0, text(longest) }`);
