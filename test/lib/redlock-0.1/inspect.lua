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
local E9=0
local function G9(P,R)
P[#P+1]=R
E9=E9+#R
return E9<45000
end
local function g(I,Q,h)
local R,B2=A0(I)
return T('%s %.0f %.0f %.0f\n',redis.sha1hex(I),Q,B2,h)..R
end
local function C2(A4,D7)
local A,Q,P=M(),B('pttl',F),{}
if A=='none'then
return P,0
elseif A=='string'then
if A4==0 then
G9(P,g(B('getrange',F,0,256),Q,1))
end
return P,1
elseif A=='hash'and(Q>=0 or B('exists',C)==1)then
local U=B('hlen',F)
local f=A4==0 and U<=60 and B('hgetall',F)or{}
for i=1,#f,2 do
local h=tonumber(f[i+1])or 1
if not G9(P,g(f[i],Q,h>=1 and h<2^53 and h or 1))then
break
end
end
return P,U
elseif A=='zset'and E()then
local H0=T('(%.0f',W)
local b=B('zrangebyscore',F,H0,'+inf','withscores','limit',A4,D7)
for i=1,#b,2 do
local D4=math.min(tonumber(b[i+1]),2^53)
if not G9(P,g(b[i],D4 - W,1))then
break
end
end
return P,B('zcount',F,H0,'+inf')
end
end
local P,U={}
if J~=''then
local A5=u(J)
P=A5>0 and{g(J,B('pttl',F),A5)}
U=math.min(A5,1)
else
P,U=C2(tonumber(ARGV[3]),60)
end
local function h(o)
local c=G('zcard',o)
return type(c)=='number'and c or 0
end
local function E4(A3,L,G3)
local D=G('hget',A9,L)
local A,H,R=
(type(D)=='string'and D or''):match('^%d+ (%l+) (%d+) [^\n]*\n(.*)$')
local E3=math.max(math.min(W - tonumber(G3),2^53),0)
return G9(A3,T('%s %.0f %s %s\n',redis.sha1hex(L),E3,
(A or'-'):sub(1,8),(H or'0'):sub(1,18))..(R or''):sub(1,1024))
end
local function H6(A4)
local A3={}
for _,o in ipairs({p,q})do
local b=#A3<60 and G('zrange',o,A4,A4+59 - #A3,'withscores')
for i=1,b and not b.err and #b or 0,2 do
if not E4(A3,b[i],b[i+1])then
return A3
end
end
A4=math.max(A4 - h(o),0)
end
return A3
end
local H9=G('info','replication')
local N=G('hget',C,'fence')
return{not U and -1 or U>0 and 1 or 0,M(),E()or -1,
type(N)=='string'and tonumber(N)or 0,U or 0,
h(p)+h(q),P or{},H6(tonumber(ARGV[4])),
type(H9)=='string'and H9:find('role:slave',1,true)and 1 or 0}
