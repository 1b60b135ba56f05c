/**
 * Knows which calls of git only read. Options that write a file or run a program are not listed, and git takes them
 * abbreviated.
 */
import type { ShellWord } from './shell-word.ts'
import { literalOf } from './shell-word.ts'

/** `%G?` in a format runs the program that checks signatures. */
const SHOWS =
  /^(-[0-9]+|-[pusMCwbzR]|-[nUGSL].*|--(stat|shortstat|numstat|name-only|name-status|oneline|graph|all|decorate|no-decorate|cached|staged|summary|patch|no-patch|no-color|color|no-merges|merges|first-parent|reverse|follow|date=[\w:%-]+|(format|pretty)=(?!.*%[-+ ]?G).*|pretty|max-count=\d+|since=.*|until=.*|after=.*|before=.*|author=.*|grep=.*|abbrev-commit|abbrev(=\d+)?|word-diff(=\w+)?|unified=\d+|minimal|ignore-all-space|ignore-space-change|no-ext-diff|no-textconv|no-renames|diff-filter=\w+|merge-base|exit-code|quiet|raw|left-right|cherry-pick|topo-order|tags|branches|remotes))$/

/** The options of each subcommand, and whether it may have operands. `branch x` and `tag x` create one. */
const READS: Readonly<Record<string, { readonly options: RegExp; readonly operands: boolean }>> = {
  blame: { options: /^(-[swMCetf]+|-L.*|--date=\w+)$/, operands: true },
  branch: { options: /^(-[arv]+|-vv|--(all|remotes|list|verbose|show-current|no-color))$/, operands: false },
  'cat-file': { options: /^-[tspe]$/, operands: true },
  describe: { options: /^--(tags|all|always|dirty|long|abbrev=\d+)$/, operands: true },
  diff: { options: SHOWS, operands: true },
  log: { options: SHOWS, operands: true },
  'ls-files': { options: /^(-[cdmostuz]+|--(cached|deleted|modified|others|stage|exclude-standard))$/, operands: true },
  'ls-tree': { options: /^(-[drtlz]+|--(name-only|long|full-tree))$/, operands: true },
  'merge-base': { options: /^(--all|--is-ancestor)$/, operands: true },
  remote: { options: /^(-v|--verbose)$/, operands: false },
  'rev-list': { options: SHOWS, operands: true },
  'rev-parse': {
    options: /^--(short(=\d+)?|verify|abbrev-ref|show-toplevel|git-dir|is-inside-work-tree|show-prefix|quiet)$/,
    operands: true,
  },
  shortlog: { options: /^-[nse]+$/, operands: true },
  show: { options: SHOWS, operands: true },
  status: {
    options:
      /^(-[sbuvz]+|-uno|-unormal|-uall|--(short|branch|porcelain(=v?[12])?|long|untracked-files(=\w+)?|ignored|no-renames))$/,
    operands: true,
  },
  tag: { options: /^(-l|-n\d*|--list|--sort=[\w:-]+)$/, operands: false },
}

/** `words` are those after `git`. */
export function isReadingGit(words: readonly ShellWord[]): boolean {
  const texts = words.map(literalOf)
  const at = texts[0] === '--no-pager' ? 1 : 0
  const subcommand = texts[at]
  const spec = subcommand !== undefined && Object.hasOwn(READS, subcommand) ? READS[subcommand] : undefined
  if (!spec) return false
  const rest = texts.slice(at + 1)
  return rest.every((text) => {
    if (text === undefined) return false
    if (text.startsWith('-')) return text === '--' || spec.options.test(text)
    return spec.operands
  })
}
