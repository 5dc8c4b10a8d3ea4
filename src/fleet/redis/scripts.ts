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
 * KEYS turn open waiting tenant; ARGV id digest record tenant timeout submission maxOpen keep. Gives state, whether it
 * has settled, its deadline, and the tenant's backlog.
 */
export const ENTER: Script = script(`${NOW}
local known = call('HMGET', KEYS[1], 'digest', 'submission', 'settled', 'deadline')
if known[1] then
  if known[1] ~= ARGV[2] then return { 'conflict' } end
  return { known[2] == ARGV[6] and 'accepted' or 'known', known[3] and 1 or 0, known[4], call('ZCARD', KEYS[4]) }
end
local gone = text(now - ARGV[8])
for i = 2, 4 do call('ZREMRANGEBYSCORE', KEYS[i], '-inf', gone) end
local open = call('ZCARD', KEYS[2])
if open >= tonumber(ARGV[7]) then return { 'full', open } end
local deadline = now + ARGV[5]
call('HSET', KEYS[1], 'digest', ARGV[2], 'record', ARGV[3], 'tenant', ARGV[4], 'submission', ARGV[6], 'deadline', text(deadline), 'epoch', 0, 'seq', 0)
call('PEXPIREAT', KEYS[1], text(deadline + ARGV[8]))
call('ZADD', KEYS[2], text(deadline), ARGV[1])
call('ZADD', KEYS[3], text(now), ARGV[1])
call('ZADD', KEYS[4], text(deadline), ARGV[1])
call('PEXPIRE', KEYS[4], text(ARGV[5] + ARGV[8]))
return { 'accepted', 0, text(deadline), call('ZCARD', KEYS[4]) }`);

/** KEYS turn waiting workers versions; ARGV id worker version evenSo. */
export const BEGIN: Script = script(`${NOW}
local turn = call('HMGET', KEYS[1], 'digest', 'settled', 'version', 'worker', 'at', 'deadline')
if not turn[1] then return { 'unknown' } end
if turn[2] then return { 'settled' } end
if turn[3] and turn[3] ~= ARGV[3] and ARGV[4] ~= '1' then
  local seen = call('ZSCORE', KEYS[4], turn[3])
  return { 'other_version', turn[3], text(now - (seen or turn[5] or 0)), turn[6], text(now) }
end
local epoch = call('HINCRBY', KEYS[1], 'epoch', 1)
call('HSET', KEYS[1], 'worker', ARGV[2], 'at', text(now), 'version', ARGV[3])
call('ZREM', KEYS[2], ARGV[1])
local alive = tonumber(turn[5] or 0)
if turn[4] then alive = math.max(alive, tonumber(call('ZSCORE', KEYS[3], turn[4]) or 0)) end
return { 'begun', epoch, text(now), turn[4] or '', text(alive), call('HGETALL', KEYS[1]) }`);

/**
 * KEYS turn events open waiting tenant cancelled; ARGV id epoch channel firstSeq events settles keep maxEvents, then
 * the events, then names and values of the journal, where `@` is the time. A batch that was written and sent again is
 * known by the place of its events; the journal's part is the same anyway.
 */
export const WRITE: Script = script(`${NOW}
local turn = call('HMGET', KEYS[1], 'epoch', 'seq', 'deadline')
if turn[1] ~= ARGV[2] then return 0 end
local first, count = tonumber(ARGV[4]), tonumber(ARGV[5])
local seq = tonumber(turn[2])
if count > 0 and seq < first + count - 1 then
  for i = 1, count do
    if first + i - 1 > seq then
      call('XADD', KEYS[2], 'MAXLEN', '=', ARGV[8], text(first + i - 1) .. '-0', 'e', ARGV[8 + i])
    end
  end
  call('HSET', KEYS[1], 'seq', first + count - 1)
  if seq == 0 then call('PEXPIREAT', KEYS[2], text(turn[3] + ARGV[7])) end
end
for i = 9 + count, #ARGV, 2 do
  call('HSET', KEYS[1], ARGV[i], (string.gsub(ARGV[i + 1], '^@', text(now) .. ' ')))
end
call('HSET', KEYS[1], 'at', text(now))
if ARGV[6] == '1' then
  call('HSET', KEYS[1], 'settled', 1)
  for i = 3, 5 do call('ZREM', KEYS[i], ARGV[1]) end
  call('SREM', KEYS[6], ARGV[1])
  local over = text(now + ARGV[7])
  call('PEXPIREAT', KEYS[1], over)
  call('PEXPIREAT', KEYS[2], over)
end
${TELL('ARGV[3]')}
return 1`);

/** KEYS turn; ARGV epoch. */
export const OWNS: Script = script(`
return redis.call('HGET', KEYS[1], 'epoch') == ARGV[1] and 1 or 0`);

/** KEYS turn events; ARGV after count. */
export const READ: Script = script(`
local turn = redis.call('HMGET', KEYS[1], 'digest', 'settled')
if not turn[1] then return { 0, 0, {} } end
return { 1, turn[2] and 1 or 0, redis.call('XRANGE', KEYS[2], '(' .. ARGV[1] .. '-0', '+', 'COUNT', ARGV[2]) }`);

/** KEYS turn cancelled; ARGV id ordersChannel. */
export const CANCEL: Script = script(`
local turn = redis.call('HMGET', KEYS[1], 'digest', 'settled')
if not turn[1] or turn[2] then return 0 end
redis.call('HSET', KEYS[1], 'cancelled', 1)
redis.call('SADD', KEYS[2], ARGV[1])
${TELL('ARGV[2]')}
return 1`);

/** KEYS workers versions info cancelled; ARGV worker version report silent. Gives what is to be cancelled. */
export const BEAT: Script = script(`${NOW}
call('ZADD', KEYS[1], text(now), ARGV[1])
call('ZADD', KEYS[2], text(now), ARGV[2])
call('HSET', KEYS[3], ARGV[1], ARGV[3])
for _, gone in ipairs(call('ZRANGEBYSCORE', KEYS[1], '-inf', text(now - ARGV[4]))) do
  call('ZREM', KEYS[1], gone)
  call('HDEL', KEYS[3], gone)
end
return call('SMEMBERS', KEYS[4])`);

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
 * KEYS bucket; ARGV perSecond burst maxWait. The bucket is the moment at which it is full again (GCRA). Gives how long
 * to wait for the place that is kept, or that less one, negative, where it is too long and none is kept.
 */
export const TAKE: Script = script(`${NOW}
local each = 1000 / ARGV[1]
local exact = time[1] * 1000 + time[2] / 1000
local full = math.max(tonumber(call('GET', KEYS[1]) or 0), exact) + each
local wait = math.max(0, math.ceil(full - exact - each * ARGV[2]))
if wait > tonumber(ARGV[3]) then return text(-wait - 1) end
call('SET', KEYS[1], string.format('%.3f', full), 'PX', text(math.ceil(full - exact) + 1000))
return text(wait)`);
