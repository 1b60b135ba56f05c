/** Whether a rule that denies or asks matches a call. In doubt `maybe`: such a call needs a decision. */
import { pathsOf } from './command-paths.ts'
import type { Question } from './gated-call.ts'
import type { Places } from './places.ts'
import type { Certainty } from './rules/certainty.ts'
import { strongest } from './rules/certainty.ts'
import type { CommandPattern } from './rules/command-pattern.ts'
import { matchCommand } from './rules/command-pattern.ts'
import type { Effort } from './rules/effort.ts'
import { argumentTexts, namedIn } from './program-arguments.ts'
import { matchUrl } from './rules/domain-pattern.ts'
import type { PathPattern } from './rules/path-pattern.ts'
import { matchPath } from './rules/path-pattern.ts'
import type { PolicyRule } from './rules/rule.ts'
import { isToolOf } from './rules/rule.ts'
import type { CommandLine, Redirection, SimpleCommand } from './shell/command-line.ts'
import { allCommands } from './shell/command-line.ts'
import { isStream } from './shell/streams.ts'
import { readingOf } from './shell/read-only.ts'
import type { ShellWord } from './shell/shell-word.ts'

export function matchRule(rule: PolicyRule, question: Question): Certainty {
  const { tool, deed, places } = question
  if (rule.kind === 'tool') return isToolOf(rule, tool) || isServerOf(rule, question) ? 'yes' : 'no'
  switch (deed.kind) {
    case 'none':
    case 'other':
      return 'no'
    case 'fetch':
      return rule.kind === 'fetch' && deed.url !== undefined ? matchUrl(rule.domain, deed.url) : 'no'
    case 'read':
      return matchFiles(rule, 'read', deed, places)
    case 'edit':
      return matchFiles(rule, 'edit', deed, places)
    case 'command':
      return matchLine(rule, deed.line, places)
    default:
      return deed satisfies never
  }
}

/** Resources and prompts are read by tools that name their server in the input. */
function isServerOf(rule: Extract<PolicyRule, { kind: 'tool' }>, { deed }: Question): boolean {
  const servers = deed.kind === 'none' || deed.kind === 'other' ? deed.mcpServers : undefined
  return servers?.some((server) => isToolOf(rule, `mcp__${server}__`)) ?? false
}

/** What may not be read may not be edited either: an edit shows what is there. */
function matchFiles(
  rule: PolicyRule,
  access: 'read' | 'edit',
  { paths, isDeep = false }: { readonly paths: readonly string[]; readonly isDeep?: boolean },
  places: Places,
): Certainty {
  if (rule.kind === 'reads') return 'yes'
  if (rule.kind === 'edits') return access === 'edit' ? 'yes' : 'no'
  if (rule.kind !== 'read' && !(rule.kind === 'edit' && access === 'edit')) return 'no'
  const words = places.wordsOf(paths)
  return strongest(words.map((word) => matchWord(rule.path, word, places.start, places, isDeep)))
}

function matchLine(rule: PolicyRule, line: CommandLine, places: Places): Certainty {
  if (rule.kind === 'tool' || rule.kind === 'fetch') return 'no'
  const commands = [...allCommands(line.commands)]
  const found = strongest([
    ...commands.map((command) => matchSimple(rule, command, places)),
    ...line.redirections.map((redirection) => matchRedirection(rule, redirection, places)),
  ])
  return found === 'no' && line.hidden !== undefined ? 'maybe' : found
}

function matchSimple(rule: PolicyRule, command: SimpleCommand, places: Places): Certainty {
  switch (rule.kind) {
    case 'command':
      return matchProgram(rule.command, command, places.effort)
    case 'reads': {
      const reading = readingOf(command.words)
      return reading && (reading.paths.length > 0 || reading.readsDirectory) ? 'yes' : 'no'
    }
    case 'read':
      return matchArguments(rule.path, command, places)
    case 'edit':
      return readingOf(command.words) ? 'no' : matchArguments(rule.path, command, places)
    default:
      return 'no'
  }
}

/** A program that is not known may run what is in its arguments. */
function matchProgram(pattern: CommandPattern, command: SimpleCommand, effort: Effort): Certainty {
  const match = matchCommand(pattern, command.words, effort)
  if (match !== 'no') return match
  return namedIn(argumentTexts(command), pattern, effort) ? 'maybe' : 'no'
}

function matchArguments(path: PathPattern, command: SimpleCommand, places: Places): Certainty {
  return strongest(pathsOf(command).map(({ word, isDeep }) => matchWord(path, word, command.cwds, places, isDeep)))
}

function matchRedirection(rule: PolicyRule, { kind, target, cwds }: Redirection, places: Places): Certainty {
  if (isStream(target)) return 'no'
  if (rule.kind === 'reads') return 'yes'
  if (rule.kind === 'edits') return kind === 'edit' ? 'yes' : 'no'
  if (rule.kind !== 'read' && !(rule.kind === 'edit' && kind === 'edit')) return 'no'
  return matchWord(rule.path, target, cwds, places, false)
}

function matchWord(
  pattern: PathPattern,
  word: ShellWord,
  cwds: readonly string[] | undefined,
  places: Places,
  isDeep: boolean,
): Certainty {
  const found = places.partsOf(word, cwds).map((parts) => matchPath(pattern, parts, places.bases, places.effort))
  const match = strongest(found.map((each) => each.match))
  return match === 'no' && isDeep && found.some((each) => each.isAbove) ? 'maybe' : match
}
