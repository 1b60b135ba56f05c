/** Which files a search reads: rules about it in words, each with calls that show it. */
import { expect, test } from 'vitest'
import type { Row } from './decisions.ts'
import { decided } from './decisions.ts'
import { useProjects } from './real-project.ts'

const project = await useProjects()('searched', { '.env': 'x', '.gitignore': '.env\n', 'src/a.ts': 'x' })

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
