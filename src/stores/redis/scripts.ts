import { createHash } from 'node:crypto';

export interface Script {
  readonly text: string;
  readonly sha: string;
}

const script = (body: string): Script => {
  const text = body.trim();
  return { text, sha: createHash('sha1').update(text).digest('hex') };
};

/**
 * A record is one text: `1 state version lock expires created updated ttl operation`, a line of JSON that the claim
 * gave, and with an outcome another one. `lock` is 0 where there is no lease. Scripts read the first line only: Lua's
 * JSON does not keep numbers and empty lists.
 */
const READ = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local read = function(name)
  local value = redis.call('GET', name)
  if not value then return nil end
  local state, version, lock, expires, created, operation =
    string.match(value, '^1 (%a+) (%d+) (%d+) (%d+) (%d+) %d+ %d+ (%S+)\\n')
  local record = {
    value = value, state = state, version = version, lock = tonumber(lock), expires = tonumber(expires),
    created = created, operation = operation
  }
  if state and record.expires <= now then return nil end
  return record
end
`;

/**
 * The next number: one more than the last, and never less than the time in microseconds. So it grows as well over what
 * makes Redis forget the counter: FLUSHALL, a restart without persistence, a failover to a replica that had not heard
 * of the last claim. A plain INCR would give a number twice there, and the old owner could write over the new one's
 * record.
 */
const FENCE = `
local last = math.max(tonumber(redis.call('GET', KEYS[1]) or 0) or 0, time[1] * 1000000 + time[2] - 1)
`;
const FENCE_KEPT = "redis.call('SET', KEYS[1], string.format('%d', last))";

/** Who may not publish (an ACL without channels) still writes: waiters ask from time to time anyway. */
const TELL = (name: string): string => `redis.pcall('PUBLISH', ${name}, '')`;

/**
 * KEYS record; gives the time, and the record when there is one. One that is damaged is handed out, and found so by its
 * reader.
 */
export const GET: Script = script(`${READ}
local record = read(KEYS[1])
return { now, record and record.value }`);

/**
 * KEYS fence, records; ARGV lease ttl, then for each over and `operation`, a new line, `head`. Gives the time, and for
 * each claim its version when it is granted, or a text: `=` and a record that is its own already, `-` and the record in
 * its way, `!` and an error, which keeps no other from its claim.
 *
 * A client that lost the answer may send the command again: by its operation it is known, and gets the record as its
 * own. The fence is kept before the first record is: a script that is broken off between them leaves no number that is
 * given twice. Most keys are new, so each is written if it is, and read only if not: that is half of what reading first
 * cost.
 */
export const CLAIM: Script = script(`${READ}${FENCE}
local first = last
last = last + #KEYS - 1
${FENCE_KEPT}
local call, format = redis.call, string.format
local lock = now + ARGV[1]
local expires = format('%d', math.max(now + ARGV[2], lock))
local times = format(' %d %s %d %d %s ', lock, expires, now, now, ARGV[2])
local claim = function(name, version, over, tail)
  local value = '1 inflight ' .. format('%d', version) .. times .. tail
  if call('SET', name, value, 'NX', 'PXAT', expires) then return version end
  local record = read(name)
  if record then
    local inflight = record.state == 'inflight'
    if inflight and string.sub(tail, 1, #record.operation + 1) == record.operation .. '\\n' then
      return '=' .. record.value
    end
    if record.version ~= over or not record.version or (inflight and record.lock > now) then
      return '-' .. record.value
    end
  end
  call('SET', name, value, 'PXAT', expires)
  return version
end
local answers = { now }
for i = 2, #KEYS do
  local fine, answer = pcall(claim, KEYS[i], first + i - 1, ARGV[2 * i - 1], ARGV[2 * i])
  answers[i] = fine and answer or '!' .. (type(answer) == 'table' and answer.err or tostring(answer))
end
return answers`);

/**
 * KEYS fence record; ARGV version state ttl operation outcome. Gives the record's head, version, and times; or nothing
 * when it was refused. Redis without memory refuses a script's first write if it may take more: a time to live takes
 * none, and what follows it is allowed. What took effect must not be lost to that.
 */
export const SETTLE: Script = script(`${READ}
local record = read(KEYS[2])
if not record then return {} end
if not record.state then return { record.value } end
local head = string.match(record.value, '\\n([^\\n]*)')
if record.state ~= 'inflight' and record.operation == ARGV[4] then
  return { head, tonumber(record.version), tonumber(record.created), record.expires - ARGV[3], record.expires }
end
if record.version ~= ARGV[1] then return {} end
redis.call('PEXPIREAT', KEYS[2], string.format('%d', record.expires))
${FENCE}
last = last + 1
${FENCE_KEPT}
local expires = now + ARGV[3]
local until_text = string.format('%d', expires)
local facts = string.format(
  '1 %s %d 0 %s %s %d %s %s\\n', ARGV[2], last, until_text, record.created, now, ARGV[3], ARGV[4])
redis.call('SET', KEYS[2], facts .. head .. '\\n' .. ARGV[5], 'PXAT', until_text)
${TELL('KEYS[2]')}
return { head, last, tonumber(record.created), now, expires }`);

/**
 * KEYS record; ARGV version lease. A claim that is renewed is not forgotten while it runs, nor refused by a Redis
 * without memory, as in `SETTLE`; what is written is as long as it was.
 */
export const RENEW: Script = script(`${READ}
local record = read(KEYS[1])
if not record or record.state ~= 'inflight' or record.version ~= ARGV[1] then return 0 end
local lock = now + ARGV[2]
local expires = string.format('%d', math.max(lock, record.expires))
redis.call('PEXPIREAT', KEYS[1], expires)
local facts = string.format('1 inflight %s %d %s', ARGV[1], lock, expires)
local renewed = string.gsub(record.value, '^1 inflight %d+ %d+ %d+', facts, 1)
redis.call('SET', KEYS[1], renewed, 'PXAT', expires)
return 1`);

/** KEYS record; ARGV version or ''. Without a version also one that is damaged or no record at all. */
export const DELETE: Script = script(`${READ}
if ARGV[1] ~= '' then
  local record = read(KEYS[1])
  if not record or record.version ~= ARGV[1] then return 0 end
end
local gone = redis.call('DEL', KEYS[1])
if gone == 1 then ${TELL('KEYS[1]')} end
return gone`);

/**
 * KEYS record; ARGV operation over. Undoes a claim by its operation, if it was granted; what it took over stays as
 * something that may have run.
 */
export const ABANDON: Script = script(`${READ}
local record = read(KEYS[1])
if not record or record.state ~= 'inflight' or record.operation ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('PEXPIREAT', KEYS[1], string.format('%d', record.expires))
  local facts = string.format('1 inflight %%1 %d', now)
  redis.call('SET', KEYS[1], (string.gsub(record.value, '^1 inflight (%d+) %d+', facts, 1)), 'KEEPTTL')
end
${TELL('KEYS[1]')}
return 1`);

/** KEYS sets; ARGV keep, then for each set a count and so many members. */
export const INDEX: Script = script(`
local at = 2
for _, set in ipairs(KEYS) do
  local last = at + ARGV[at]
  redis.call('SADD', set, unpack(ARGV, at + 1, last))
  at = last + 1
  if redis.call('PTTL', set) < tonumber(ARGV[1]) then redis.call('PEXPIRE', set, ARGV[1]) end
end`);

/** KEYS record; ARGV version. A write that follows the record's own: what has this one has that one. */
export const CONFIRM: Script = script(`${READ}
local record = read(KEYS[1])
if not record or record.version ~= ARGV[1] then return 0 end
redis.call('PEXPIREAT', KEYS[1], string.format('%d', record.expires))
return 1`);
