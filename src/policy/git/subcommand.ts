/**
 * Finds the words of a call of git, or gh, that may stand for something else: an alias, and a setting that runs a
 * program.
 */
import type { ShellWord } from '../shell/shell-word.ts'
import { literalOf, UNKNOWN_WORD } from '../shell/shell-word.ts'
import { isHarmlessKey } from './harmless-config.ts'

/**
 * The commands that each git of the last years has, and that no alias can replace. Newer ones, and those that git announces
 * to remove, are left out: another version takes their names for aliases.
 */
const OWN = new Set(
  `add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap check-ref-format
  checkout checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree config count-objects
  credential describe diff diff-files diff-index diff-tree difftool fast-export fast-import fetch fetch-pack filter-branch
  fmt-merge-msg for-each-ref format-patch fsck gc grep hash-object help index-pack init init-db interpret-trailers log
  ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index merge-tree mergetool
  mktag mktree multi-pack-index mv name-rev notes pack-objects pack-refs patch-id prune prune-packed pull push range-diff
  read-tree rebase receive-pack reflog remote repack replace request-pull rerere reset restore rev-list rev-parse revert rm
  send-pack shortlog show show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule switch
  symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info upload-archive upload-pack var
  verify-commit verify-pack verify-tag version worktree write-tree`.split(/\s+/),
)

/** Their value is the next word. */
const VALUED = /^(-[Cc]|--(git-dir|work-tree|namespace|super-prefix|config-env|attr-source))$/

/** Returns the call with a wildcard in place of a name that can be an alias. Returns undefined if no name can be one. */
export function withoutAlias(words: readonly ShellWord[]): readonly ShellWord[] | undefined {
  const [first] = words
  const subcommand = subcommandIn(words, GIT)
  const mayBeAlias = (subcommand !== undefined && !OWN.has(subcommand)) || makesAliasOfGh(words)
  return first && mayBeAlias ? [first, UNKNOWN_WORD] : undefined
}

const KEY = /^[a-z][a-z\d-]*\.(.*\.)?[a-z][a-z\d-]*$/is

/** Returns true for `git config core.editor …`, and for each other setting that may make a program of its value. */
export function configuresProgram(words: readonly ShellWord[]): boolean {
  if (makesAliasOfGh(words)) return true
  if (subcommandIn(words, GIT) !== 'config') return false
  return words.map(literalOf).some((text) => text === undefined || (KEY.test(text) && !isHarmlessKey(text)))
}

/** `gh alias set p 'pr merge'`. Unlike those of git, they are made by this command only, or by an edit of a file. */
function makesAliasOfGh(words: readonly ShellWord[]): boolean {
  return subcommandIn(words, GH) === 'alias' && words.map(literalOf).some((text) => text === 'set' || text === 'import')
}

const GIT = /(^|\/)git$/
const GH = /(^|\/)gh$/

/** Undefined for another program, without a subcommand, and if it is not known. */
function subcommandIn([first, ...rest]: readonly ShellWord[], program: RegExp): string | undefined {
  if (!first || !program.test(literalOf(first) ?? '')) return undefined
  const texts = rest.map(literalOf)
  for (let at = 0; at < texts.length; at += 1) {
    const text = texts[at]
    if (!text?.startsWith('-')) return text
    if (VALUED.test(text)) at += 1
  }
  return undefined
}
