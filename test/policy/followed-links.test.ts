/** Programs that follow the links in a directory reach what these lead to: rules in words, each with commands that show it. */
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { decideCommand, decided } from './decisions.ts'
import type { Row } from './decisions.ts'
import { useProjects } from './real-project.ts'

const makeProject = useProjects()
const project = await makeProject('linked', { '.env': 'x', 'src/a.ts': 'x', 'lib/b.ts': 'x', '.gitignore': '.env\n' })
symlinkSync('../.env', join(project.path, 'src/link'))
mkdirSync(join(project.path, 'lib/c'))
symlinkSync('../b.ts', join(project.path, 'lib/c/inside'))
symlinkSync('nowhere', join(project.path, 'lib/broken'))

const ROWS: readonly Row[] = [
  [
    'a search that follows links may show a denied file that one leads to',
    `
    ? grep -R x src
    ? grep -nR x src
    ? grep --dereference-recursive x src
    ? rg -L x src
    ? rg -nL x src
    ? rg --follow x src
    ? ag --unknown x src
    . grep -r x src
    . grep -L x src/a.ts
    . grep -rL x src
    . rg x src
    `,
  ],
  [
    'so does a program that copies, packs or compares what links lead to',
    `
    ? cp -rL src x
    ? cp -r --dereference src x
    ? rsync -aL src x
    ? scp -r src host:x
    ? tar chf x.tar src
    ? tar -c --dereference -f x.tar src
    ? zip -r x.zip src
    ? diff -r src lib
    . cp -r src x
    . rsync -a src x
    . tar cf x.tar src
    `,
  ],
  [
    'a link that leads nowhere, or to what is below the same directory, shows no other file',
    `
    . grep -R x lib
    . rg -L x lib
    . cp -rL lib x
    . zip -r x.zip lib
    . diff -r lib lib/c
    . git status; diff README.md src/a.ts
    `,
  ],
]

test.each(ROWS)('%s', (_, lines) =>
  expect(decided(lines, (line) => project.decide(line, ['Read(./.env)']))).toBe(lines),
)

test('a program that lists what links in a directory lead to is asked about', () => {
  const commands = ['ls -RL .', 'ls -L', 'ls -lLR', 'ls -R -L', 'find -L .', 'du -L', 'tree -l', 'grep -R x', 'rg -L x']
  expect(commands.filter((command) => decideCommand(command).behavior !== 'ask')).toEqual([])
  expect(decideCommand('ls -laR').behavior).toBe('allow')
})
