/** Which files a search reads: rules about it in words, each with calls that show it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Row } from './decisions.ts'
import { decided, signOf } from './decisions.ts'
import { useProjects } from './real-project.ts'

const makeProject = useProjects()
const project = await makeProject('searched', { '.env': 'x', '.gitignore': '.env\n', 'src/a.ts': 'x' })

const ROWS: readonly Row[] = [
  [
    '`rg` leaves out hidden files, unless an option says otherwise',
    `
    . rg x
    . rg x .
    . rg -n -i x
    . rg -u x
    . rg --unrestricted x
    . rg --no-hidden x
    . rg -n --no-ignore x
    ? rg -uu x
    ? rg -u -u x
    ? rg -nuu x
    ? rg -u --unrestricted x
    ? rg --unrestricted --unrestricted x
    ? rg -. x
    ? rg -n. x
    ? rg --hidden x
    ? rg --unknown x
    x rg x .env
    . rg --hidden x src
    `,
  ],
  [
    'only types of files without any that are hidden are known',
    `
    . rg -t ts x
    . rg -tts x
    . rg -n -tts x
    . rg --type ts x
    . rg --type=ts x
    ? rg -t all x
    ? rg -t objc x
    ? rg -t cmake x
    ? rg -ttsx x
    ? rg --type=all x
    ? rg --type all x
    ? rg x -t
    `,
  ],
  [
    'a glob of `rg` also includes hidden files, if they fit it',
    `
    . rg -g "*.ts" x
    . rg --glob "*.ts" x
    ? rg --glob=src/*.ts x
    . rg --glob="*.ts" x
    . rg -g "*.ts" -g "*.js" x
    . rg -g "src/*.ts" x
    . rg -g ".env/x" x
    . rg -g "!*.ts" x
    . rg --glob "!*.ts" x
    . rg --iglob "!*.ts" x
    ? rg -g ".env" x
    ? rg -g ".e*" x
    ? rg -g "*" x
    ? rg -g ".en?" x
    ? rg --glob ".env" x
    ? rg --glob=.env x
    ? rg -g "src/.env" x
    ? rg -g ".env" -g "*.ts" x
    ? rg -g "*.ts" -g ".env" x
    ? rg -g "{.env,x}" x
    ? rg -g "[.]env" x
    ? rg -g "\\\\.env" x
    ? rg -g "*.ts" -g "[.]env" x
    ? rg -g "!*.ts" -. x
    ? rg -g x"$y" x
    ? rg -g "$y" x
    ? rg --iglob .ENV x
    ? rg --iglob "*.ts" x
    ? rg -g "*.ts" --iglob .ENV x
    ? rg x -g
    . rg -g "*.ts" --hidden x
    . rg -g "*.ts" --iglob "!x" x
    `,
  ],
  [
    '`grep` looks into directories where an option says so, also into hidden files',
    `
    . grep x src/a.ts
    . grep x .
    . grep -n x .
    ? grep -r x
    ? grep -r x .
    ? grep -nr x
    ? grep -R x
    ? grep -d recurse x .
    ? grep -drecurse x .
    ? grep --recursive x
    ? grep --dereference-recursive x
    ? egrep -r x
    ? fgrep -r x
    . grep -r x src
    . grep -r x src/a.ts
    ? grep -r x src .
    ? grep --rec x .
    ? grep --unknown -r x .
    ? grep --unknown -nr x .
    . grep --unknown x .
    . fgrep --unknown x .
    . egrep --unknown x .
    ? rgrep x .
    ? rgrep --unknown x .
    ? zgrep x .
    ? ag x
    ? ag x src
    . grep -r -- -r src
    ? grep -r -- -r .
    `,
  ],
  [
    'with names of files `grep` only looks into those that fit',
    `
    . grep -r --include="*.ts" x
    . grep -r --include "*.ts" x
    . grep -r --include="*.ts" --include="*.js" x
    ? grep -r --include=".e*" x
    ? grep -r --include ".env" x
    ? grep -r --include="*.ts" --include=.env x
    ? grep -r --include="{.env,x}" x
    ? grep -r --exclude="*.ts" x
    ? grep -r x --include
    `,
  ],
  [
    'the first operand is a pattern, unless an option has one or shows names',
    `
    . grep .env src/a.ts
    . rg .env src
    . grep -- .env src/a.ts
    . grep -n -- .env src/a.ts
    . grep -A 1 .env src/a.ts
    x grep -e x .env
    x grep -ne x .env
    x grep --regexp x .env
    x grep --regexp=x .env
    x grep -f src/a.ts .env
    x grep --file src/a.ts .env
    x rg --files .env
    x rg --type-list .env
    x grep x -- .env
    x grep -f .env README.md
    x grep -f.env README.md
    x grep --file=.env README.md
    x grep x - .env
    x grep -A 1 x .env
    . grep x - src/a.ts
    x grep --files .env
    x ack --files .env
    x grep --x--count .env
    x rg --x--count .env src
    x rg --counts .env src
    x rg --x--max-count .env src
    `,
  ],
]

const DENY = ['Read(./.env)']

test.each(ROWS)('%s', (_, lines) => expect(decided(lines, (line) => project.decide(line, DENY))).toBe(lines))

const INCLUDING = [
  '!.env',
  '!.en?',
  '!?env',
  '!.e*',
  '!*',
  '!src/.env',
  '!.env/',
  '![.]env',
  String.raw`!\.env`,
  '!.{env,x}',
  '!{.env,x}',
  '!{src/.env,x}',
  '!?{env,x}',
  '!{.env',
  '! .env ',
  '!.env\u0085',
  '!.env\u00A0',
  '!.env\r',
  '\uFEFF!.env',
  'x\n!.env',
]
const OTHERS = ['.env', '!env', '!.envx', '!.env/x', '!x.env', '#!.env', ' !.env', '!src', '!.{env,x}/y']

test.each(['.ignore', 'src/.ignore', 'src/.gitignore', 'src/.rgignore'])(
  'the ignore file %s makes a search include a hidden file, if one of its lines may be about it',
  async (name) => {
    const { path, decide } = await makeProject(`ignores-${name.replace('/', '-')}`, { 'src/.env': 'x', a: 'x' })
    const signs = (line: string) => {
      writeFileSync(join(path, name), line)
      return signOf(decide('rg x', ['Read(**/.env)'])) + signOf(decide('rg x src', ['Read(./src/.env)']))
    }
    expect(INCLUDING.filter((line) => signs(line) !== '??')).toEqual([])
    expect(OTHERS.filter((line) => signs(line) !== '..')).toEqual([])
  },
)

const ignoring = await makeProject('ignoring', {
  '.gitignore': '.env\n',
  'one/.env': 'x',
  'one/.gitignore': '!.env\n',
  'two/.env': 'x',
  'two/.gitignore': '!.env.example\n!src\n',
  'three/.env': 'x',
  'three/.ignore': '!*\n',
  'four/.env': 'x',
  'four/deep/.env': 'x',
  'four/deep/.rgignore': '!a/.b\n',
  'five/.env': 'x',
  'five/x.gitignore': '!.env\n',
  'six/.env': 'x',
  'seven/.hidden/a.key': 'x',
  'seven/node_modules/b.key': 'x',
  'seven/c.key': 'x',
  'eight/.kept/d.key': 'x',
  'eight/.ignore': '!.kept\n',
})

test.each<[...Row, deny: string]>([
  [
    'an ignore file below includes it, too',
    `
    ? rg x
    ? rg x one
    . rg x two
    ? rg x three
    . rg x four
    . rg x four/deep
    . rg x five
    . rg x six
    . rg x two six
    ? rg x two one
    ? rg -. x six
    ? grep -r x six
    `,
    'Read(**/.env)',
  ],
  [
    'hidden directories are left out, and node_modules is hardly ever looked into',
    `
    ? rg x
    ? rg x seven
    `,
    'Read(**/c.key)',
  ],
  [
    'hidden directories are left out',
    `
    . rg x seven
    ? rg -. x seven
    ? rg x seven/.hidden
    ? grep -r x seven
    `,
    'Read(**/a.key)',
  ],
  [
    'a hidden directory that an ignore file includes is looked into',
    `
    ? rg x
    ? rg x eight
    . rg x seven
    `,
    'Read(**/d.key)',
  ],
  [
    'node_modules is hardly ever looked into',
    `
    . rg x seven
    ? rg -. x seven
    ? rg -g "*.key" x seven
    ? rg x seven/node_modules
    ? grep -r x seven
    `,
    'Read(**/b.key)',
  ],
  [
    'with names of files only those are looked into',
    `
    ? grep -r --include="*.key" x seven
    . grep -r --include="*.ts" x seven
    ? grep -r --include="a*" --include="*.ts" x seven
    `,
    'Read(**/*.key)',
  ],
  [
    'a directory is looked into whatever the names of files are',
    `
    ? grep -r --include="*.ts" x .
    ? rg -g "*.ts" x
    . grep -r --include="*.ts" x six
    `,
    'Read(seven/.hidden)',
  ],
])('%s', (_, lines, deny) => expect(decided(lines, (line) => ignoring.decide(line, [deny]))).toBe(lines))
