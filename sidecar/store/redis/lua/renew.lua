-- Extends our own lease; never makes one. ARGV: nonce, ttl in ms, '1' to mint the token anew,
-- largest token seen, token floor, W in ms.
local nonce, ttl, raise = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local seen, floor, wait = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

local state, problem = look(nonce)
if not state then
  return problem
elseif state.kind ~= 'ours' then
  return refusal(state)
end

local token = state.token
if raise then
  if state.record.corrupt then
    return corrupt()
  end
  token, problem = mint(state, seen, floor, state.token)
  if not token then
    return problem
  end
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
