-- A fence for Redis: EVAL this 2 FENCE_KEY KEY TOKEN VALUE. Sets KEY if TOKEN is not lower than the
-- highest one that FENCE_KEY has seen, else answers the error STALE. Put your own writes in place of
-- the last SET: a script is one step, so nothing comes in between. FENCE_KEY must not expire, nor be
-- evicted. In a cluster both keys need one hash tag. A failover that loses the last writes may lose what
-- FENCE_KEY has seen, with the data that it guarded.
--
-- Tokens are compared as digits: Lua's numbers are doubles, and print 14 digits.
local function digits(token)
    if not string.match(token, '^%d+$') then
        return nil
    end
    return (string.gsub(token, '^0+', ''))
end

local function is_lower(a, b)
    if #a ~= #b then
        return #a < #b
    end
    return a < b
end

local token = digits(ARGV[1])
local highest = digits(redis.call('GET', KEYS[1]) or '0')
if not token or not highest then
    return redis.error_reply('BADTOKEN a fencing token is made of digits')
end
if is_lower(token, highest) then
    return redis.error_reply('STALE ' .. highest .. ' has been seen')
end
redis.call('SET', KEYS[1], token)
redis.call('SET', KEYS[2], ARGV[2])
return redis.status_reply('OK')
