-- Takes the lock, or tells who holds it. ARGV: nonce, identity, ttl in ms, largest token seen,
-- token floor, '1' to take and '0' to look only, W in ms; of one node among several the token
-- of a lease that is to be made anew there (0: none), and the list of nodes.
local nonce, identity, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
local seen, floor, take = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local wait, again = tonumber(ARGV[7]), tonumber(ARGV[8] or '0')
list = ARGV[9] or ''
alone = list == ''
believe(seen, floor)

-- How the last lease ended, as far as the record proves it, and why not better.
local function judge(state)
  local record = state.record
  if state.server == '' or not record.complete or record.server ~= state.server then
    return 'none', no_proof(state)
  elseif record.token < seen then
    return 'none', 'token-behind'
  elseif record.clean == '1' then
    return 'clean', 'none'
  end
  return 'end', 'none'
end

-- The answer that was given with the grant. A recorded end does not prove anything a second time.
local function kept(state)
  if not named(state) then
    return 'none', no_proof(state)
  elseif state.record.how == 'clean' then
    return 'clean', 'none'
  end
  local doubt = string.match(state.record.how or '', '^none ([a-z-]+)$')
  return 'none', doubt or 'unclean'
end

local state, problem = look(nonce)
if not state then
  return problem
end
local record = state.record
problem = state.kind ~= 'ours' and too_far(state)
if problem then
  return problem
end

if state.kind == 'ours' then
  local how, doubt = kept(state)
  local text = how == 'clean' and 'clean' or table.concat({how, doubt}, ' ')
  problem = extend(state, ttl, wait, state.token, text)
  if problem then
    return problem
  end
  return answer('yes', state, state.token, math.max(ttl, record.ttl), how, doubt, '0')
elseif state.kind ~= 'free' then
  return refusal(state)
elseif record.corrupt then
  return corrupt()
elseif not take or state.apart > 1 or listed(state) then
  return refusal(state)
end

local token = again
if again == 0 or again < record.token then
  token, problem = mint(state, seen, floor, 0)
end
if not token then
  return problem
end
local how, doubt = judge(state)
local longest, lasts = ttl, ttl
if how ~= 'clean' then
  -- An older lease may be trusted for W still: the end of this one must not be taken for its end,
  -- and whoever comes next has to know of W.
  longest = math.max(ttl, record.ttl, math.min(wait, TTL_MAX_MS))
  lasts = math.max(longest, wait)
end
local text = how == 'none' and table.concat({how, doubt}, ' ') or how
-- The record first: if the lease cannot be written after it, one token and a proof are lost, but
-- no token can be given out twice.
problem = write_record(state, nonce, token, end_us(state, lasts), longest, text)
if problem then
  return problem
end
write_lease(state, nonce, token, ttl, identity)
return answer('yes', state, token, math.max(ttl, record.ttl), how, doubt,
  how == 'end' and record.ends or '0')
