/** Command lines with each construct of the shell, besides those that are everyday commands, tricks or attacks. */
import { NODES } from '../differential/constructs.ts'

const lines = (text: string): string[] => text.split('\n').slice(1, -1)

const ESCAPES = String.raw`
  a b e E f n r t v \ ' " ? q cA x x0 x1 x9 xa xF x00 x01 x10 x2f x7F x80 xff x2ff xag x{2f} 0 1 7 8 00 01 07
  10 17 70 77 100 177 178 200 377 000 001 007 010 017 070 0010 18 u u0 u0020 u002f u007f u0080 u0010 u002
  u002ff U0000002f`
  .trim()
  .split(/\s+/)

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

export const CONSTRUCTS: readonly string[] = [
  ...ESCAPES.map((escape) => `cat $'a\\${escape}'`),
  ...Object.values(NODES).flatMap((line) => [`sh -c ${quoted(line)}`, line.replaceAll('PAYLOAD', '1')]),
  ...lines(`
sh -c ls; [[ -f a ]] && ls
sh -c 'ls |& cat'
sh -c 'ls | cat'
sh -c 'ls &> a'
sh -c 'ls >> src/a'
sh -c 'ls >| src/a'
sh -c 'ls <> src/a'
sh -c 'ls <& 3'
sh -c 'x+=1'
sh -c 'x[1]=1'
sh -c 'case x in a) ls;; esac'
sh -c 'case x in a) ls;& esac'
sh -c 'echo \`ls\`'
sh -c 'echo \`ls \\\\a\`'
sh -c 'echo $(ls \\\\a)'
bash -c "sh -c 'bash -c ls'"
while true; do timeout 5 ls; cd ..; done
while true; do find . -exec cat {} +; cd src; done
while true; do timeout 5 env ls; cd src; done
for x in a; do cat ../y; cd src; done
for x in a; do ls; done; cd src
for x in a; do echo a > ../y; pushd src; done
until false; do cat a; popd; done
f() { cd ..; }; ls
f() { ls; }; cat a
f() { rm x; }
for PATH in a; do ls; done
for LC_ALL in a; do ls; done
for SECONDS in a; do ls; done
for x in a; do ls; done
for x; do ls $x; done
select x in a b; do ls; done
select PATH in a b; do ls; done
coproc ls
coproc PATH { ls; }
coproc x { ls; }
export x[1]=a
export x+=.env
cat x+=.env
cat x=.env
dd if=.env
dd if+=.env
dd if[1]=.env
dd if=(.env)
export PATH+=.
export x=1
ls >&1
ls >&2
ls >&a
ls >& a
ls >& a$x
ls >& ~/a
ls &>1
ls &>> src/a
ls <&$x
ls >&$x
ls <> a
ls >| a
ls >> src/a
ls <&-
ls <&3-
ls >&3-
ls 09>&1
ls 9>&1
ls 9<&010
ls < a > /dev/stdin
ls < a > /dev/stdout
ls 3< a > /dev/stdout
ls 0< a > /dev/stdout
ls 2>&3 > /dev/stderr
ls 2>&1 > /dev/stderr
ls 1>&- > /dev/stderr
ls > /dev/fd/1
ls > /dev/null
ls > /dev/zero
ls > /dev/full
ls > /dev/tty
ls > /dev/ttyx
ls < /dev/fd/9
ls < /dev/fd/63
ls < /dev/fd/64
ls < /dev/random
ls < /dev/urandom
ls < x/dev/null
ls > x/dev/null
ls {x}>&-
ls {x}> a
exec > a
exec 3< a
sudo env rm x
sudo sudo rm x
sudo $x
sudo "$x" y
sudo sh -c 'rm x'
sudo sh -c 'sudo rm x'
sudo -C / rm x
sudo --chdir=/x ls
sudo a/b
sudo ./x
sudo ..
sudo x=rm
sudo --x='rm y'
$x ls
./$x
"$x"
"$x"/a
a"$x"
a$x/b
*
*/a
{ls,-a}
PATH=.
PATH=. ls
CI=1 PATH=. npm test
PATH=. env ls
env PATH=. ls
env SECONDS=1 ls
SECONDS=1
SECONDS=1 ls
x=1 ls
x=$y
x=y
x=1
x=\${y}
GIT_EDITOR=rm git commit
GIT_EDITOR='rm y' git commit
cd
cd -
cd a b
cd $x
cd $x && ls
cd src; cat ../a
cd src && cd .. && ls
cd src && cd ../.. && ls
cd /etc && ls
cd /work/project && ls
cd ~ && ls
cd ~/x && cat y
cd -- src && ls
cd -P src && ls
cd -x src && ls
cd src -P && ls
cd '' && ls
cd s* && ls
pushd src; ls
pushd; ls
pushd ..; cat a
popd; ls
(cd ..); ls
(cd src && ls); ls ..
cd .. & ls
cd .. | ls
! cd src && ls
cd src || ls ..
{ cd src; }; ls ..
if cd src; then ls; else ls ..; fi
command cd .. && ls
builtin cd src && ls
\\cd .. && ls
c"d" .. && ls
x=(a)$(b)
x=<(a) b
x=(a b)
x=([1]=a)
x=([a]=1)
x=(\${y[@]})
((ls))
( (ls) )
(ls)
cat a\\\`b
cat "\\$(x)"
cat \\$(x
cat \${x
cat \${x}
cat \${x:-a}
cat \${x:-$(ls)}
cat \${x:-a b}
cat \${x-a}
cat \${x:+a}
cat \${x+a}
cat \${x:=a}
cat \${x=a}
cat \${x:?a}
cat \${SECONDS:=a}
cat \${LINENO=a}
cat \${x#a}
cat \${x##*/}
cat \${x%.ts}
cat \${x/a/b}
cat \${x//a b/c}
cat \${x/a/$(ls)}
cat \${x^}
cat \${x,,}
cat \${x^a b}
cat \${x@Q}
cat \${!x}
cat \${!x*}
cat \${!x[@]}
cat \${x[1]}
cat \${x[@]}
cat \${x[*]}
cat \${x[y]}
cat \${x[1y]}
cat \${#x}
cat \${x:1}
cat \${x:1:2}
cat \${x: -1}
cat \${x:y}
cat \${x:1:y}
cat \${@}
cat \${1}
cat $1
cat $@
cat $#
cat $$
[[ -f a ]]
[[ -v a ]]
[[ -R a ]]
[[ -o a ]]
[[ a == b ]]
[[ a = b ]]
[[ a != b ]]
[[ a =~ b ]]
[[ a < b ]]
[[ a -nt b ]]
[[ a -eq b ]]
[[ a -lt 1 ]]
[[ ! -f a ]]
[[ ( -f a ) || -d b ]]
[[ -f .env && -f /etc/x ]]
test -v x
test -v x[1]
test a -nt b
test ! -e a
[ -v x ]
[ -R x ]
[ a -nt ../b ]
[ -f ../b ]
[ -n ../b ]
[ -f "$x" ]
echo $((1))
echo $(( 1 + 2 * (3 - 4) / 5 % 6 ))
echo $((x))
echo $((1 << 2))
echo $[1]
((1))
let x=1
for ((i = 0; i < 1; i++)); do ls; done
echo !(a)
echo @(a|b)
echo $"a"
cat <<EOF
cat <<EOF
ls {1..3}
ls {a..c}
ls {a,b}
ls {a,$(rm x)}
ls ?
ls [a]
ls [$x]
time ls
time -p ls
! ls
ls; ; ls
ls &&
if ls
sed -n 1p a
sed -n 1,2p a
sed -n '1,$p' a
sed -n '$p' a
sed -n 1d a
sed 1p a
sed -n 1p
sed -n 1p -i a
sed -n x1p a
sed -n 1px a
sed -n 1,p a
sed -n 1p $x
sed -n 1p ../a
date
date +%s
date x
date -s x
date $x
git --no-pager
git --no-pager status
git --no-pager --no-pager status
git status $x
git status -- a
git status -
git branch x
git branch -a x
git tag x
git remote x
git show $x
git log --format=%G?
git log --format=%-GK
git log --format=%h%aG
git log --pretty=%GS
git status ../x
git status /etc
command -v
command -v ls
command -V ls
command -x ls
command -vV ls
command -v $x
command ls
rm x > .env
cat < .env > x
cat .env | tee x
tee .env < x
echo a > "$x"
echo a > *
echo a > src/*
echo a > ~/x
echo a > ~x
echo a > link/x
echo a > src/../x
echo a > .git/config
echo a > .env
echo a > 'a b'
echo a > 'a(b'
echo a > 'a[b'
echo a > 'a*'
echo a > /tmp/x
echo a > /tmp/x/
echo a > ../x
echo a > .
`),
]
