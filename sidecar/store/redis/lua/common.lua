-- What acquire, renew and release share; it is put in front of each of them.
-- KEYS[1] is the lease, KEYS[2] the record. All reads and checks come before the first write.
-- Numbers become text by dec() alone: Lua itself prints no more than 14 digits of them.
if redis.replicate_commands then
  redis.replicate_commands() -- before Redis 5 a script may not write after it has read the clock
end

local LEASE, RECORD = KEYS[1], KEYS[2]
local TOKEN_MAX = 100000000000000
local TOKEN_FAR = 90000000000000 -- no clock comes there, and counting up takes ages
local CLOCK_MAX_US = 9007199254740991
local TTL_MAX_MS = 3600000
local WAIT_MAX_MS = 24 * TTL_MAX_MS
local SET_BACK_MS = 60000
local VALUE_MAX = 512
local REPLICAS_MAX = 10000
local LIST_MAX = 2048

-- The names of all nodes, where this server is one of several that vote; empty: it stands alone.
local list = ''
-- The largest token that is believed. A node alone could lift those of all others to the last there
-- is; where the floor or what was seen is as high, it is meant.
local believed = TOKEN_MAX
local function believe(seen, floor)
  if list ~= '' and math.max(seen, floor) < TOKEN_FAR then
    believed = TOKEN_FAR
  end
end

-- It is asked as the only server there is.
local alone = false

local function dec(number)
  return string.format('%.0f', number)
end

-- A plain decimal number that is not above `most`, else nil.
local function whole(text, most)
  if type(text) ~= 'string' or #text > 16 or not string.find(text, '^%d+$') then
    return nil
  end
  local number = tonumber(text)
  if number > most then
    return nil
  end
  return number
end

local function failed(reply)
  return type(reply) == 'table' and reply.err ~= nil
end

local function wrong_type(reply)
  return failed(reply) and string.find(reply.err, 'WRONGTYPE', 1, true) ~= nil
end

local function info(section)
  local text = redis.pcall('INFO', section) -- may be denied
  if type(text) ~= 'string' then
    return ''
  end
  return text
end

-- Who answers: "run_id:replid", empty while unknown. False: not a master.
local function read_server(state)
  local general, replication = info('server'), info('replication')
  local role = string.match(replication, '\nrole:(%a+)')
  if role and role ~= 'master' then
    return false
  end
  local run = string.match(general, '\nrun_id:(%w+)')
  local history = string.match(replication, '\nmaster_replid:(%w+)')
  state.server = ''
  if run and history and #run <= 40 and #history <= 40 then
    state.server = table.concat({run, history}, ':')
  end
  local replicas = string.match(replication, '\nconnected_slaves:(%d+)')
  state.replicas = whole(replicas, REPLICAS_MAX) or 0
  return true
end

-- The lease: kind is free, ours, held or foreign. Only the nonce is compared.
local function read_lease(state, nonce)
  local value = redis.pcall('GET', LEASE)
  if wrong_type(value) then
    state.kind = 'foreign'
    return nil
  elseif failed(value) then
    return value
  elseif not value then
    state.kind = 'free'
    return nil
  end
  state.kind = 'foreign'
  if #value > VALUE_MAX then
    return nil
  end
  local holder, token, ttl, identity = string.match(value, '^([0-9a-f]+) (%d+) (%d+) (.*)$')
  token, ttl = whole(token, TOKEN_MAX), whole(ttl, TTL_MAX_MS)
  if not holder or #holder ~= 32 or not token or not ttl or ttl == 0 then
    return nil
  end
  if holder ~= nonce and token > believed then
    return nil
  end
  state.kind = holder == nonce and 'ours' or 'held'
  state.nonce, state.token, state.ttl, state.identity = holder, token, ttl, identity
  return nil
end

-- What the store remembers. `corrupt`: nothing may be built upon it, and it is never overwritten.
local function read_record(state)
  local fields = redis.pcall('HMGET', RECORD, 'tok', 'clean', 'end', 'ttl', 'srv', 'nonce', 'how',
    'list')
  local record = {token = 0, ttl = 0}
  state.record = record
  if wrong_type(fields) then
    record.corrupt = true
    return nil
  elseif failed(fields) then
    return fields
  end
  local token, ttl = whole(fields[1], TOKEN_MAX), whole(fields[4], TTL_MAX_MS)
  record.corrupt = fields[1] and not token
  record.token, record.ttl = token or 0, ttl or 0
  record.clean, record.ends, record.server = fields[2], fields[3], fields[5]
  record.nonce, record.how, record.list = fields[6], fields[7], fields[8]
  record.complete = token and token > 0 and ttl and ttl > 0 and whole(record.ends, CLOCK_MAX_US)
    and (record.clean == '0' or record.clean == '1') and record.server and record.nonce
  return nil
end

-- A lease ends at a millisecond that is fixed by the one TIME of the script, whatever the script
-- itself takes; a key is there until that millisecond is over, and that is the recorded end. A
-- follower that sees the lease held never sees it after its end.
local function expiry_ms(state, ttl)
  return math.floor(state.now_us / 1000) + ttl
end

local function end_us(state, ttl)
  return (expiry_ms(state, ttl) + 1) * 1000
end

-- How many names stand in one of two lists only.
local function lists_apart(one, other)
  local seen, apart = {}, 0
  for name in string.gmatch(one, '[^,]+') do
    seen[name] = true
    apart = apart + 1
  end
  for name in string.gmatch(other, '[^,]+') do
    apart = apart + (seen[name] and -1 or 1)
  end
  return apart
end

-- Whether the record's lease may last still. No end is written that is further away than the ttl
-- beside it, or than W where that is above the largest ttl, but clocks are set back a little. One that
-- is would hold up everybody for as long as it says: it proves nothing, so who takes the lock waits.
local function unexpired(state)
  local record = state.record
  local ends = whole(record.ends, CLOCK_MAX_US)
  local most = record.ttl < TTL_MAX_MS and record.ttl or WAIT_MAX_MS
  return ends and ends > state.now_us and ends <= end_us(state, most + SET_BACK_MS)
end

-- How far the list of a lease, or of a record that has not run out, is from ours: 0, 1 or 2. Where
-- the record has no list, somebody takes this server for the only one. Another list that has run out
-- is told of too: its leader may be cut off from this node only.
local function read_list(state)
  local record = state.record
  state.apart = 0
  local known = record.list or (record.complete and '')
  if list == '' or not known or #known > LIST_MAX then
    return
  end
  if state.kind == 'held' or state.kind == 'ours' or unexpired(state) then
    state.apart = math.min(2, lists_apart(list, known))
  elseif lists_apart(list, known) > 0 then
    state.ran_out = true
  end
end

-- The record names a list while this server is asked as the only one: a leader by a majority of
-- those nodes need not have this one, and nothing here would show it. Only people know better.
local function listed(state)
  return alone and (state.record.list or '') ~= ''
end

-- Everything there is to know, read once; or nil and an error.
local function look(nonce)
  local state = {}
  if not read_server(state) then
    return nil, redis.error_reply('GAVELNOTMASTER the server is not a master')
  end
  local time = redis.call('TIME')
  state.now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local problem = read_lease(state, nonce) or read_record(state)
  if problem then
    return nil, problem
  end
  read_list(state)
  return state
end

-- Nothing is granted upon a token that is not believed; what is held already goes on.
local function too_far(state)
  if state.record.token <= believed then
    return nil
  end
  return redis.error_reply(table.concat({'GAVELTOKEN', RECORD, 'has tok', dec(state.record.token),
    'which no clock explains: put it right, or raise --token-floor'}, ' '))
end

local function corrupt()
  return redis.error_reply(table.concat({'GAVELRECORD', RECORD,
    'is no hash, or its field tok is no number up to 10^14: put it right'}, ' '))
end

-- The record is about this grant, on this server.
local function named(state)
  local record = state.record
  return record.complete and state.server ~= '' and record.server == state.server
    and record.nonce == state.nonce
end

-- Why a record that is not about this grant proves nothing.
local function no_proof(state)
  local record = state.record
  if state.server == '' then
    return 'unknown-server'
  elseif record.complete and record.server ~= state.server then
    return 'other-server'
  end
  return 'no-record'
end

-- Every answer begins like this; where there are several nodes it ends with a word on their list.
local function answer(status, state, token, ttl, ...)
  local words = {status, dec(token), dec(ttl), dec(state.now_us), state.server,
    dec(state.replicas), ...}
  if list ~= '' then
    words[#words + 1] = state.ran_out and '3' or dec(state.apart)
  end
  return words
end

-- The store's own no: foreign, free or held. Sets the expiry of a key that would outlive its ttl.
local function refusal(state)
  local record = state.record
  if state.kind ~= 'held' then
    local status = state.kind == 'free' and listed(state) and 'listed' or state.kind
    return answer(status, state, record.token, record.ttl)
  end
  local left = redis.call('PTTL', LEASE)
  local stuck = left == -1 or left > state.ttl
  if stuck and state.ttl >= 300 and not failed(redis.pcall('PEXPIRE', LEASE, dec(state.ttl))) then
    left = state.ttl
  end
  return answer(listed(state) and 'held-listed' or 'held', state, math.max(record.token, state.token),
    math.max(record.ttl, state.ttl), state.nonce, string.sub(state.identity, 1, 129), dec(left),
    stuck and '1' or '0')
end

-- The one rule for tokens: above all that was recorded or seen, and not behind the clock.
local function mint(state, seen, floor, held)
  local clock_ms = math.floor(state.now_us / 1000)
  local token = math.max(state.record.token + 1, seen + 1, held + 1, clock_ms, floor)
  if token > TOKEN_MAX then
    return nil, redis.error_reply(table.concat({
      'GAVELTOKEN the next token would be above 10^14: recorded', dec(state.record.token), 'seen',
      dec(seen), 'clock', dec(clock_ms), 'floor', dec(floor)}, ' '))
  end
  return token
end

local function write_record(state, nonce, token, ends, longest, how)
  local words = {'HSET', RECORD, 'tok', dec(token), 'clean', '0', 'end', dec(ends),
    'ttl', dec(longest), 'srv', state.server, 'nonce', nonce, 'how', how}
  if list ~= '' or state.record.list then -- another's list must not stay
    words[#words + 1] = 'list'
    words[#words + 1] = list
  end
  local reply = redis.pcall(unpack(words))
  return failed(reply) and reply or nil
end

local function write_lease(state, nonce, token, ttl, identity)
  redis.call('SET', LEASE, table.concat({nonce, dec(token), dec(ttl), identity}, ' '),
    'PX', dec(ttl))
  redis.call('PEXPIREAT', LEASE, dec(expiry_ms(state, ttl)))
end

-- Extends our lease: the expiry first, which full memory cannot refuse, then the record. A record
-- that is not about this grant is written anew and proves nothing. The recorded end never goes back
-- within a grant: it may stand for an older lease. Returns an error of the record.
local function extend(state, ttl, wait, token, how)
  redis.call('PEXPIREAT', LEASE, dec(expiry_ms(state, ttl)))
  local record = state.record
  if record.corrupt then
    return nil
  end
  local longest = math.max(record.ttl, ttl)
  local ends = end_us(state, ttl)
  if not named(state) then
    how = table.concat({'none', no_proof(state)}, ' ')
    longest = math.max(longest, math.min(wait, TTL_MAX_MS))
    ends = end_us(state, math.max(longest, wait))
  end
  if record.complete and (record.nonce == state.nonce or record.server == state.server) then
    ends = math.max(ends, tonumber(record.ends))
  end
  local problem = write_record(state, state.nonce, math.max(record.token, token), ends, longest,
    how or record.how or 'none no-record')
  if problem and failed(redis.pcall('HDEL', RECORD, 'end')) then
    return problem, true
  end
  return problem -- without an end, which is behind by now, the record proves nothing
end

