/** Which programs are tried with which arguments: the words of all tables of the policy, and some that are in none. */

export type Table = {
  readonly programs: readonly string[]
  readonly calls: readonly string[]
}

const words = (text: string): string[] => text.trim().split(/\s+/)
const lines = (text: string): string[] => text.split('\n').slice(1, -1)

export const GIT: Table = {
  programs: words(`
    add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore checkout checkout-index
    cherry-pick clean clone commit config count-objects describe diff diff-files diff-index diff-tree difftool
    fast-export fetch filter-branch for-each-ref format-patch fsck gc grep hash-object help init lfs log ls-files
    ls-remote ls-tree maintenance merge merge-base mv name-rev notes prune pull push range-diff read-tree rebase reflog
    remote reset restore rev-list rev-parse revert rm shortlog show show-ref sparse-checkout stash status submodule
    switch symbolic-ref tag unknown unpack-file update-index var version whatchanged worktree
    `).map((name) => `git ${name}`),
  calls: lines(`

.env
src
HEAD:.env
HEAD:src/a
:/.env
:.env
-- .env
-- src
-- :.env
../x
src/..
/work/project/.env
~/.env
--no-index a
-p
--patch
-s
-t HEAD
-v
-i
-u
-a
-m .env
-mp
-am p
--message .env
--edit
--interactive
-F.env
-f.env
--file=.env
--stdin-paths
--stat
--stat -p
--name-only x
--name-only --unknown
--oneline -5
--format=%H
-G .env
--untracked x
--include-untracked
show
show -p
list
$x
-x evil
--exec evil
run evil
foreach evil
--tree-filter evil
-Oevil
-c x.y=evil
`),
}

export const GIT_OPTIONS: Table = {
  programs: lines(`
git
git --no-pager
git -C src
git -C ..
git -C /work/project
git -C src -C ..
git -C $x
git -c a=b
git -ca=b
git --git-dir=x
git --work-tree x
git --namespace=x
git --exec-path=x
git --super-prefix=x
git --bare
git -p
git --config-env=a=b
git $x
`),
  calls: lines(`

--version
log
log --stat
show HEAD:.env
show HEAD:../.env
diff .env
diff /work/project/.env
diff ~/x
add .env
mv .env x
status
clone -c a=b x
`),
}

export const FILES: Table = {
  programs: words(`
    7z 7za [ awk ack ag bash basename black brew bsdtar bun bzgrep cargo cat chgrp chmod chown cmp cp cpio curl cut date dd
    declare diff dirname docker du echo egrep export fd fdfind fgrep find gh grep gtar head install jq kill less ln
    local ls make mkdir mktemp mv nerdctl node npm pax pcre2grep pip podman printf pt python3 readlink readonly
    realpath rg rgrep rm rmdir rsync scp sed seq sh shred sift sort star stat tail tar tee test touch tr tree true
    typeset ug ugrep unset unzip vitest wc which xxd xzgrep yarn zgrep zip /usr/bin/grep ./grep
    `),
  calls: lines(`

.env
.
src
*
.e*
a .env
.env a
.env a .
x=.env
@.env
-- .env
-f.env
-zf/work/project/.env
--file=.env
--file .env
--files0-from=x
--files-from=x
-r .
-R src .
-a . x
-d .
--recursive .
--directory=x a
-t . x
--target-directory=. x
-delete
-fprint .env
-v .:/x
--mount x
cp x:/ y
-xf a
xf a
x a
-cf a .
-C x -cf a .
-T x
--extract
-i
-e .env
-e x .
x -c
~/.env
/proc/self/cwd x
/dev/fd/3 x
src/.. x
../project x
"read('.env')"
"curl:.env,"
"x 'evil y'"
evil
$x
`),
}

export const SEARCHES: Table = {
  programs: ['grep', 'egrep', 'git grep', 'rg', 'ack'],
  calls: [
    ...lines(`
x
.env
x .env
x src
x -
x - .env
x -- .env
-- .env
-- x .env
-e x
-e .env
-e x src
-f .env
-f .env src
-f.env
--file=.env
--file=.env src
--file .env src
--file src .env
--file=src .env
--regexp .env
--regexp=.env src
-r x
-rn x src
-Rx src
-d recurse x
-drecurse x
-nA1 x src
-nA 1 .env
-u x
-uu x
-u -u x
--unrestricted --unrestricted x
-. x
--hidden x
-t ts x
-t all x
-tts x
--type ts x
--type=all x
-g *.ts x
-g .e* x
-g '.e*' x
-g '!x' x
--glob '*.ts' x
--glob=.env x
--iglob .env x
--include=*.ts -r x
--include='*.ts' -r x .
--include=.env -r x .
--include='.e[n]v' -r x .
--include='!x' -r x .
--include='a/.env' -r x .
--include='*.ts' --include=.env -r x .
--files
--files src
--files .env
--type-list
--$x x
-$x x
$x
a$x .env
--unknown .env
--unknown=x .
-r$x x
`),
    ...words(`
      extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case invert-match word-regexp
      line-regexp count files-with-match files-with-matches files-without-match files-without-matches only-matching quiet silent no-messages byte-offset
      with-filename no-filename line-number initial-tab null null-data text recursive dereference-recursive color colour
      line-buffered cached untracked no-index name-only full-name heading break show-function function-context all-match
      and or not smart-case case-sensitive no-line-number column no-column no-heading count-matches multiline
      multiline-dotall no-hidden no-ignore no-ignore- no-ignore-vcs no-ignore-+ follow stats json pretty trim vimgrep pcre2 passthru sort-files
      crlf one-file-system search-zip no-config no-unicode include-zero max-columns-preview max-count after-context
      before-context context exclude exclude-dir exclude-from label binary-files max-depth threads type-not maxdepth
      max-columns max-filesize replace sort sortr colors encoding context-separator engine
      `).flatMap((option) => [
      `--${option} x .env`,
      `--${option} x y .env`,
      // With an option that is not known, what would be the pattern may be a file.
      `--${option} .env y`,
      `--${option}_ .env y`,
      `--x--${option} .env y`,
    ]),
    ...Array.from('ABCEMTdefgjmrtDnx', (letter) => `-${letter} x .env`),
  ],
}

export const WRAPPERS: Table = {
  programs: words(`
    builtin command exec nice nohup setsid stdbuf time timeout env xargs find fd fdfind eval trap alias set shopt source .
    git bash rbash sh dash ash zsh ksh mksh fish csh tcsh pwsh at batch crontab sudo ssh watch npx docker strace npm uv
    make dotenv nix ./env /usr/bin/env /opt/env /bin/timeout unknown declare mapfile read printf let test export
    `),
  calls: lines(`

evil
evil y
ls
-p evil
-v evil
-V evil
-cl evil
-a x evil
-n 1 evil
-n1 evil
-5 evil
--adjustment 1 evil
-oL evil
--output L evil
-k 1 5 evil
--x-p evil
-p_ evil
-x-5 evil
-5_ evil
-x-cl evil
-cl_ evil
-e L evil
-i0 evil
--input 0 evil
--error=L evil
-x-oL evil
--preserve-status 5 evil
--preserve-status_ 5 evil
--verbose 5 evil
--x--verbose 5 evil
-v 5 evil
-x-k 1 5 evil
--kill-after 1 5 evil
-w evil
5 evil
-s KILL 5 evil
--signal=KILL 5 evil
--foreground 5 evil
-f 5 evil
-- evil
-- 5 evil
--unknown evil
-i evil
-u x evil
--unset=x evil
-C / evil
--chdir=/ evil
- evil
x=1 evil
x=$y evil
$x=1 evil
LC_ALL=C ls
LC_ALL=$x ls
PATH=. ls
-S 'evil y'
-0 evil
-I{} evil {}
-I evil
-P4 evil
-d x evil
--eof evil
--replace evil
. -exec evil ;
. -exec evil {} +
. -execdir evil \\;
. -ok evil \\;
-x evil
-X evil
-c evil
-c 'evil y'
-c "ls; evil"
-c "$x"
-lc evil
-ce evil
-o x -c evil
+x -c evil
--norc -c evil
-s evil
file
./file evil
-i
-e
-x
-o pipefail
-u nullglob
-l
'a;evil'
x='evil y'
x=y
-i x=1
-i x=a
-n x
-A x
-v x
-v 'x[1]'
x[1]
'x[$(evil)]=1'
exec evil
run evil
x evil
--prefix y evil
-D y evil
.
`),
}

export const ASSIGNED: Table = {
  programs: words(`
    LC_ALL LANG LANGUAGE LC_X PATH HOME IFS ENV BASH_ENV GIT_EDITOR GIT_PAGER GIT_DIR EDITOR PAGER LD_PRELOAD NODE_OPTIONS
    PYTHONPATH PS4 PROMPT_COMMAND SECONDS RANDOM OPTIND HISTCMD LINENO x CI NODE_ENV FORCE_COLOR TZ TERM
    `),
  calls: lines(`
=1; ls
=1 ls
=a ls
=C ls
=en_US.UTF-8 ls
=../x ls
=a[1] ls
=$x ls
=(1 2); ls
=([a]=1); ls
=([1]=a b); ls
+=1; ls
[1]=1; ls
[a]=1; ls
=evil ls
='evil y'; git commit
=1 evil
`),
}
