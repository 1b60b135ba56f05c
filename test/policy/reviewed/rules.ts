/** Rules, and the calls with which each of them is tried. */

const words = (text: string): string[] => text.trim().split(/\s+/)
const lines = (text: string): string[] => text.split('\n').slice(1, -1)

/** Also those that are no rules. */
export const WRITTEN: readonly string[] = lines(`
Bash
Bash(*)
Bash()
Bash( ls )
Bash(ls
Bash(ls:*)
Bash(ls:*:*)
Bash(:*)
Bash(ls *)
Bash(ls * x)
Bash(* ls)
Bash(ls**)
Bash(l?)
Bash(ls "a b")
Bash(ls 'a)
Bash(ls \\*)
Bash(ls; rm x)
Bash(ls && rm)
Bash(ls > x)
Bash($x)
Bash(env ls)
Bash(a=b ls)
bash(ls)
Read
Read(*)
Read(.)
Read(a)
Read([a)
Read(a])
Read({a,b})
Read(a{)
Read(!a)
Read(a\\*)
Read(..)
Read(a/..)
Read(../a)
Edit
Edit(~)
Edit(~x)
Edit(/)
Write(a)
Glob(a)
Task(a)
Task
WebFetch
WebFetch(*)
WebFetch(example.org)
WebFetch(domain:)
WebFetch(domain:*)
WebFetch(domain:*.)
WebFetch(domain:*.example.org)
WebFetch(domain:a.*.org)
WebFetch(domain:a b)
WebFetch(domain:a/b)
WebFetch(domain:a:80)
WebFetch(domain:x@y)
WebFetch(domain:a?b)
WebFetch(domain:a#b)
WebFetch(domain:[::1])
WebFetch(x domain:a)
WebFetch(domain:a.)
mcp__
mcp____
mcp____x
mcp__*
mcp__*__x
mcp__a
mcp__a__
mcp__a__*
mcp__a__b
mcp__a__b*
mcp__a*
mcp__a*__b
mcp__a_b
mcp__a__b__c
*
a*
*a
a b
(x)
1a
a-b
_a
`)

export const PATHS = {
  rules: words(`
    . .env ./.env /.env //work/project/.env ~/.env ~/** ** * *.ts **/*.ts src src/ src/* src/** src/**/* src/**/a.ts s* s?c
    s[qr]c s[!x]c src/*.ts /src/a.ts //etc/** //etc/hosts //** .* .*/** *env **/.env */.env a/**/b **/b/** //work/**
    /** //work/project //work/project/src/a* src/*a*b*
    `).map((path) => `Read(${path})`),
  paths: words(`
    .env ./.env src src/a.ts src/b/a.ts src/b/c/a.ts a.ts /work/project/.env /work/project /work /etc /etc/hosts ~/.env
    /home/user/.env /home/user ../project/.env src/../.env .git/config a/b a/x/b a/x/y/b b/c a/.env sxc x/src .ENV src/aab
    src/ab src/bab src/.env.ts /
    `),
  words: words(`
    cat_.env cat_* cat_.* cat_s*/a.ts cat_src/*.ts cat_$x cat_src/$x cat_$x/a.ts cat_"$x".ts cat_.e"$x" cat_{a,.env}
    cat_~/* cat_/etc/* cat_../* cat_*/* cat_*/*/b cat_[.]env cat_?env cat_src/?.ts cat_src/[ab].ts grep_-r_x_. grep_-r_x_src
    rg_x rg_x_src rg_--hidden_x cp_-r_src_x cp_-r_._/tmp ls_src ls cat_<_.env cat_<_$x echo_a_>_.env tar_cf_x_src rm_-rf_src
    `).map((line) => line.replaceAll('_', ' ')),
}

export const COMMANDS = {
  rules: lines(`
Bash(npm)
Bash(npm *)
Bash(npm:*)
Bash(npm run)
Bash(npm run *)
Bash(npm run:*)
Bash(npm run test*)
Bash(npm run *:unit)
Bash(npm * test)
Bash(npm*)
Bash(* test)
Bash(*)
Bash(git status)
Bash(git -C * status)
Bash(timeout 5 npm)
Bash(timeout:*)
Bash(sudo:*)
Bash(sudo npm:*)
Bash(sudo -u x *)
Bash(find . -exec npm:*)
Bash(find:*)
Bash(bash ./x)
Bash(bash:*)
Bash(env:*)
Bash(xargs npm)
Bash(python3:*)
Bash(cat:*)
`),
  commands: lines(`
npm
npm run
npm run test
npm run test:unit
npm run x:unit
npm run testing x
npm  run  test
npm test
npm x test
npm run a test
npmx
/usr/bin/npm run
./npm run
npm $x
$x run
npm run"$x"
npm r*
n"p"m run
npm run | cat
npm run && npm test
npm run > x
timeout 5 npm
timeout 5 npm run
sudo npm
sudo npm run
sudo -u x npm
sudo sh -c 'npm run'
find . -exec npm run +
find . -name x
bash ./x
bash -c 'npm run'
bash -c 'timeout 5 npm'
env a=b npm
env PATH=. npm
xargs npm
xargs npm run
python3 -c 'npm run'
python3 -c 'import os; os.system("npm run test")'
python3 x npm run
git status
git -C x status
git -C x -c y status
cat x
cat
a=b npm run
PATH=. npm run
eval npm run
eval "$x"
(npm run)
for x in a; do npm run; done
if npm run; then npm; fi
f() { npm run; }
x=$(npm run)
GIT_EDITOR='npm run' git commit
`),
}

export const FETCHES = {
  rules: lines(`
WebFetch
WebFetch(domain:example.org)
WebFetch(domain:*.example.org)
WebFetch(domain:EXAMPLE.org.)
WebFetch(domain:bücher.de)
WebFetch(domain:127.0.0.1)
`),
  urls: lines(`
https://example.org
http://example.org/
https://EXAMPLE.ORG./x
https://a.example.org/x
https://a.b.example.org
https://example.org.evil.net
https://evilexample.org
https://user@example.org:8080/?a#b
https://evil.net/example.org
https://xn--bcher-kva.de
http://127.0.0.1
http://0x7f.1
not a url
file:///etc
https:///
`),
}

export const TOOLS = {
  rules: words('* mcp__* mcp__a mcp__a__* mcp__a__b mcp__a__b* mcp__a__*b mcp__a_b Task Read Edit Bash WebFetch'),
  tools: words('mcp__a mcp__a__b mcp__a__bc mcp__a__ab mcp__a_b__c mcp__a__ mcp__ab__b mcp__b__b Task Tasks Read Bash'),
}
