/** Which files a call of git shows and changes: rules about it in words, each with calls that show it. */
import { expect, test } from 'vitest'
import type { Given, Row } from './decisions.ts'
import { decideCommand, decided } from './decisions.ts'
import { useProjects } from './real-project.ts'

const NOT_READ: Given = { mode: 'bypass', deny: ['Read(./.env)'] }
const NOT_EDITED: Given = { mode: 'bypass', deny: ['Edit(./.env)'] }

const ROWS: Row[] = [
  [
    'a history shows no content with options that choose commits and say what is shown of them',
    `
    . git log
    . git log main
    . git log -5
    . git log -12
    . git log -n2
    . git log -n 2
    . git log -Sx
    . git log -G x
    . git log -b -i -s -q -w -z
    . git log -M
    . git log -M5
    . git log -C
    . git log -C50
    . git log --stat
    . git log --stat=
    . git log --stat=80
    . git log --dirstat
    . git log --dirstat=
    . git log --dirstat=lines
    . git log --decorate
    . git log --decorate=short
    . git log --format=
    . git log --pretty
    . git log --pretty=
    . git log --pretty=oneline
    . git log --author=
    . git log --committer=
    . git log --since=
    . git log --until=
    . git log --after=
    . git log --before=
    . git log --grep=
    . git log --max-count=12
    . git log --skip=12
    . git log --date=
    . git log --abbrev
    . git log --abbrev=12
    . git log --color
    . git log --color=always
    . git log --diff-filter=AM
    . git reflog --relative-date
    `,
  ],
  [
    'a history may show content with any other option, also one that only begins or ends as one of those does',
    `
    ? git log -
    ? git log -p
    ? git log -x5
    ? git log -5x
    ? git log -Mx
    ? git log -sp
    ? git log --x--stat
    ? git log --no-walks
    ? git log --relative-dates
    ? git log --decorate=
    ? git log --decorate=+
    ? git log --max-count=
    ? git log --max-count=x
    ? git log --skip=
    ? git log --skip=x
    ? git log --abbrev=
    ? git log --abbrev=x
    ? git log --color=
    ? git log --color=+
    ? git log --diff-filter=
    ? git log --diff-filter=+
    ? git reflog -p
    `,
  ],
  [
    'what is not known may be an option, unless it is a text or a file behind `--`',
    `
    ? git log $x
    ? git log "$x"
    ? git log "$x..$y"
    ? git log -"$x"
    ? git log --"$x"
    . git log -n"$x"
    ? git log --format=$x
    . git log --format="$x"
    . git log x"$x"
    ? git log x$x
    . git log -S "$x"
    . git log -S"$x"
    ? git log -S$x
    . git log -1 -- "$x"
    . git log -1 -- $x
    ? git reflog $x
    ? git diff --stat "$x"
    . git diff --stat x"$x"
    ? git stash show $x
    ? git stash list "$x"
    ? git status "$x"
    . git status x"$x"
    ? git tag "$x"
    ? git config $x
    ? git notes $x
    . git tag x"$x"
    ? git tag -"$x"
    ? git tag -a"$x"
    ? git tag --format="$x"
    . git push origin "$x"
    . git branch -D $x
    . git commit -m "$x"
    . git commit -am"$x"
    . git commit -m"$x"
    ? git add x-m"$x"
    ? git commit -m $x
    ? git commit "$x"
    ? git commit -F"$x"
    ? git log -S -- "$x"
    ? git log -p -S -- src
    . git log -S -- src
    ? git log -1 *
    . git log -1 --format=%G?
    `,
  ],
  [
    'a comparison shows no content with an option that says so, if all its options are known',
    `
    . git diff -s
    . git diff --stat=
    . git diff --stat=80
    . git diff --cached --name-only
    . git diff --quiet
    ? git diff
    ? git diff -q
    ? git diff --cached
    ? git diff --author=-s
    ? git diff --stat --unknown
    ? git diff --stats
    `,
  ],
  [
    '`show` prints a file that is named by its hash or in a commit, whatever its options are',
    `
    . git show --stat
    . git show --stat HEAD
    . git show -s HEAD~2
    . git show -s HEAD^
    . git show -w HEAD:src/a
    . git show -s HEAD^2~3
    . git show -s @
    . git show --name-only HEAD -- src
    ? git show HEAD
    x git show -s HEAD:.env
    x git show HEAD -s HEAD:.env
    ? git show -s e97e9c7
    ? git show -s main
    ? git show -s HEAD~x
    ? git show -s HEAD2
    . git show -s HEAD~~
    ? git show -s xHEAD
    ? git show -s e97e9c7 -- src
    ? git show -s $x
    ? git show -q
    `,
  ],
  [
    'an object of git is shown, if not only its type, its size or whether it exists are asked for',
    `
    . git cat-file -t HEAD
    . git cat-file -s HEAD
    . git cat-file -e HEAD
    . git cat-file --x -t HEAD
    ? git cat-file --x-t HEAD
    ? git cat-file -p HEAD
    ? git cat-file -xt HEAD
    ? git cat-file -tx HEAD
    ? git cat-file --batch
    `,
  ],
  [
    'what only shows names reads no file, unless an option names one',
    `
    . git config .env
    . git lfs pull
    . git update-index --refresh
    . git branch .env
    . git tag --x-f .env
    . git tag --x--file .env
    . git tag --fx .env
    x git tag -F .env
    x git tag -aF .env
    x git tag -a1 -F .env
    x git config -lf .env
    x git config --fi .env
    `,
  ],
  [
    'a text behind an option is no file',
    `
    . git commit -m .env
    . git commit -am .env
    . git commit --message .env
    . git commit --author .env
    . git checkout --grep .env
    . git commit --format .env
    . git add -S .env
    . git add -G .env
    x git commit -x .env
    x git commit --x-m .env
    x git commit -1m .env
    x git commit -mx .env
    x git commit --message= .env
    x git commit --x--author .env
    x git add .env
    `,
  ],
  [
    'a commit that shows what it takes asks for it with letters before its message, or with whole words',
    `
    . git commit -m p
    . git commit -mp
    . git commit -am v
    . git commit --edit
    . git commit -i
    . git commit --no-verbose
    ? git commit -v
    ? git commit -av
    ? git commit -p
    ? git commit -pm x
    ? git commit --patch
    ? git commit --verbose
    ? git commit --interactive
    . git status -p
    . git status -i
    . git status -e
    ? git status --"$x"
    ? git status --v"$x"
    . git status --ignored="$x"
    ? git status -v
    ? git status -sv
    ? git status --verbose
    . git add -v
    . git add -A
    . git add --x--patch
    ? git add -p
    ? git add -i
    ? git add -e
    ? git add --edit
    ? git add -Ap
    ? git checkout -p
    ? git restore -p
    ? git reset -p
    . git merge -v
    . git am -i
    `,
  ],
  [
    'without a subcommand git does nothing, if all its words are plain options',
    `
    . git
    . git -p
    . git --version
    . git --bare
    ? git -C src
    ? git --exec-path=x
    ? git --git-dir x-y
    ? git --git-dir -1
    ? git --git-dir -- x
    ? git -C src $x
    ? git $x
    `,
  ],
  [
    'options before the subcommand may say that the files are elsewhere',
    `
    ? git -c a=b status
    x git -c log tag -F .env
    . git --x--bare status
    . git --no-pager status
    ? git --git-dir=x status
    ? git --work-tree x status
    ? git --namespace=x status
    ? git --exec-path=x status
    ? git --super-prefix=x status
    ? git --bare status
    ? git --icase-pathspecs status
    ? git -C src -C . status
    ? git -C $x status
    . git -C src add .env
    x git -C src add ../.env
    x git -C . add .env
    x git -C .. add project/.env
    x git -C src add ~/../../work/project/.env
    x git -C src add /work/project/.env
    x git -C / add work/project/.env
    `,
  ],
  [
    'files that are named to it on its input are not known',
    `
    . git hash-object src
    x git hash-object .env
    ? git hash-object --stdin-paths
    . git hash-object --stdin
    ? git mv --pathspec-from-file=x
    ? git rm --pathspec-from-file x
    ? git rm :x
    . git rm x:y
    x git rm x:.env
    `,
  ],
  [
    '`HEAD:file` is that file only, and all else is shown of everything or of what comes after `--`',
    `
    x git show HEAD:.env
    . git show HEAD:src/a
    . git show HEAD:src HEAD:lib
    ? git show HEAD:src HEAD
    . git show HEAD:src --
    ? git show HEAD:src -- src
    . git show HEAD:src -- :!src
    ? git diff HEAD:src HEAD:lib -- :!src
    ? git diff HEAD:src HEAD:lib --
    x git show HEAD:.env -- src
    ? git show HEAD:.e"$x"
    ? git show HEAD:src/"$x"
    . git show HEAD:src/$?
    ? git show HEAD:"$x"
    ? git show HEAD:
    ? git show :/message
    ? git show :/a:b
    . git show :src/a
    x git show :.env
    ? git show
    . git diff -- src
    . git diff HEAD -- src lib
    x git diff -- .env
    ? git diff -- .
    ? git diff --
    ? git diff -- src :x
    ? git diff -- src $x
    ? git diff -- :/src
    ? git archive HEAD
    ? git worktree add ../x
    ? git unknown
    `,
  ],
  [
    'a search reads all files, or those after `--`',
    `
    ? git grep x
    . git grep x -- src
    . git grep -n x -- src lib
    . git grep .env -- src
    ? git grep x --
    ? git grep x -- src :y
    ? git grep x -- :y
    ? git grep x src
    x git grep x .env
    x git grep x -- .env
    x git grep x -- src .env
    x git grep -f .env -- src
    x git grep --unknown .env -- src
    `,
  ],
  [
    'a stash changes what it takes and gives back, and shows what its options say',
    `
    . git stash
    . git stash push
    x git stash push .env
    . git stash show
    . git stash list
    . git stash show --stat
    ? git stash show -p
    ? git stash list -p
    ? git stash show --stat -p
    ? git stash -p
    ? git stash -a
    ? git stash -u
    ? git stash push -ku
    ? git stash --all
    ? git stash --include-untracked
    . git stash --keep-index
    . git stash -k
    . git stash --x--all
    . git stash push -k --no-u
    . git stash push -m u
    `,
  ],
]

ROWS.push(
  [
    'a format shows what is in an object, which a tag can name, if it asks for that',
    `
    . git for-each-ref
    . git for-each-ref --format='%(refname)'
    . git for-each-ref --format='%(contents:size)'
    ? git for-each-ref --format='%(raw)'
    ? git for-each-ref --format '%(contents)'
    ? git for-each-ref --form='%(*raw)'
    ? git for-each-ref --format="$x"
    ? git for-each-ref --format "$x"
    ? git for-each-ref "$x"
    ? git for-each-ref --"$x"
    . git for-each-ref refs/"$x"
    ? git tag --format='%(raw)'
    ? git branch -a --format='%(raw)'
    . git branch --format='%(refname)'
    . git tag v1 -m '(raw)'
    `,
  ],
  [
    'what is in lost objects, and in the object of a note, gets another name',
    `
    . git fsck
    . git fsck --full
    ? git fsck --lost-found
    ? git fsck --l
    ? git fsck --"$x"
    ? git notes add -C e97e9c7
    ? git notes add --reu e97e9c7
    x git notes add -C HEAD:.env
    . git notes add -m x
    x git config --blob HEAD:.env -l
    x git config --bl=HEAD:.env -l
    x git maintenance register --config-file .env
    x git maintenance register --conf=.env
    `,
  ],
  [
    'another repository on this machine gets what this one has, and is named by its path',
    `
    . git fetch
    . git fetch origin
    . git fetch --depth 1 origin main
    . git push -u origin feature/x
    . git push -o a/b origin feature/x
    . git push https://example.com/x
    . git push git@example.com:x/y main
    ? git push ../other
    ? git push /other HEAD
    ? git push file:///other
    ? git push -u other/x main
    ? git push --repo=../other
    ? git push --repo ../other
    ? git push "$x" main
    ? git push $x
    ? git fetch ../other
    ? git fetch --depth 1 other/x
    x git push .env
    x git fetch ./.env
    `,
  ],
  [
    'a new repository can be made of files',
    `
    . git init
    . git init -q -b main
    . git init src
    x git init --template=.env
    x git init --template .env
    `,
  ],
)

const expectDecided = (lines: string, given: Given) =>
  expect(decided(lines, (line) => decideCommand(line, given))).toBe(lines)

test.each(ROWS)('%s', (_, lines) => expectDecided(lines, NOT_READ))

const EDITS: readonly Row[] = [
  [
    'what brings back or throws away changes edits all files, and others only those that they name',
    `
    ? git checkout main
    ? git reset
    ? git clean -f
    ? git stash
    ? git stash pop
    ? git stash -u
    ? git stash -p
    . git stash show -p
    x git stash show --output=.env
    x git shortlog --output=.env
    x git rev-list --output=.env HEAD
    ? git rev-list "$x"
    ? git shortlog $x
    . git stash show
    . git stash list
    ? git merge x
    . git add .
    . git commit -a
    . git status
    . git diff
    . git diff ../x
    . git log -p
    . git grep x
    . git archive HEAD
    x git add .env
    x git checkout .env
    . git rm src
    x git rm .env
    x git mv .env x
    ? git rm -r .
    ? git mv . x
    ? git $x
    `,
  ],
]

test('a rule about another repository holds where git reads it, and where git writes to it', () => {
  const deny = ['Read(//work/other/**)']
  const lines = `
    x git fetch ../other
    x git pull ../other
    x git push ../other HEAD
    x git push file:///work/other HEAD
    x git -C src fetch ../../other
    x git init --template=../other/hooks
    . git fetch origin
    . git pull origin main
    . git push origin HEAD
    `
  expectDecided(lines, { mode: 'bypass', deny })
  const edits = `
    x git push ../other HEAD
    x git init ../other/new
    x git bundle create ../other/x HEAD
    x git archive --output ../other/x HEAD
    x git format-patch -o ../other HEAD
    x git worktree add ../other/x
    x git diff --output=../other/x
    x git log --output ../other/x
    . git fetch origin
    `
  expectDecided(edits, { mode: 'bypass', deny: ['Edit(//work/other/**)'] })
})

test.each(EDITS)('%s', (_, lines) => expectDecided(lines, NOT_EDITED))

const make = useProjects()
const FILES = ['.env', 'a.key', 'src/a.ts', 'src/b.key', 'src/c-', 'lib/c.txt', 'build/d.key', 'build/e.key']
const project = await make('git', {
  ...Object.fromEntries(FILES.map((file) => [file, `${file}\n`])),
  '.gitignore': '.env\nbuild\n',
})

/** With the rule that is denied. */
const ON_DISK: readonly (readonly [...Row, deny: string])[] = [
  [
    'what git does not track it shows only where it compares or searches other files, too',
    `
    . git diff
    . git diff HEAD~1 .
    . git diff main.. .
    . git diff ..main .
    . git diff a/b .
    . git diff x--no-index .
    . git diff --stat src lib
    ? git diff --no-index src .
    ? git diff --no-ind src .
    ? git diff /tmp .
    ? git diff ~ .
    ? git diff .. .
    ? git diff src/.. src
    . git diff ../x src
    x git diff ../x .env
    . git log -p
    . git log "x$y"
    . git show
    . git show -s abc
    . git archive HEAD
    . git worktree add ../x
    . git clone . ../x
    . git stash show -p
    ? git stash show -p -u
    . git stash -p
    ? git stash -u
    ? git stash --all
    . git grep x
    . git grep x -- .
    . git grep x -- src
    ? git grep --untracked x
    ? git grep --no-ind x
    ? git grep --x x
    . git grep --x x -- src
    ? git grep "$x"
    ? git show --ext-diff "$x"
    `,
    'Read(./.env)',
  ],
  [
    'what git tracks it shows, unless what is behind `--` is something else',
    `
    ? git diff
    ? git diff -- .
    ? git diff -- src
    . git diff -- lib
    ? git diff -- lib src
    ? git diff -- :!src
    . git diff --stat
    . git diff --stat src/b.key
    . git show --stat -- src/b.key
    ? git show
    ? git show -s abc
    ? git show -s abc -- lib
    ? git log -p
    . git log --stat -- src/b.key
    ? git stash -p
    ? git stash show -p
    . git stash
    ? git grep x
    . git grep x -- lib
    ? git grep x -- src
    ? git worktree add ../x
    ? git add -p
    . git add -A
    . git checkout main
    . git clean -f
    `,
    'Read(src/b.key)',
  ],
  [
    'git itself finds the files for a `*` behind `rm` and `mv`, below directories, too',
    `
    ? git rm "*.key"
    ? git rm *.key
    ? git rm "*.k[e]y"
    ? git rm "*.ke?"
    ? git rm "*\\.key"
    ? git rm "[b].key"
    ? git rm "*"
    ? git rm "s*"
    ? git rm s*
    ? git rm src/*
    ? git rm "src/*.key"
    ? git rm "*/b.key"
    ? git rm "$x".key
    ? git rm lib/"$x"*.key
    ? git rm "s*/lib/*.key"
    ? git rm -q "*.key"
    . git rm -q "*.ts"
    . git rm "*.ts"
    . git rm *.ts
    . git rm "x*.ts"
    . git rm "lib/*.key"
    . git rm lib/*
    . git rm "lib/*/*.key"
    ? git rm -r "*.ts"
    ? git rm -fr "*.ts"
    . git rm --x-r "*.ts"
    . git rm x-r "*.ts"
    ? git mv "*.ts" x
    . git mv "lib/*" x
    . git rm -- "--x*"
    . git rm --"*.key"
    `,
    'Read(src/b.key)',
  ],
  [
    'a `*` before a dash is one, too',
    `
    ? git rm "*-"
    . git rm "*x-"
    `,
    'Read(src/c-)',
  ],
  [
    'a `~` before a `*` is the home directory',
    `
    ? git rm ~/*
    ? git rm ~/*.key
    . git rm "~/*.key"
    . git rm *.key
    `,
    'Read(~/x.key)',
  ],
  [
    'what git does not track it changes only where it throws away other files, too',
    `
    ? git clean -f
    ? git stash -u
    . git stash
    . git stash -p
    . git checkout main
    . git reset --hard
    . git diff --no-index src .
    . git diff
    `,
    'Edit(./.env)',
  ],
  [
    'what git tracks it changes where it brings something back',
    `
    ? git clean -f
    ? git stash
    ? git stash -p
    ? git checkout main
    ? git reset --hard
    . git stash show -p
    . git diff
    . git show
    . git add -p
    . git grep x
    . git add -A
    `,
    'Edit(src/b.key)',
  ],
  [
    'from a directory of the repository, git shows all of the repository, except what it searches and what is named',
    `
    ? git -C lib show
    ? git -C lib log -p
    ? git -C lib diff HEAD
    ? git -C lib show HEAD:src/b.key
    ? git -C lib cat-file -p HEAD:src/b.key
    ? git -C lib stash show -p
    ? git -C lib fetch ../../other
    ? git -C lib grep x :/
    ? cd lib && git show
    x cd lib && git show HEAD:src/b.key
    . git -C lib log
    . git -C lib status
    . git -C lib show --stat
    . git -C lib grep x
    . git -C lib show -- c.txt
    . git -C lib diff -- c.txt
    . git show HEAD:lib/c.txt
    `,
    'Read(src/b.key)',
  ],
  [
    'and brings back all of it, except where it throws files away',
    `
    ? git -C lib stash
    ? git -C lib reset --hard
    ? git -C lib checkout main
    ? cd lib && git merge x
    . git -C lib clean -f
    . git -C lib show
    `,
    'Edit(src/b.key)',
  ],
]

test.each(ON_DISK)('%s', (_, lines, deny) => expect(decided(lines, (line) => project.decide(line, [deny]))).toBe(lines))

test('a repository on this machine that is named for later, or is asked for its names, is read', () => {
  const given: Given = { mode: 'bypass', deny: ['Read(//work/other/**)'] }
  const lines = `
    x git ls-remote ../other
    x git ls-remote --heads /work/other
    x git ls-remote file:///work/other
    x git remote add x ../other
    x git remote add -f x ../other
    x git remote add x file:///work/other
    x git remote set-url origin /work/other
    x git remote set-url --add --push origin ../other
    ? git remote add x "$y"
    x git -C src remote add x ../../other
    x git config remote.x.url ../other
    x git config set remote.x.pushurl /work/other
    x git config --add Remote.x.URL ../other
    x git config url.../other.insteadOf https://example.com/x
    x git config url./work/other/.pushInsteadOf x
    x git remote add x ../other/x
    x git ls-remote ../other/x
    . git ls-remote
    . git ls-remote origin
    . git ls-remote https://example.com/x
    . git remote
    . git remote -v
    . git remote remove x
    . git remote add x https://example.com/x
    . git remote add x git@example.com:a/b
    . git remote add x ../another
    . git config remote.x.url https://example.com/x
    . git config user.name ../other
  `
  expectDecided(lines, given)
})

test('a repository is also named without a slash, by the name of a directory or of a link', () => {
  const given: Given = {
    mode: 'bypass',
    deny: ['Read(//work/other/**)', 'Read(secrets/**)', 'Read(**/.env)'],
    links: { '/work/project/linked': '/work/other' },
  }
  const lines = `
    x git fetch linked
    x git pull linked main
    x git push -u linked main
    x git ls-remote linked
    x git fetch --multiple origin linked
    x git fetch secrets
    . git fetch origin
    . git fetch origin linked
    . git fetch --all
    . git push -u origin main
    . git push
  `
  expectDecided(lines, given)
})

test('a setting of git can name the files that a later command shows', () => {
  const given: Given = { mode: 'bypass', deny: ['Read(//work/other/**)'] }
  const lines = `
    x git config include.path ../other/x
    x git config --global includeIf.gitdir:/x/.path /work/other/x
    x git config core.worktree ../other
    x git config commit.template ../other/x
    x git config core.excludesFile ../other/x
    x git config set submodule.x.url ../other
    . git config include.path ../another
    . git config commit.template ./template
    . git config core.editor vim
  `
  expectDecided(lines, given)
})
