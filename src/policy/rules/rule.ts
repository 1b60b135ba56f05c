/** A permission rule: how it is written, and the only file that reads it. */
import { currentTool } from '../../contract/values/earlier-tools.ts'
import type { CommandPattern } from './command-pattern.ts'
import { parseCommandPattern } from './command-pattern.ts'
import type { DomainPattern } from './domain-pattern.ts'
import { parseDomainPattern } from './domain-pattern.ts'
import { Effort } from './comparison.ts'
import { coversAll, STAR } from './globs.ts'
import type { PathPattern } from './path-pattern.ts'
import { parsePathPattern } from './path-pattern.ts'

/** `text` is the rule as it was written. `tool`: every call of a tool; `reads` and `edits`: every call that does so. */
export type PolicyRule = { readonly text: string } & (
  | { readonly kind: 'tool'; readonly name: string }
  | { readonly kind: 'reads' | 'edits' }
  | { readonly kind: 'read' | 'edit'; readonly path: PathPattern }
  | { readonly kind: 'command'; readonly command: CommandPattern }
  | { readonly kind: 'fetch'; readonly domain: DomainPattern }
)

const RULE = /^([\w*-]+)(?:\((.*)\))?$/s

/** Returns the rule, or a sentence about the error. */
export function parseRule(text: string): PolicyRule | string {
  const [, name, givenPattern] = RULE.exec(text.trim()) ?? []
  if (name === undefined)
    return `${quote(text)} is not a rule; write Tool or Tool(pattern), for example Bash(git status:*).`
  const fault = faultOfName(name)
  if (fault !== undefined) return `${quote(text)}: ${fault}.`
  const pattern = givenPattern?.trim()
  if (pattern === undefined || pattern === '*') return wholeTool(text, name)
  const parsedRule = parsePattern(text, name, pattern)
  return typeof parsedRule === 'string' ? `${quote(text)}: ${parsedRule}.` : parsedRule
}

/** An `allow` rule names the MCP server before a `*`: what another server brings later is not allowed by it. */
export function parseAllowRule(text: string): PolicyRule | string {
  const rule = parseRule(text)
  if (typeof rule === 'string' || rule.kind !== 'tool' || !rule.name.includes('*') || namesServer(rule.name))
    return rule
  return `${quote(text)}: a rule that allows names the MCP server before a \`*\`, for example mcp__server__*.`
}

/** Rules that hold for every call that an unreadable rule may be about: by the tool that it begins with, or for all. */
export function coarseRules(text: string): readonly string[] {
  const [name] = /^[A-Za-z_][\w-]*(?=\(|$)/.exec(text.trim()) ?? []
  if (name === undefined || faultOfName(name) !== undefined) return ['*']
  // Commands read and edit files, too.
  return name === 'Read' || name === 'Edit' ? [name, 'Bash'] : [name]
}

/** `mcp__server` and `mcp__server__*` stand for all tools of an MCP server. */
export function isToolOf(rule: Extract<PolicyRule, { kind: 'tool' }>, name: string): boolean {
  if (rule.name === name) return true
  if (rule.name.includes('*')) return coversAll(symbolsOf(rule.name), Array.from(name), new Effort())
  return isServer(rule.name) && name.startsWith(`${rule.name}__`)
}

const symbolsOf = (name: string) => Array.from(name, (character) => (character === '*' ? STAR : character))

const PREFIX = 'mcp__'
/** The first `*` comes after the name of the server. */
function namesServer(name: string): boolean {
  const end = name.indexOf('__', PREFIX.length)
  return end > 0 && name.indexOf('*') > end
}

const isServer = (name: string): boolean => name.startsWith(PREFIX) && !name.includes('__', PREFIX.length)

function faultOfName(name: string): string | undefined {
  if (name.startsWith(PREFIX) && !/^mcp__(\*|[^_*].*)$/s.test(name))
    return 'it names no MCP server; write mcp__server, or mcp__server__tool'
  if (name.startsWith(PREFIX) && name.endsWith('__')) return 'it names no tool; write mcp__server, or mcp__server__*'
  return name.includes('*') && name !== '*' && !name.startsWith(PREFIX)
    ? 'only names of MCP tools may have a `*`, for example mcp__server__*'
    : undefined
}

function wholeTool(text: string, name: string): PolicyRule {
  if (currentTool(name) !== name) return { text, kind: 'tool', name: currentTool(name) }
  if (name === 'Read') return { text, kind: 'reads' }
  if (name === 'Edit') return { text, kind: 'edits' }
  return { text, kind: 'tool', name }
}

function parsePattern(text: string, name: string, pattern: string): PolicyRule | string {
  switch (name) {
    case 'Bash': {
      const command = parseCommandPattern(pattern)
      return typeof command === 'string' ? command : { text, kind: 'command', command }
    }
    case 'Read':
    case 'Edit': {
      const path = parsePathPattern(pattern)
      return typeof path === 'string' ? path : { text, kind: name === 'Read' ? 'read' : 'edit', path }
    }
    case 'WebFetch': {
      const domain = parseDomainPattern(pattern)
      return typeof domain === 'string' ? domain : { text, kind: 'fetch', domain }
    }
    default:
      return 'only Bash, Read, Edit and WebFetch take a pattern; Read(…) and Edit(…) hold for every tool that reads or changes files'
  }
}

const MAX_QUOTED = 100

const quote = (text: string): string =>
  JSON.stringify(text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text)
