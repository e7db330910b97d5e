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
local function D9(I,K)
return K=='-'and I or K..':'..I
end
local function C6(L)
local R=B('hget',A9,L)
local Y,A,H,z,K,r,I3,F5,V=
(R or''):match('^(%d+) (%l+) (%d+) (%d+) (%S+) (%d+) ?([0+]?)(%d*)\n(.*)$')
local I5=Y and L:sub(1,#K+1)==K..':'
return Y and{I=I5 and L:sub(#K+2)or L,
Y=tonumber(Y),A=A,H=tonumber(H),
z=tonumber(z),K=K,r=r,F5=tonumber(F5)or W,
F8=I3~='',V=V}
end
local function S(...)
B('zrem',p,...)
B('zrem',q,...)
B('hdel',A9,...)
end
local function H8(I,D,A)
if A=='none'then
return true
elseif A~=D.A then
return false
elseif A=='hash'then
return B('hexists',F,I)==1
end
return A=='zset'and E()==D.H
and(D.H==0 or B('zcard',F)<D.H)
end
local l
local function A8()
local N=l or tonumber(B('hget',C,'fence')or 0)
l=N and N>=0 and N<2^53 - 1 and N%1==0 and N
return l
end
local function F3(I,D,B3)
local X=A8()or error('WRONGTYPE the record holds no fence')
if(D.A1 or 0)>0 then
X=math.max(X,D.A1)
elseif B3 and X>0 then
return tonumber(B('hget',C,'fence:'..I))or X,X
else
X=math.max(X+1,math.min(D.z,W+86400000))
end
return X,X
end
local function w(A1)
for _,C8 in ipairs(B('hkeys',C))do
if not(' fence broken began '..A1):find(' '..C8..' ',1,true)then
B('hdel',C,C8)
end
end
end
local function C5(A)
local D4=A=='none'and tonumber(B('hget',C,'until'))or 0
if D4>W+100 then
B('hset',C,'began',T('%.0f',W))
G('hdel',C,'last','until')
end
end
local function C9(I,D,d,A)
local B3=A~='none'and u(I,A)>0
local N,X=F3(I,D,B3)
local R,f=D.V,{'fence',T('%.0f',X)}
local function G7(...)
for _,G6 in ipairs({...})do
f[#f+1]=G6
end
end
if not R:find('^since=')then
R=T('since=%.0f\n',W)..R
end
if not B3 or D.A~='hash'then
G7('holder:'..I,R)
end
if D.A=='zset'then
G7('permits',D.H,'fence:'..I,T('%.0f',N))
end
if A=='none'then
w('last until ttl ')
G7(A6(I,D.Y,d))
end
B('hset',C,unpack(f))
l=X
B('pexpire',C,d+afterlife)
if D.A=='string'and not B3 then
B('set',F,I,'px',d)
return N
elseif D.A=='zset'then
B('zadd',F,'nx',W+d,I)
elseif D.A=='hash'and B('hset',C,'hold:'..D.K,1)==1 then
B('hincrby',F,I,1)
end
local Q=E7(I,d,D.A)
if A~='none'then
A2(I,D.Y,Q)
end
return N
end
local function F2(I,K)
local I9=u(I)- #m()
local j=G('hdel',C,'hold:'..K)~=0
if I9>0 then
return G('hset',C,'gone:'..K,1)~=0
end
return j
end
local function G2(I,K,A)
if A=='string'then
B('del',F)
elseif A=='zset'then
B('zrem',F,I)
elseif not F2(I,K)or B('hincrby',F,I,-1)>0 then
return
else
B('hdel',F,I)
end
local I7=A=='string'or B('exists',F)==0
G('hdel',C,'holder:'..I,'fence:'..I,unpack(I7 and{'until','permits'}or{}))
end
local y=clustered and redis.REDIS_VERSION_NUM
local function E2(L,...)
return G(y and'spublish'or'publish',C..':'..L,table.concat({...},' '))
end
local function C4(c)
local D3={}
for i,L in ipairs(c)do
D3[i]=C..':'..L
end
return G('pubsub',y and'shardnumsub'or'numsub',unpack(D3))
end
local function H3(L,D,k)
return C4({L})[2]==0 or not k and W - D.F5>10000
end
local B9=3000
local function B5(L,D,A)
local d=math.min(D.Y,B9)
local D4=math.min(math.max(W - D.F5,0)+d,D.Y)
local E5=math.max(W -(tonumber(G('hget',C,'began'))or W),0)
local N=C9(D.I,D,d,A)
local D0=E2(L,D.r,T('%.0f',N),D4,D.K,
D.F8 and E5 or nil)
local C3=type(D0)=='number'
if C3 then
S(L)
end
if not C3 or D0==0 then
G2(D.I,D.K,D.A)
end
return C3
end
local D7=100
local function H2()
for _,o in ipairs({p,q})do
for _,L in ipairs(B('zrange',o,-5,-1))do
E2(L,0,0,0,'-')
end
end
end
local function F7(H7,v)
local c,C3=B('zrangebyscore',q,'-inf',H7,'limit',0,D7),false
local D0=c[1] and C4(c)
for i,L in ipairs(c)do
local D=L~=v and D0[2*i]~=0 and C6(L)
if L==v then
C3=true
elseif D then
E2(L,D.r,0,math.min(D.Y,10000),D.K)
end
end
if c[1] then
S(unpack(c))
end
return C3,not c[D7]
end
local function E1(v)
local F1,I6,C1
C5(s())
for _=1,D7 do
local A=M()
local e,G3=unpack(B('zrange',p,0,0,'withscores'))
local D=e and C6(e)
local k=D and H8(D.I,D,A)
if e and(not D or e~=v and H3(e,D,k))then
S(e)
else
if not F1 and A=='none'then
F1,I6=F7(G3 or'+inf',v)
end
if not e and I6==false then
break
elseif k and e==v then
S(e)
return C9(D.I,D,D.Y,A)
elseif e and not k and C1 then
E2(e,0,0,B9,'-')
end
C1=k and B5(e,D,A)
if not C1 then
return F1 and 0
end
end
end
H2()
return F1 and 0
end
local function E6(A)
if A~='string'and A~='hash'and A~='zset'then
return false
elseif B('pttl',F)>=0 then
return true
end
local t=A=='string'and B('getrange',F,0,256)
or A=='hash'and B('hlen',F)==1 and B('hkeys',F)[1]
or A=='zset'and B('zrange',F,0,0)[1]
return t and type(G('hget',C,'holder:'..t))=='string'
end
local function G1(C7,A)
local A7=A=='zset'and'sorted set'or A:sub(1,20)
local I4=A=='string'or A=='hash'or A=='zset'
return redis.error_reply(T('%s KEY is a %s%s, which is not a lock',C7,A7,
I4 and' without an expiry'or''))
end
local Y,z,V,A1,A,H,K,r,I2,E3,D2=
unpack(ARGV,3)
local D={Y=tonumber(Y),z=tonumber(z),V=V,
A1=tonumber(A1),A=A,H=tonumber(H),K=K}
local D8=D9(J,K)
local o=A=='none'and q or p
local function G8(O)
C5(O)
local E8,D6=tonumber(B('hget',C,'began')),B('hget',C,'last')
if A~='none'and not E8 then
E8=W
B('hset',C,'began',T('%.0f',W))
G('pexpire',C,math.max(B('pttl',F),0)+afterlife)
end
return math.max(math.min(W -(E8 or W),2^53),0),D6 or''
end
if not A8()then
return redis.error_reply('WRONGTYPE the record holds no fence')
end
local O=s()
if O=='zset'and A=='zset'and E()and E()~=D.H then
return redis.error_reply(T('PERMITS KEY is held with %s now, not with %s',
E()==0 and'-s'or'-P '..E(),
D.H==0 and'-s'or'-P '..H))
end
local E5,D6=G8(O)
local D5=H8(J,D,O)
if(O==A and u(J,O)>0)or(D.A1>0 and D5)then
S(D8)
return{1,C9(J,D,D.Y,O),E5,D6}
end
local L=-1
local F9=B('exists',p,q)>0
if not F9 and D5 then
return{1,A=='none'and 0 or C9(J,D,D.Y,O),E5,D6}
elseif D.A1==0 and O~='none'and O~='string'and not E6(O)then
S(D8)
return G1('NOLOCK',O)
elseif D.A1==0 and(I2=='1'or F9)then
B('zadd',o,'nx',W - E3,D8)
B('hset',A9,D8,table.concat({Y,A,H,z,K,r,
T('%s%.0f',K=='-'and'0'or'+',W)},' ')..'\n'..V)
B('pexpire',o,60000)
B('pexpire',A9,60000)
local N=E1(D8)
if N then
return{1,N,E5,D6}
end
L=B('zrank',o,D8)or -1
end
if I2~='1'then
S(D8)
end
local Q,h,of,x=B('pttl',F),1,0
O=M()
local E0=O=='none'and''or'*'
if O=='string'then
x=B('getrange',F,0,256)
E0=x:sub(1,16)
elseif O=='hash'and B('hlen',F)==1 then
x=B('hkeys',F)[1]
E0=x:sub(1,16)
elseif O=='zset'and E()then
local b,B0=B('zrange',F,0,49,'withscores'),-2
h,of=B('zcard',F),E()
for i=1,#b,2 do
local _,B8=A0(b[i])
if B8>B0 then
x,B0=b[i],B8
end
end
if A=='zset'and Q>=0 then
Q=math.max(b[2] - W,0)
end
end
local R,B2=A0(x)
return{0,Q,B2,R,L,D2~=''and u(D2,O)>0 and 1 or 0,
E0,E5,R~=''and math.min(tonumber(B('hget',C,'ttl'))or 0,2^53)or 0,h,of}
