/**
 * Reads `settings.json`. The only file that decides which of its settings have an effect. A file that cannot be read
 * stops the creation of the conversation: it may have rules that deny.
 */
import { z } from 'zod'
import { Hooks } from '../contract/hooks/hooks.ts'
import type { PermissionMode, PermissionRules } from '../contract/values/permission.ts'
import { describeIssue, Problem } from '../contract/problem.ts'
import { ComplexJson, refuseComplexJson } from '../lib/json/untrusted-json.ts'
import { coarseRules, parseAllowRule, parseRule } from '../policy/rules/rule.ts'
import { findJsonFault } from './json-fault.ts'
import { NOT_TRUSTED } from './ignored-settings.ts'
import type { SourceContext } from './load-context.ts'
import { onOneLine } from './one-line.ts'
import { MAX_PROJECT_RULES, MAX_RULE_CHARS, MAX_RULE_WILDCARDS } from './project-limits.ts'

export type FileSettings = {
  readonly path: string
  readonly rules: PermissionRules
  /** Undefined if it names none, or none that exists here. */
  readonly mode: PermissionMode | undefined
  /** Undefined without any that have an effect. */
  readonly hooks: Hooks | undefined
  /** The servers of `.mcp.json` that are used. */
  readonly servers: {
    readonly all: boolean | undefined
    readonly enabled: readonly string[] | undefined
    readonly disabled: readonly string[] | undefined
  }
}

const MAX_ISSUES = 5

const Rules = z.array(z.string()).default([])
const SettingsFile = z.object({
  permissions: z.object({ allow: Rules, ask: Rules, deny: Rules, defaultMode: z.string().optional() }).prefault({}),
  hooks: z.unknown().optional(),
  enableAllProjectMcpServers: z.boolean().optional(),
  enabledMcpjsonServers: z.array(z.string()).optional(),
  disabledMcpjsonServers: z.array(z.string()).optional(),
})

const MODES: Readonly<Record<string, PermissionMode>> = {
  default: 'default',
  acceptEdits: 'accept_edits',
  plan: 'plan',
  bypassPermissions: 'bypass',
  dontAsk: 'deny',
}

/** Undefined if this server has no such mode. */
export const modeOfFile = (name: string): PermissionMode | undefined =>
  Object.hasOwn(MODES, name) ? MODES[name] : undefined

/** Undefined if the file does not exist. Throws a `Problem` if it cannot be read. */
export async function readSettingsFile(context: SourceContext, path: string): Promise<FileSettings | undefined> {
  const foundText = await context.reader.read(path)
  if (foundText.kind === 'missing') return undefined
  if (foundText.kind === 'refused') throw unreadable(path, foundText.reason)
  const json = parseJson(path, foundText.text)
  const parseResult = SettingsFile.safeParse(json)
  if (!parseResult.success)
    throw unreadable(path, parseResult.error.issues.slice(0, MAX_ISSUES).map(describeFault).join(' '))
  const { permissions, hooks, ...servers } = parseResult.data
  noteUnused(context, path, json)
  const readPoints = readHooks(context, path, hooks)
  if (readPoints && 'fault' in readPoints) throw unusableHooks(path, readPoints.fault)
  return {
    path,
    hooks: readPoints,
    rules: readRules(context, path, permissions),
    mode: readMode(context, path, permissions.defaultMode),
    servers: {
      all: servers.enableAllProjectMcpServers,
      enabled: servers.enabledMcpjsonServers,
      disabled: servers.disabledMcpjsonServers,
    },
  }
}

function readRules(context: SourceContext, path: string, permissions: Omit<PermissionRules, never>): PermissionRules {
  const allow = allowRules(context, path, permissions.allow)
  const [ask, deny] = [permissions.ask, permissions.deny].map((texts) =>
    texts.map((text) => strictRule(context, path, text)),
  )
  const instead = [...(ask ?? []), ...(deny ?? [])].flatMap((rule) => ('instead' in rule ? rule.instead : []))
  const rulesOf = (rules: readonly StrictRule[] = []) => rules.flatMap((rule) => ('rule' in rule ? [rule.rule] : []))
  const rules = {
    allow,
    ask: [...new Set([...rulesOf(ask), ...instead])],
    deny: [...new Set(rulesOf(deny))],
  }
  if (Object.values(rules).some((texts) => texts.length > MAX_PROJECT_RULES))
    throw unreadable(path, `It has more than ${MAX_PROJECT_RULES} rules of one kind.`)
  return rules
}

function allowRules(context: SourceContext, path: string, texts: readonly string[]): string[] {
  const { isTrusted, ignored } = context
  const rules = texts.map((text) => ruleHere(context, text))
  return rules.filter((text) => {
    const rule = parseShortRule(text, parseAllowRule)
    const reason = isTrusted ? (typeof rule === 'string' ? rule : undefined) : NOT_TRUSTED
    if (reason !== undefined) ignored.add(`allow rule ${text}`, path, reason)
    return reason === undefined
  })
}

/** `instead`: rules that ask about every call that it may be about. */
type StrictRule = { readonly rule: string } | { readonly instead: readonly string[] }

/** A rule that denies or asks is never dropped: where it cannot be read exactly, it holds for more. */
function strictRule(context: SourceContext, path: string, text: string): StrictRule {
  const writtenRule = ruleHere(context, text)
  const rule = parseShortRule(writtenRule)
  if (typeof rule !== 'string') return { rule: writtenRule }
  const [, tool] = /^([A-Za-z_][\w-]*)\(.*\)$/s.exec(writtenRule) ?? []
  if (tool !== undefined && !TAKES_PATTERN.has(tool) && typeof parseShortRule(tool) !== 'string') {
    context.ignored.add(`pattern of the rule ${text}`, path, `The rule holds for every call of ${tool}.`)
    return { rule: tool }
  }
  const instead = coarseRules(writtenRule).filter((each) => each.length <= MAX_RULE_CHARS)
  const rules = instead.length > 0 ? instead : ['*']
  const calls = rules[0] === '*' ? 'every call' : `every call of ${rules.join(' and ')}`
  context.ignored.add(`rule ${text}`, path, `It cannot be read, and ${calls} needs a decision instead. ${rule}`)
  return { instead: rules }
}

/** Returns a sentence for a text that is not a rule, or one whose comparison with a command could take long. */
function parseShortRule(text: string, parse = parseRule): ReturnType<typeof parseRule> {
  if (text.length > MAX_RULE_CHARS) return `A rule in a file has at most ${MAX_RULE_CHARS} characters.`
  const wildcards = text.match(/\*+/g)?.length ?? 0
  return wildcards > MAX_RULE_WILDCARDS
    ? `${JSON.stringify(text)}: a rule in a file has at most ${MAX_RULE_WILDCARDS} wildcards.`
    : parse(text)
}

const TAKES_PATTERN = new Set(['Bash', 'Read', 'Edit', 'WebFetch'])

/** Returns a rule as it is written here: `Write(x)` is about edits, and in a project `/x` starts at the workdir. */
function ruleHere({ canonicalRule, source }: SourceContext, text: string): string {
  const rule = canonicalRule(text.trim())
  const [, name = '', pattern = ''] = /^(\w+)\((.*)\)$/s.exec(rule) ?? []
  const access = WRITES.has(name) ? 'Edit' : READS.has(name) ? 'Read' : undefined
  if (access === undefined) return rule
  return `${access}(${source === 'user' ? pattern : pattern.trim().replace(/^\/(?!\/)/, '')})`
}

const WRITES = new Set(['Edit', 'Write', 'MultiEdit', 'NotebookEdit'])
const READS = new Set(['Read', 'Grep', 'Glob', 'LS', 'NotebookRead'])

/** Undefined without hooks that have an effect. Returns what is wrong with hooks that cannot be used. */
function readHooks(
  { ignored, isTrusted }: SourceContext,
  path: string,
  setting: unknown,
): Hooks | { readonly fault: string } | undefined {
  if (setting === undefined) return undefined
  if (!isTrusted) {
    ignored.add('hooks', path, NOT_TRUSTED)
    return undefined
  }
  const parseResult = Hooks.safeParse(setting)
  if (parseResult.success) return parseResult.data
  const issues = parseResult.error.issues.slice(0, MAX_ISSUES).map((issue) => describeIssue(issue, ['hooks']))
  return { fault: issues.map(({ path: field, message }) => `${field}: ${message}.`).join(' ') }
}

function readMode({ ignored }: SourceContext, path: string, name: string | undefined): PermissionMode | undefined {
  if (name === undefined) return undefined
  const mode = modeOfFile(name)
  if (!mode) ignored.add(`permissions.defaultMode ${name}`, path, 'This server has no such mode.')
  return mode
}

const KNOWN = Object.keys(SettingsFile.shape)

/** Notes what is in the file and has no effect. */
function noteUnused({ ignored }: SourceContext, path: string, json: unknown): void {
  const note = (value: unknown, knownNames: readonly string[], prefix: string) => {
    if (typeof value !== 'object' || value === null) return
    for (const name of Object.keys(value))
      if (!knownNames.includes(name) && name !== '$schema')
        ignored.add(`${prefix}${name}`, path, 'This server does not support it.')
  }
  note(json, KNOWN, '')
  const permissions = typeof json === 'object' && json !== null && 'permissions' in json ? json.permissions : undefined
  note(permissions, ['allow', 'ask', 'deny', 'defaultMode'], 'permissions.')
}

function parseJson(path: string, text: string): unknown {
  try {
    refuseComplexJson(text)
  } catch (cause) {
    if (cause instanceof ComplexJson) throw unreadable(path, `It ${cause.message}.`)
    throw cause
  }
  const fault = findJsonFault(text)
  if (fault !== undefined) throw unreadable(path, fault)
  return JSON.parse(text)
}

const describeFault = ({ path, message }: z.core.$ZodIssue) =>
  `${path.map(String).join('.') || 'The file'}: ${message}.`

const unusableHooks = (path: string, reason: string) =>
  new Problem(
    'invalid_request',
    `setting_sources: the hooks in ${path} cannot be used. ${onOneLine(reason, 500)} Correct the file, or leave the source out.`,
    { details: { path } },
  )

const unreadable = (path: string, reason: string) =>
  new Problem(
    'invalid_request',
    `setting_sources: ${path} cannot be used, and it may have rules that deny. ${onOneLine(reason, 500)} Correct the file, or leave the source out.`,
    { details: { path } },
  )
