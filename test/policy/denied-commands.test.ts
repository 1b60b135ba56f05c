/** Which commands a rule for commands is about: what it is about in words, each with commands that show it. */
import { expect, test } from 'vitest'
import type { Given, Row } from './decisions.ts'
import { decideCommand, decided } from './decisions.ts'

const bypass = (...deny: string[]): Given => ({ mode: 'bypass', deny })
const NOT_RM = bypass('Bash(rm:*)')

const ROWS: readonly (readonly [...Row, given: Given])[] = [
  [
    'the name of a command counts wherever an unknown program may take it for one',
    `
    ? node -e "rm x"
    ? node -e "a;rm x"
    ? node -e "/bin/rm x"
    ? node -e "x('rm')"
    ? node rm
    ? unknown rm x
    . node -e "rmdir x"
    . node -e "xrm x"
    . node -e "r-m x"
    . node -e "rm-x y"
    . node -e "r"
    . node
    . node rms
    . echo rm
    . grep rm x
    . /usr/bin/grep rm x
    . npm run rm
    . cat rm
    `,
    NOT_RM,
  ],
  [
    'a rule whose command ends with a wildcard is about each name that begins so',
    `
    ? node -e "rm x"
    ? node -e "rmdir x"
    ? node -e "a rmdir"
    . node -e "xrm x"
    . node -e "r x"
    x rm x
    x rmdir x
    `,
    bypass('Bash(rm*)'),
  ],
  [
    'a rule that begins with a wildcard is about no arguments',
    `
    . node -e "rm x" y
    x rm x
    . x rm
    `,
    bypass('Bash(*m x)'),
  ],
  [
    'of a rule with arguments, the arguments count',
    `
    ? node -e "git push"
    ? node -e "git -C x push"
    ? node -e "git", "push"
    ? node -e "x git; git push"
    . node -e "git pull"
    . node -e "push git"
    . node -e "git" x; push
    `,
    bypass('Bash(git push:*)'),
  ],
  [
    'a name that git does not have itself may be an alias of what a rule denies',
    `
    ? git config alias.p push; git p origin
    ? git p
    ? git -C sub p origin
    ? git --no-pager p
    ? git --git-dir .git p
    ? /usr/bin/git pussh
    ? git lfs pull
    ? git whatchanged
    ? env git p
    x git push
    . git
    . git --version
    . git -C p pull
    . git submodule update
    . git config alias.p
    . unknown p
    `,
    bypass('Bash(git push:*)'),
  ],
  [
    'an alias may be any call of git, whatever its arguments are',
    `
    ? git p
    . git pull
    `,
    bypass('Bash(git * --force)'),
  ],
  [
    'an alias of gh may be any call of gh, or a program, when it is made',
    `
    ? gh alias set p 'pr merge'
    ? gh alias set --shell p 'rm x'
    ? gh alias import aliases.yml
    . gh alias list
    . gh pr create
    . gh issue list --search alias
    `,
    bypass('Bash(gh pr merge:*)', 'Bash(rm:*)'),
  ],
  ['a rule for another program says nothing about names that git may have', '. git p', NOT_RM],
  [
    'the value of a setting of git may be a program that git runs',
    `
    ? git config alias.x '!rm -rf y'
    ? git config --global alias.x '!f() { rm "$@"; }; f'
    ? git config set core.editor rm
    ? git config core.sshCommand "sh -c 'rm x'"
    ? git config filter.x.clean /bin/rm
    ? git -C sub config --add diff.external rm
    ? git config user.name core.pager rm
    ? git config $x rm
    . git config core.editor vi
    . git config user.name rm
    . git config remote.origin.url https://example.com/rm
    . git config --get core.editor
    . git commit -m rm
    `,
    NOT_RM,
  ],
  [
    'git runs a program for its side of a connection, also if the option is abbreviated, and for an address with a helper',
    `
    x git fetch --upload-pack "rm x" y
    x git fetch --upload-pack="rm x" y
    x git fetch --upl="rm x" y
    x git push --rece="rm x" y
    x git push --exe="rm x" y
    x git clone -u "rm x" y
    ? git push "ext::rm x"
    ? git --no-pager push "ext::rm x"
    ? git clone a::b
    ? git remote add x "ext::rm x"
    . git commit -m "std::rm x"
    . git push --recurse-submodules=check origin
    . git fetch --update-head-ok origin
    . git clone https://example.com/rm
    `,
    NOT_RM,
  ],
  [
    'what a variable is set to may be a command that a program runs',
    `
    ? GIT_EDITOR='rm x' git commit
    ? export EDITOR='rm x'
    . x='rm x'
    . CI=rm npm test
    . GIT_EDITOR='mv x y' git commit
    `,
    NOT_RM,
  ],
]

test.each(ROWS)('%s', (_, lines, given) => expect(decided(lines, (line) => decideCommand(line, given))).toBe(lines))

const ALLOWED: readonly (readonly [...Row, allow: string])[] = [
  [
    'a rule for a launcher names more than the launcher and its options',
    `
    ? sudo rm x
    ? sudo -u x rm
    `,
    'Bash(sudo:*)',
  ],
  [
    'also if it has options',
    `
    ? sudo -u x
    ? sudo -u rm x
    `,
    'Bash(sudo -u:*)',
  ],
  [
    'a rule that names a command of a launcher allows it',
    `
    . sudo rm x
    . sudo rm
    ? sudo mv x
    `,
    'Bash(sudo rm:*)',
  ],
]

test.each(ALLOWED)('%s', (_, lines, allow) =>
  expect(decided(lines, (line) => decideCommand(line, { allow: [allow] }))).toBe(lines),
)
