/** What of a call needs a permission: what its mode does not let run by itself and no `allow` rule covers. */
import type { Question } from './gated-call.ts'
import type { GateRules } from './rules/gate-rules.ts'
import { isFreeBuiltin } from './shell/evaluating-builtins.ts'
import type { Places } from './places.ts'
import type { Effort } from './rules/comparison.ts'
import { exactPattern, matchesCertainly } from './rules/command-pattern.ts'
import { isBalanced, UNSEEN_AT_END } from './rules/globs.ts'
import { matchUrl } from './rules/domain-pattern.ts'
import { matchPath } from './rules/path-pattern.ts'
import type { PolicyRule } from './rules/rule.ts'
import { isToolOf } from './rules/rule.ts'
import type { CommandLine, Redirection, SimpleCommand } from './shell/command-line.ts'
import { readingOf } from './shell/read-only.ts'
import type { ShellWord } from './shell/shell-word.ts'
import { literalOf } from './shell/shell-word.ts'

export type Need = {
  /** The end of a sentence that begins with "it". */
  readonly reason: string
  /** Whether it may change something; if not, it only reads. */
  readonly changes: boolean
  /** The rule that would allow exactly this; absent when no rule can say so. */
  readonly rule?: string
}

export function needsOf({ tool, action, places }: Question, rules: GateRules): Need[] {
  const allow = rules.rules.allow
  if (action.kind === 'none' || allow.some((rule) => rule.kind === 'tool' && isToolOf(rule, tool))) return []
  switch (action.kind) {
    case 'read':
    case 'edit':
      return places
        .wordsOf(action.paths)
        .flatMap((word) => fileNeeds(action.kind, word, places.start, { places, rules }))
    case 'command':
      return lineNeeds(action.line, { places, rules })
    case 'fetch': {
      const { url } = action
      if (url !== undefined && allow.some((rule) => rule.kind === 'fetch' && matchUrl(rule.domain, url) === 'yes'))
        return []
      const host = URL.parse(url ?? '')?.hostname
      // A `*` in a rule stands for other hosts, too.
      const rule = url === undefined ? tool : host && !host.includes('*') && `WebFetch(domain:${host})`
      return [{ reason: `reaches ${host ?? 'the network'}`, changes: false, ...(rule && { rule }) }]
    }
    case 'other':
      return [{ reason: `calls ${tool}, which may change something`, changes: true, rule: tool }]
    default:
      return action satisfies never
  }
}

type NeedsContext = { readonly places: Places; readonly rules: GateRules }

/** A name that a `*` stands for may be a link: `mayBeFree` is for words whose links, if any, are not followed. */
function fileNeeds(
  kind: 'read' | 'edit',
  word: ShellWord,
  cwds: Redirection['cwds'],
  needsContext: NeedsContext,
  mayBeFree = true,
): Need[] {
  const { places, rules } = needsContext
  const isInside = mayBeFree && places.isInside(word, cwds)
  const isFree =
    (kind === 'read' && !rules.isStrangers) || (rules.mode === 'accept_edits' && !places.isProtected(word, cwds))
  if ((isInside && isFree) || isAllowedPath(kind, word, cwds, needsContext)) return []
  const path = literalOf(word)
  const shownPath = path === undefined ? 'a path that is not known' : path
  const reason = kind === 'edit' ? `changes ${shownPath}` : `reads ${shownPath}, which is outside the workdir`
  const rule = path === undefined ? undefined : exactPathRule(kind, path, places)
  return [{ reason, changes: kind === 'edit', ...(rule !== undefined && { rule }) }]
}

/** An `Edit` rule does not allow reading, and a `Read` rule does not allow edits. */
function isAllowedPath(
  kind: 'read' | 'edit',
  word: ShellWord,
  cwds: Redirection['cwds'],
  { places, rules }: NeedsContext,
): boolean {
  const paths = places.partsOf(word, cwds)
  return rules.rules.allow.some((rule) => {
    if (rule.kind === (kind === 'read' ? 'reads' : 'edits')) return true
    return (
      rule.kind === kind &&
      paths.every((path) => matchPath(rule.path, path, places.directories.bases, places.effort).match === 'yes')
    )
  })
}

function exactPathRule(kind: 'read' | 'edit', path: string, places: Places): string | undefined {
  // A rule for a directory would allow all below it, and spaces at the ends of a rule are left out.
  if (/[*?\0]|^\s|\s$|(^|\/)\.{0,2}$/.test(path) || UNSEEN_AT_END.test(path) || path.split('/').includes('..'))
    return undefined
  if (!isBalanced(path, '[]') || !isBalanced(path, '()')) return undefined
  const name = kind === 'read' ? 'Read' : 'Edit'
  const workdir = places.directories.bases.workdirs.find((each) => path.startsWith(`${each}/`))
  if (workdir !== undefined) return `${name}(${path.slice(workdir.length + 1)})`
  if (path.startsWith('/')) return `${name}(/${path})`
  return path.startsWith('~') ? undefined : `${name}(${path})`
}

function lineNeeds(line: CommandLine, needsContext: NeedsContext): Need[] {
  const odd = line.hidden ?? line.unusual
  const needs = odd === undefined ? [] : [{ reason: `cannot be decided by rules: ${odd}`, changes: true }]
  if (needsContext.rules.isStrangers && line.commands.length === 0)
    needs.push({ reason: 'changes the shell for a project that is not trusted', changes: true })
  const ofFiles = line.redirections
    .filter((redirection) => !redirection.isStream)
    .flatMap(({ kind, target, cwds }) => fileNeeds(kind, target, cwds, needsContext, literalOf(target) !== undefined))
  return [...needs, ...line.commands.flatMap((command) => commandNeeds(command, needsContext)), ...ofFiles]
}

function commandNeeds(command: SimpleCommand, needsContext: NeedsContext): Need[] {
  const { words, cwds, wraps, unsafeVariable } = command
  if (unsafeVariable !== undefined)
    return [{ reason: `runs ${shownCommand(words)} with another ${unsafeVariable}`, changes: true }]
  const rule = needsContext.rules.rules.allow.find((each) => isAllowedBy(each, command, needsContext.places.effort))
  const isExact = rule?.kind === 'command' && rule.command.isExact
  if (isExact) return []
  const inner = wraps?.commands ?? []
  const name = words[0] && literalOf(words[0])
  const isLookedFor = !rule && name !== undefined && !isFreeBuiltin(name)
  const whyOwn = isLookedFor ? needsContext.places.whyOwn(name, cwds) : undefined
  if (wraps?.kind === 'constant' && whyOwn === undefined)
    return inner.flatMap((each) => commandNeeds(each, needsContext))
  if (rule) return wraps?.kind === 'also' ? inner.flatMap((each) => commandNeeds(each, needsContext)) : []
  const outside =
    wraps || whyOwn !== undefined || needsContext.rules.isStrangers ? undefined : readingNeeds(command, needsContext)
  if (outside) return outside
  const pattern = exactPattern(words)
  const namedRule = pattern === undefined ? {} : { rule: `Bash(${pattern})` }
  const why = needsContext.rules.isStrangers
    ? 'for a project that is not trusted'
    : (whyOwn ?? 'which may change something')
  return [{ reason: `runs ${shownCommand(words)}, ${why}`, changes: true, ...namedRule }]
}

function isAllowedBy(rule: PolicyRule, { words, wraps }: SimpleCommand, effort: Effort): boolean {
  if (rule.kind !== 'command' || !matchesCertainly(rule.command, words, effort)) return false
  // `Bash(sudo:*)` says nothing about what sudo runs.
  return wraps?.kind !== 'launcher' || rule.command.literalWords.slice(1).some((word) => !word.startsWith('-'))
}

/** Undefined for a command that does more than read. */
function readingNeeds({ words, cwds }: SimpleCommand, needsContext: NeedsContext): Need[] | undefined {
  const reading = readingOf(words)
  if (!reading) return undefined
  const { places } = needsContext
  const pattern = exactPattern(words)
  const namedRule = pattern === undefined ? {} : { rule: `Bash(${pattern})` }
  const because = (why: string, changes = false): Need[] => [
    { reason: `runs ${shownCommand(words)}${why}`, changes, ...namedRule },
  ]
  // The configuration of a repository in another directory may run a program.
  if (reading.isGit && !places.isWorkdir(cwds)) return because(' outside the workdir', true)
  const needs = reading.paths.flatMap((word) => fileNeeds('read', word, cwds, needsContext))
  if (reading.followsLinks && reading.paths.some((word) => places.mayBeDirectory(word, cwds)))
    return because(', which follows links in directories')
  if (reading.paths.some((word) => places.mayBeOption(word, cwds)))
    return because(', where the name of a file is taken as an option')
  if (needs.length) return needs.map(({ reason }) => ({ reason, changes: false, ...namedRule }))
  const program = reading.isGit && places.programOfGit
  if (program) return because(`, and git ${program}`, true)
  const isIn = !reading.readsDirectory || places.isDirectoryInside(cwds)
  return isIn ? [] : because(' outside the workdir')
}

const MAX_SHOWN = 80

function shownCommand(words: readonly ShellWord[]): string {
  const text = words.map((word) => word.pieces.map((piece) => ('text' in piece ? piece.text : '…')).join('')).join(' ')
  return JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text)
}
