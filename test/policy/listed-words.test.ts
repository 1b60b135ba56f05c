/** The tables of programs, options and subcommands: a word that is listed counts, and one that only contains it does not. */
import { describe, expect, test } from 'vitest'
import type { Given, Row } from './decisions.ts'
import { decideCommand, decided } from './decisions.ts'

const behaviorOf = (command: string, given: Given = {}) => decideCommand(command, given).behavior

/** By program, options with which it only reads: each form that is listed, with a value and without one where both are. */
const READING: Readonly<Record<string, string>> = {
  basename: '-a -z -s',
  cat: '-A -be -nst --number --show-all',
  cmp: '-b -ls',
  comm: '-1 -23',
  date: '-u -R -I -Iseconds --utc --rfc-3339=date --iso-8601 --iso-8601=ns',
  df: '-h -Tk',
  diff: '-u -rN -U -U3 -C2 --brief --unified --side-by-side --recursive --color --colour=never --ignore-all-space',
  dirname: '-z',
  du: '-s -hk -d -d1 --max-depth=2 --human-readable --summarize --apparent-size',
  egrep: '-n -rl --count',
  expand: '-i -t4',
  fgrep: '-n -rl --count',
  file: '-b -iL',
  find: `-P -name -iname -path -ipath -type -maxdepth -mindepth -size -mtime -mmin -ctime -atime -empty -not -o -a -and -or
    -print -print0 -prune -regex -iregex -perm -user -group -ls -depth -xdev -mount -quit -true -false`,
  fold: '-b -sw80',
  grep: `-E -rn -A -B2 -m1 -e --include=a --exclude=a --exclude-dir=a --color --colour=never --extended-regexp
    --fixed-strings --perl-regexp --ignore-case --invert-match --word-regexp --line-regexp --count --files-with-matches
    --files-without-match --only-matching --quiet --no-messages --with-filename --no-filename --line-number --recursive
    --after-context=1 --before-context=22 --context=3 --max-count=4`,
  head: '-5 -20 -n -n5 -n+5 -c-5 --lines --lines=5 --bytes=-5 -q -v --quiet --verbose',
  id: '-u -un',
  ls: `-l -la --all --almost-all --human-readable --recursive --reverse --size --sort=time --time=ctime --color
    --colour=auto --group-directories-first --full-time --directory --classify --inode --si`,
  md5sum: '-b -t --binary --text --tag',
  nl: '-b -ba',
  nproc: '--all --ignore=2',
  od: '-c -Ax -tx1',
  pwd: '-L -P',
  readlink: '-f -en',
  realpath: '-e -ms',
  rg: `-i -nS -A -C2 -t -e --files --hidden --no-ignore --ignore-case --smart-case --fixed-strings --word-regexp
    --line-number --no-heading --heading --count --count-matches --files-with-matches --files-without-match
    --only-matching --multiline --stats --json --type-list --sort=path --type=rust --type-not=js --glob=a --max-depth=2
    --max-count=3 --color=never --after-context=1 --before-context=2 --context=33`,
  sort: '-nr -k2 -t: --reverse --unique --numeric-sort --version-sort --human-numeric-sort',
  stat: '-L -ft -c --format=%s --printf=%s',
  strings: '-a -n -n8',
  tail: '-5 -n5 -n+5 --lines=5 -q -v',
  tr: '-d -cs',
  tree: '-a -dfs -L -L2 -I -P --dirsfirst --noreport --gitignore --du --si',
  type: '-a -tP',
  uname: '-a -sr',
  uniq: '-c -du -f -f1 --count --repeated --unique --ignore-case',
  wc: '-l -cw --lines --words --bytes --chars',
  which: '-a',
  'git blame': '-s -wM -L1,2 --date=iso',
  'git branch': '-a -rv -vv --all --remotes --list --verbose --show-current --no-color',
  'git cat-file': '-t -e',
  'git describe': '--tags --all --always --dirty --long --abbrev=12',
  'git diff': `-1 -22 -p -U3 -Gx --stat --shortstat --numstat --name-only --name-status --oneline --graph --all --decorate
    --no-decorate --cached --staged --summary --patch --no-patch --no-color --color --no-merges --merges --first-parent
    --reverse --follow --date=iso --format=%H --pretty=oneline --pretty --max-count=12 --since=x --until=x --after=x
    --before=x --author=x --grep=x --abbrev-commit --abbrev --abbrev=7 --word-diff --word-diff=color --unified=10 --minimal
    --ignore-all-space --ignore-space-change --no-ext-diff --no-textconv --no-renames --diff-filter=AM --merge-base
    --exit-code --quiet --raw --left-right --cherry-pick --topo-order --tags --branches --remotes`,
  'git ls-files': '-c -dm --cached --deleted --modified --others --stage --exclude-standard',
  'git ls-tree': '-d -rt --name-only --long --full-tree',
  'git merge-base': '--all --is-ancestor',
  'git remote': '-v --verbose',
  'git rev-parse': `--short --short=12 --verify --abbrev-ref --show-toplevel --git-dir --is-inside-work-tree --show-prefix
    --quiet`,
  'git shortlog': '-n -se',
  'git status': `-s -sb -uno -unormal -uall --short --branch --porcelain --porcelain=2 --porcelain=v1 --long
    --untracked-files --untracked-files=no --ignored --no-renames`,
  'git tag': '-l -n -n3 --list --sort=-v:refname',
}

/** What these end with is a value of any text, or any letters. */
const ANY_END =
  /^(?:-[GLIUckt].*|--(?:format|printf|since|until|after|before|author|grep|pretty|glob|include|exclude|exclude-dir)=.*)$/

describe.each(Object.entries(READING))('%s only reads', (program, options) => {
  const all = options.split(/\s+/)

  test('with each option that is listed', () => {
    expect(all.filter((option) => behaviorOf(`${program} ${option}`) !== 'allow')).toEqual([])
  })

  test('unless an option contains one of them: then it is a question', () => {
    const ends = all.filter((option) => !ANY_END.test(option)).map((option) => `${option}_!`)
    const longer = [...ends, ...all.map((option) => `-!${option}`)]
    expect(longer.filter((option) => behaviorOf(`${program} '${option}'`) !== 'ask')).toEqual([])
  })
})

test('an option that takes a value has one behind its sign', () => {
  const given = Object.entries(READING).flatMap(([program, options]) =>
    options
      .split(/\s+/)
      .flatMap((option) =>
        (ANY_END.test(option) ? [] : (/^--[\w-]+=/.exec(option) ?? [])).map((start) => `${program} ${start}`),
      ),
  )
  expect(given.length).toBeGreaterThan(30)
  const empty = [
    ...given,
    'git rev-parse --short=',
    'git tag --sort=',
    'git describe --abbrev=',
    'git log --max-count=',
    'du --max-depth=',
  ]
  const others = [
    'nproc --ignore=',
    'rg --max-count=',
    'rg --sort=',
    'grep --context=',
    'ls --sort=',
    'date --rfc-3339=',
  ]
  expect([...empty, ...others].filter((command) => behaviorOf(command) !== 'ask')).toEqual([])
})

test('`cd` follows a path whose name ends as its options do', () => {
  expect(behaviorOf('cd -P src && ls')).toBe('allow')
  expect(behaviorOf('cd -L src && ls')).toBe('allow')
  expect(behaviorOf('cd ../x-P && ls')).toBe('ask')
})

test('arithmetic may run commands that are in the text of a variable: each form of it but plain numbers is a question', () => {
  const free = ['echo $((1 + 2))', 'echo $(( (3 * 4) % 5 ))', 'echo $((7 / 2 - 1))']
  const asked = [
    'echo $((y ? 1 : 2))',
    'echo $((1 ? 2 : 3))',
    'echo $((y))',
    '((y = 1))',
    'for ((;;)); do ls; done',
    'x[y?1:2]=3',
  ]
  expect(free.filter((command) => behaviorOf(command) !== 'allow')).toEqual([])
  expect(asked.filter((command) => behaviorOf(command) === 'allow')).toEqual([])
})

test('git with a bare dash among its options is a question', () => {
  const subcommands = Object.keys(READING).filter((name) => name.startsWith('git '))
  expect(subcommands.length).toBeGreaterThan(10)
  expect(subcommands.filter((name) => behaviorOf(`${name} -`) !== 'ask')).toEqual([])
})

test('a program of which no option is known is asked about with one', () => {
  const programs = ': cksum false printf rev sleep tac true whoami'.split(' ')
  expect(programs.filter((program) => behaviorOf(`${program} -x`) === 'allow')).toEqual([])
})

const ROWS: readonly Row[] = [
  [
    'an option whose value may be any text begins as one that is listed, and ends with its name',
    `
    . cut -d, -f1 a
    . cut -s --fields=1 a
    . cut --delimiter , --complement a
    ? cut --x-s a
    ? cut -sx a
    ? cut --delimiterx a
    ? cut -x a
    . paste -sd, a b
    ? paste --x-s a
    ? paste -x a
    . join -1 2 a b
    ? join --x-1 a b
    ? join -x a b
    . seq 1
    . seq -w 1 2
    . seq -s, 1 2
    . seq -1 2
    . seq -12 2
    ? seq -x 1
    ? seq -wx 1
    ? seq --x-w 1
    ? seq --x-1 1
    ? seq -1x 1
    . cmp - a
    ? cmp -x a b
    . uniq -
    ? uniq a b
    . sort -k 2 a
    . sort -t , a
    . stat --format= a
    . stat --printf= a
    . seq -s , 1 2
    . sha1sum -b a
    . sha256sum -b a
    . sha512sum -b a
    ? sha256sum -c a
    `,
  ],
  [
    'a call of git that only reads takes names, where it would make nothing of them',
    `
    . git blame a
    . git cat-file -t HEAD
    . git describe HEAD
    . git diff HEAD
    . git log HEAD
    . git ls-files a
    . git ls-tree HEAD
    . git merge-base a b
    . git rev-list HEAD
    . git rev-list --max-count=1 HEAD
    . git rev-parse HEAD
    . git shortlog HEAD
    . git show HEAD
    . git status a
    . git branch -a
    . git tag -l
    . git remote -v
    . git --no-pager log
    . git log -- a
    ? git branch a
    ? git tag a
    ? git remote a
    ? git --no-pager --no-pager log
    ? git -p log
    ? git "$x" log
    ? git log "$x"
    ? git constructor
    ? git commit
    `,
  ],
]

test.each(ROWS)('%s', (_, lines) => expect(decided(lines, (line) => decideCommand(line))).toBe(lines))

/** By program, the words after which it runs another one. */
const RUNS: Readonly<Record<string, string>> = {
  asdf: 'exec',
  'aws-vault': 'exec',
  bun: 'x exec',
  bundle: 'exec',
  conda: 'run',
  direnv: 'exec',
  doppler: 'run',
  hatch: 'run',
  mamba: 'run',
  micromamba: 'run',
  mise: 'x exec',
  nix: 'run shell develop',
  nodenv: 'exec',
  npm: 'x exec',
  op: 'run',
  pdm: 'run',
  pipenv: 'run',
  pnpm: 'dlx exec',
  poetry: 'run',
  pyenv: 'exec',
  rbenv: 'exec',
  rustup: 'run',
  uv: 'run',
  yarn: 'dlx exec',
}

describe.each(Object.entries(RUNS))('%s', (program, subcommands) => {
  test.each(subcommands.split(' '))('runs what follows %s, and not what follows a longer word', (subcommand) => {
    const given = { mode: 'bypass', deny: ['Bash(rm:*)'] } as const
    expect(behaviorOf(`${program} ${subcommand} rm y`, given)).toBe('deny')
    expect(behaviorOf(`${program} -q ${subcommand} rm y`, given)).toBe('deny')
    // Of some programs it is not certain what their arguments are for.
    expect(behaviorOf(`${program} ${subcommand}_ rm y`, given)).not.toBe('deny')
    expect(behaviorOf(`${program} _${subcommand} rm y`, given)).not.toBe('deny')
  })
})

describe('a trap', () => {
  const given = { mode: 'bypass', deny: ['Bash(rm:*)'] } as const

  test.each(["trap 'rm y' EXIT", "trap -- 'rm y' EXIT INT"])('runs its text: %s', (command) => {
    expect(behaviorOf(command, given)).toBe('deny')
  })

  test.each(['trap', 'trap -', 'trap - INT', "trap '' INT", 'trap -l', 'trap -p', 'trap -p INT', 'trap ls EXIT'])(
    'that only shows, ignores or resets a signal runs nothing: %s',
    (command) => expect(behaviorOf(command, given)).toBe('allow'),
  )

  test.each(['trap "$y" INT', 'trap "$y"', "trap 'rm y'"])(
    'of which something cannot be seen is a question: %s',
    (command) => expect(behaviorOf(command, given)).toBe('ask'),
  )
})

test.each([':', 'basename', 'dirname', 'echo', 'false', 'id', 'printf', 'seq', 'sleep', 'tr', 'true', 'type', 'which'])(
  'the arguments of %s are texts: it reads no file that they name',
  (program) => {
    expect(behaviorOf(`${program} /etc/passwd`)).toBe('allow')
    expect(behaviorOf(`${program} /etc/passwd`, { mode: 'bypass', deny: ['Read(//etc/passwd)'] })).toBe('allow')
    expect(behaviorOf(`${program} "a$x"`)).toBe('allow')
    expect(behaviorOf(`cat /etc/passwd "$(${program} x)"`)).toBe('ask')
  },
)

test.each(['cat', 'head', 'wc', 'sort', 'grep x', 'diff a'])(
  'the arguments of %s are files that it reads',
  (program) => {
    expect(behaviorOf(`${program} /etc/passwd`)).toBe('ask')
    expect(behaviorOf(`${program} /etc/passwd`, { mode: 'bypass', deny: ['Read(//etc/passwd)'] })).toBe('deny')
    expect(behaviorOf(`${program} "a$x"`)).toBe('ask')
  },
)
