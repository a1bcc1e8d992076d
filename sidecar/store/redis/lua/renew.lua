-- Extends our own lease; never makes one. ARGV: nonce, ttl in ms, '1' to mint the token anew,
-- largest token seen, token floor, W in ms; of one node among several the least token
-- that lease and record may have, and the list of nodes.
local nonce, ttl, raise = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local seen, floor, wait = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local least = tonumber(ARGV[7] or '0')
list = ARGV[8] or ''
believe(seen, floor)

local state, problem = look(nonce)
if not state then
  return problem
elseif state.kind ~= 'ours' then
  return too_far(state) or refusal(state)
end

local token = math.max(state.token, least)
if raise then
  problem = too_far(state)
  if problem then
    return problem
  end
  token, problem = mint(state, seen, floor, token)
  if not token then
    return problem
  end
end
raise = token > state.token
if raise and state.record.corrupt then
  return corrupt()
end

local stale
problem, stale = extend(state, ttl, wait, token, nil)
if stale then
  return problem
end
if raise then
  if problem then
    return problem -- a token that nothing remembers must not be used
  end
  write_lease(state, nonce, token, ttl, state.identity)
end
return answer('yes', state, token, math.max(state.record.ttl, ttl))
