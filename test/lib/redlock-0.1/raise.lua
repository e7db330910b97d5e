local afterlife,clustered=604800000
local F,C=KEYS[1],KEYS[2]
local Z,J,N=unpack(ARGV)
local B=redis.call
if Z~='0'then
B('select',Z)
end
local A=B('type',F).ok
if not(A=='string'and B('getrange',F,0,256)==J
or A=='hash'and B('hget',F,J)
or A=='zset'and B('zscore',F,J))then
return{0}
end
if(tonumber(B('hget',C,'fence')or 0)or 0)<tonumber(N)then
B('hset',C,'fence',N)
end
return{1}
