-- Gives our own lease back. ARGV: nonce, '1' to write the clean mark, the channel to tell, the
-- grant's token as its holder knows it, the server that confirmed it last: the mark is for exactly
-- that grant, on exactly that server.
local nonce, clean, channel, token = ARGV[1], ARGV[2] == '1', ARGV[3], tonumber(ARGV[4])
local server = ARGV[5]

local state, problem = look(nonce)
if not state then
  return problem
elseif state.kind ~= 'ours' then
  return refusal(state)
end

local record = state.record
clean = clean and not record.corrupt and named(state) and record.token == state.token
  and record.token == token and state.server == server
redis.call('DEL', LEASE)
-- Full memory or missing rights cost the mark, not the release.
if clean then
  clean = not failed(redis.pcall('HSET', RECORD, 'clean', '1', 'end', dec(state.now_us)))
elseif record.clean == '1' and not record.corrupt then
  redis.pcall('HSET', RECORD, 'clean', '0')
end
redis.pcall('PUBLISH', channel,
  table.concat({dec(state.token), clean and 'clean' or 'unclean', nonce}, ' '))
return answer('yes', state, state.token, record.ttl)
