-- A fence for Redis: EVAL this 2 FENCE_KEY KEY TOKEN VALUE. Sets KEY if TOKEN is not lower than the
-- highest one that FENCE_KEY has seen, else answers the error STALE. Put your own writes in place of
-- the last SET: a script is one step, so nothing comes in between. FENCE_KEY must not expire, nor be
-- evicted. In a cluster both keys need one hash tag. A failover that loses the last writes may lose what
-- FENCE_KEY has seen, with the data that it guarded.
--
-- Tokens are compared as digits: Lua's numbers are doubles, and print 14 digits. They go from 1 to 10^14:
-- 0 is what clients give who do not lead, and one that is greater would shut out everybody after it.
local function digits(token)
    local found = string.match(token, '^0*([1-9]%d*)$')
    if found and (#found < 15 or found == '100000000000000') then
        return found
    end
    return nil
end

local function is_lower(a, b)
    if #a ~= #b then
        return #a < #b
    end
    return a < b
end

local token = digits(ARGV[1])
if not token then
    return redis.error_reply('BADTOKEN a fencing token is a number from 1 to 10^14')
end
local seen = redis.call('GET', KEYS[1])
local highest = seen and digits(seen) or ''
if seen and highest == '' then
    return redis.error_reply('BADFENCE ' .. KEYS[1] .. ' is no fencing token: something else writes to it')
end
if is_lower(token, highest) then
    return redis.error_reply('STALE ' .. highest .. ' has been seen')
end
redis.call('SET', KEYS[1], token)
redis.call('SET', KEYS[2], ARGV[2])
return redis.status_reply('OK')
