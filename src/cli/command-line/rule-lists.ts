/** Lists of permission rules in arguments: separated by commas or blanks, and never taken for words of the prompt. */
import { PRESETS } from '../../tools/presets.ts'
import type { Token } from './parse-options.ts'
import { UsageError } from './usage-error.ts'

const OPTIONS: ReadonlySet<string> = new Set(['allowed-tools', 'disallowed-tools'])

/** The tools of other agents: a rule is recognised although there is no such tool here. */
const OTHER_TOOLS = [
  'apply_patch',
  'Agent',
  'NotebookEdit',
  'NotebookRead',
  'LS',
  'TodoWrite',
  'KillBash',
  'ExitPlanMode',
]
const TOOLS: ReadonlySet<string> = new Set([...Object.values(PRESETS).flat(), ...OTHER_TOOLS])

/** Throws a `UsageError` if the option was given and names no rule: nothing would be denied. */
export function listedRules(option: string, texts: readonly string[] | undefined): string[] {
  const rules = (texts ?? []).flatMap(splitList)
  if (texts && rules.length === 0) throw new UsageError(`--${option} names no rule.`)
  return rules
}

/** Commas and blanks separate entries, except in parentheses. */
function splitList(text: string): string[] {
  const entries = ['']
  let depth = 0
  for (const character of text) {
    depth += character === '(' ? 1 : character === ')' ? -1 : 0
    if (depth <= 0 && /[,\s]/.test(character)) entries.push('')
    else entries[entries.length - 1] += character
  }
  return entries.filter((entry) => entry !== '')
}

/**
 * Claude Code takes each argument up to the next option for a rule. Here one follows the option, and the next word would be
 * the prompt: a rule that denies would have no effect. Throws a `UsageError` for a word that is a rule.
 */
export function refuseLooseRules(tokens: readonly Token[]): void {
  for (const [at, token] of tokens.entries()) {
    const before = tokens[at - 1]
    if (token.kind !== 'positional' || before?.kind !== 'option' || !OPTIONS.has(before.name)) continue
    const words = splitList(token.value)
    if (words.length === 0 || !words.every(isRule)) continue
    throw new UsageError(
      `${token.value} after --${before.name} ${before.value ?? ''} is another rule; write --${before.name} '${before.value ?? ''}, ${token.value}', or -- before a prompt.`,
    )
  }
}

function isRule(word: string): boolean {
  const [name = ''] = word.split('(', 1)
  return (TOOLS.has(name) || name.startsWith('mcp__')) && (name === word || word.endsWith(')'))
}
