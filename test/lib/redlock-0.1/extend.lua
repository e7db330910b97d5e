local afterlife,clustered=604800000
local B,G,T=redis.call,redis.pcall,string.format
local F,C,p,A9,q=unpack(KEYS)
local Z,J=ARGV[1],ARGV[2]
if Z~='0'then
B('select',Z)
end
local I1=B('time')
local W=I1[1]*1000+math.floor(I1[2] / 1000)
local function M()
return B('type',F).ok
end
local function E()
local H=G('hget',C,'permits')
local t=type(H)=='string'and G('zrange',F,0,0)[1]
return t and B('hget',C,'holder:'..t)
and B('pttl',F)>=0 and tonumber(H)or nil
end
local function u(I,A)
A=A or M()
if A=='string'then
return B('getrange',F,0,256)==I and 1 or 0
elseif A=='hash'then
return tonumber(B('hget',F,I)or 0)or 0
elseif A=='zset'and E()then
return(tonumber(B('zscore',F,I)or 0)or 0)>W and 1 or 0
end
return 0
end
local function m()
local f,j=G('hkeys',C),{}
for _,C8 in ipairs(f.err and{}or f)do
j[#j+1]=C8:match('^hold:(.*)')
end
return j
end
local function s()
local A=M()
if A=='zset'and E()then
for _,I in ipairs(B('zrangebyscore',F,'-inf',W))do
B('zrem',F,I)
G('hdel',C,'holder:'..I,'fence:'..I)
end
A=M()
end
return A
end
local function E7(I,d,A)
if A=='zset'then
B('zadd',F,math.max(W+d,B('zscore',F,I)or 0),I)
end
local Q=B('pttl',F)
if Q<d then
B('pexpire',F,d)
Q=d
end
return Q
end
local function A6(I,Y,Q)
return'last',I:sub(1,16),'until',T('%.0f',W+Q),'ttl',Y
end
local function A2(I,Y,Q)
local B0=tonumber(G('hget',C,'ttl'))or 0
G('hset',C,A6(I,math.max(B0,Y),Q))
end
local function A0(I)
local R=I and G('hget',C,'holder:'..I)
R=type(R)=='string'and R:sub(1,1024)or''
local B8=tonumber(R:match('^since=(%d+)'))
return R,B8 and math.max(W - B8,0)or -1
end
local Y,K=tonumber(ARGV[3]),ARGV[4]
local A=M()
if A=='none'then
return{-1}
elseif u(J,A)==0 then
return{A=='zset'and E()and -1 or 0}
end
local R=A0(J)
local F6=tonumber(R:match('\nttl=(%d+)\n'))or 0
if ARGV[5]=='1'and F6>0 and F6<=86400000 then
Y=F6
end
if A=='hash'and K~='-'and G('hset',C,'hold:'..K,1)==1
and #m()>u(J)then
B('hincrby',F,J,1)
end
local Q=E7(J,Y,A)
A2(J,Y,Q)
G('pexpire',C,Q+afterlife)
local N=G('hget',C,'fence')
return{1,type(N)=='string'and tonumber(N)or 0,R,
A=='zset'and E()or 0,
A=='zset'and B('zscore',F,J)- W or Q}
