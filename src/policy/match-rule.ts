/** Whether a rule that denies or asks matches a call. In doubt `maybe`: such a call needs a decision. */
import { pathsOf } from './command-paths.ts'
import type { GatedAction, Question } from './gated-call.ts'
import type { CommandPath } from './path-words.ts'
import { withoutAlias } from './git/subcommand.ts'
import type { Places } from './places.ts'
import type { Certainty, Effort } from './rules/comparison.ts'
import { strongest } from './rules/comparison.ts'
import type { CommandPattern } from './rules/command-pattern.ts'
import { matchCommand } from './rules/command-pattern.ts'
import { argumentTexts, namedIn, textsIn } from './program-arguments.ts'
import { matchUrl } from './rules/domain-pattern.ts'
import { matchPath } from './rules/path-pattern.ts'
import type { PolicyRule } from './rules/rule.ts'
import { isToolOf } from './rules/rule.ts'
import type { CommandLine, Redirection, SimpleCommand } from './shell/command-line.ts'
import { allCommands } from './shell/command-line.ts'
import { readingOf } from './shell/read-only.ts'
import { literalOf } from './shell/shell-word.ts'
import { lazilyForEach } from '../lib/lazily.ts'

export function matchRule(rule: PolicyRule, question: Question): Certainty {
  const { tool, action, places } = question
  if (rule.kind === 'tool')
    return isToolOf(rule, tool) || isServerOf(rule, question) || isWriting(rule, action) ? 'yes' : 'no'
  switch (action.kind) {
    case 'none':
    case 'other':
      return 'no'
    case 'fetch':
      return rule.kind === 'fetch' && action.url !== undefined ? matchUrl(rule.domain, action.url) : 'no'
    case 'read':
    case 'edit':
      return matchFiles(rule, action, places)
    case 'command':
      return matchLine(rule, action.line, places)
    default:
      return action satisfies never
  }
}

/** Resources and prompts are read by tools that name their server in the input. */
function isServerOf(rule: Extract<PolicyRule, { kind: 'tool' }>, { action }: Question): boolean {
  const servers = action.kind === 'none' || action.kind === 'other' ? action.mcpServers : undefined
  return servers?.some((server) => isToolOf(rule, `mcp__${server}__`)) ?? false
}

/** Tools of other names make files, too: a rule that denies `Write` is about them. */
const isWriting = ({ name }: Extract<PolicyRule, { kind: 'tool' }>, action: GatedAction): boolean =>
  name === 'Write' && action.kind === 'edit' && action.isWhole === true

function matchFiles(
  rule: PolicyRule,
  action: Extract<GatedAction, { kind: 'read' | 'edit' }>,
  places: Places,
): Certainty {
  const isDeep = action.kind === 'read' && action.isDeep
  const deep = isDeep && { depth: { reads: true } as const }
  return matchAccess(rule, action.kind, (file) =>
    strongest(
      places.wordsOf(action.paths).map((word) => matchWord(file, { word, ...deep }, { cwds: places.start }, places)),
    ),
  )
}

/** What may not be read may not be edited either: an edit shows what is there. */
function matchAccess(rule: PolicyRule, access: 'read' | 'edit', matchFile: (rule: FileRule) => Certainty): Certainty {
  switch (rule.kind) {
    case 'reads':
      return 'yes'
    case 'edits':
      return access === 'edit' ? 'yes' : 'no'
    case 'read':
      return matchFile(rule)
    case 'edit':
      return access === 'edit' ? matchFile(rule) : 'no'
    default:
      return 'no'
  }
}

function matchLine(rule: PolicyRule, line: CommandLine, places: Places): Certainty {
  if (rule.kind === 'fetch') return 'no'
  const foundCertainty = strongest([
    ...commandsOf(line).map(({ command, mayChange }) => matchSimple(rule, command, mayChange, places)),
    ...line.redirections.map((redirection) => matchRedirection(rule, redirection, places)),
    rule.kind === 'command' && namedIn(textsIn(line.values), rule.command, places.effort) ? 'maybe' : 'no',
  ])
  return foundCertainty === 'no' && line.hidden !== undefined ? 'maybe' : foundCertainty
}

/** They may put files where another command of the same line finds them. */
const BRINGS_FILES = new Set('7z bsdtar bash cp cpio dd git ln mv rsync scp sh tar unzip'.split(' '))

/** `mayChange`: another command of the line may bring files. */
type CommandOfLine = { readonly command: SimpleCommand; readonly mayChange: boolean }

/** The same for all rules. */
const commandsOf = lazilyForEach((line: CommandLine): readonly CommandOfLine[] => {
  const commands = [...allCommands(line.commands)]
  const bringing = new Set(commands.filter(bringsFiles))
  return commands.map((command) => ({ command, mayChange: bringing.size > (bringing.has(command) ? 1 : 0) }))
})

function bringsFiles({ words }: SimpleCommand): boolean {
  const name = words[0] && literalOf(words[0])
  return !readingOf(words) && (name === undefined || BRINGS_FILES.has(name))
}

function matchSimple(rule: PolicyRule, command: SimpleCommand, mayChange: boolean, places: Places): Certainty {
  switch (rule.kind) {
    case 'command':
      return matchProgram(rule.command, command, places.effort)
    case 'reads': {
      const reading = readingOf(command.words)
      return reading && (reading.paths.length > 0 || reading.readsDirectory) ? 'yes' : 'no'
    }
    case 'read':
      return matchArguments(rule, command, mayChange, places)
    case 'edit':
      return readingOf(command.words) ? 'no' : matchArguments(rule, command, mayChange, places)
    default:
      return 'no'
  }
}

/** A program that is not known may run what is in its arguments. */
function matchProgram(pattern: CommandPattern, command: SimpleCommand, effort: Effort): Certainty {
  const match = matchCommand(pattern, command.words, effort)
  if (match !== 'no') return match
  const unknownWords = withoutAlias(command.words)
  if (unknownWords && matchCommand(pattern, unknownWords, effort) !== 'no') return 'maybe'
  return namedIn(argumentTexts(command), pattern, effort) ? 'maybe' : 'no'
}

function matchArguments(rule: FileRule, command: SimpleCommand, mayChange: boolean, places: Places): Certainty {
  const where = { cwds: command.cwds, mayChange }
  return strongest(pathsOf(command).map((path) => matchWord(rule, path, where, places)))
}

function matchRedirection(rule: PolicyRule, { kind, target, cwds, isStream }: Redirection, places: Places): Certainty {
  if (isStream) return 'no'
  return matchAccess(rule, kind, (file) => matchWord(file, { word: target }, { cwds }, places))
}

type FileRule = Extract<PolicyRule, { kind: 'read' | 'edit' }>

type Where = { readonly cwds: readonly string[] | undefined; readonly mayChange?: boolean }

function matchWord(rule: FileRule, path: CommandPath, where: Where, places: Places): Certainty {
  const { ofRepository } = path.depth ?? {}
  if (ofRepository === undefined) return matchPlace(rule, path, where, places)
  const tops = places.topsOf(path.word, where.cwds).map((word) => ({ ...path, word }))
  const reachedPaths = ofRepository === 'all' ? [path, ...tops] : tops
  return strongest(reachedPaths.map((each) => matchPlace(rule, each, where, places)))
}

function matchPlace(
  { kind, path: pattern }: FileRule,
  { word, depth, showsNames, isGuess }: CommandPath,
  { cwds, mayChange = false }: Where,
  places: Places,
): Certainty {
  const foundMatches = places
    .partsOf(word, cwds)
    .map((parts) => matchPath(pattern, parts, places.directories.strictBases, places.effort))
  const match = strongest(foundMatches.map((each) => each.match))
  if (showsNames) return match === 'yes' && places.mayBeDirectory(word, cwds) ? 'yes' : 'no'
  // What does not exist cannot be read: a variable or a `*` does not stand for it.
  if (match === 'maybe' && kind === 'read' && !mayChange && !places.mayExist(pattern)) return 'no'
  if (match !== 'no') return isGuess ? 'maybe' : match
  if (!depth || !(kind === 'read' ? depth.reads : depth.changes)) return 'no'
  if (!depth.followsLinks && !foundMatches.some((each) => each.isAbove)) return 'no'
  return places.mayHold(pattern, word, cwds, { depth, mayChange }) ? 'maybe' : 'no'
}
