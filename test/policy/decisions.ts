/** Decisions of the policy alone, with the parser and no disk: links are given by name. */
import { dirname } from 'node:path'
import type { HookVerdict } from '../../src/policy/rules/gate-rules.ts'
import * as parser from 'unbash'
import { PermissionRules } from '../../src/contract/values/permission.ts'
import type { PermissionMode } from '../../src/contract/values/permission.ts'
import { decide } from '../../src/policy/decide.ts'
import type { GateDecision } from '../../src/policy/decide.ts'
import { Places } from '../../src/policy/places.ts'
import { ruleSetOf } from '../../src/policy/rules/rule-set.ts'
import type { RuleSet } from '../../src/policy/rules/rule-set.ts'
import type { CommandLine } from '../../src/policy/shell/command-line.ts'
import { readCommandLine } from '../../src/policy/shell/read-command-line.ts'
import type { ToolAccess } from '../../src/policy/tool-access.ts'

export type Given = {
  readonly mode?: PermissionMode
  readonly confirmation?: boolean
  readonly allow?: readonly string[]
  readonly ask?: readonly string[]
  readonly deny?: readonly string[]
  readonly cwd?: string
  readonly links?: Readonly<Record<string, string>>
  readonly approved?: boolean
  readonly hook?: HookVerdict
  readonly hasApprover?: boolean
  readonly isStrangers?: boolean
  /** Why git may run a program in the workdir. */
  readonly gitProgram?: string
}

const WORKDIR = '/work/project'
export const HOME = '/home/user'

export function decideAccess(tool: string, access: ToolAccess, given: Given = {}): GateDecision {
  const {
    mode = 'default',
    confirmation = false,
    cwd,
    approved = false,
    links = {},
    hook: _,
    hasApprover: __,
    isStrangers = false,
    gitProgram,
    ...lists
  } = given
  const realPath = (path: string) => follow(path, links)
  const isDirectory = (path: string) => /\/(src|sub|link|\.ssh)\/?$/.test(path)
  const holdsLinks = (directory: string) => Object.keys(links).some((link) => dirname(link) === directory)
  const places = new Places({
    workdir: WORKDIR,
    homes: [HOME],
    realPath,
    isDirectory,
    holdsLinks,
    programOfGit: () => gitProgram,
  })
  const line = (command: string) => lineOf(command, cwd ?? WORKDIR)
  const action = access.kind === 'command' ? { kind: 'command' as const, line: line(access.command) } : access
  const rules = rulesOf(given, lists)
  return decide(
    { tool, action, places },
    { mode, confirmation, rules, hasApprover: given.hasApprover ?? false, isStrangers },
    { approved, hook: given.hook },
  )
}

export const decideCommand = (command: string, given: Given = {}): GateDecision =>
  decideAccess('Bash', { kind: 'command', command, cwd: WORKDIR }, given)

const SIGNS = { allow: '.', ask: '?', deny: 'x' } as const

export const signOf = ({ behavior }: GateDecision): string => SIGNS[behavior]

/** A rule in words, and lines that show it: the sign of how a command is decided, and the command. */
export type Row = readonly [rule: string, lines: string]

/** The lines of a row, with the signs of how their commands are decided. */
export const decided = (lines: string, decision: (command: string) => GateDecision): string =>
  lines.replaceAll(
    /^( *)[.?x] (.+)$/gm,
    (_, space: string, line: string) => `${space}${signOf(decision(line))} ${line}`,
  )

/** Component by component, as the kernel does. */
function follow(path: string, links: Readonly<Record<string, string>>): string {
  let at = ''
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue
    at = name === '..' ? at.slice(0, Math.max(at.lastIndexOf('/'), 0)) : `${at}/${name}`
    at = links[at] ?? at
  }
  return at || '/'
}

/** The tables decide about many lines with the same few objects. */
const rulesSoFar = new WeakMap<Given, RuleSet>()

function rulesOf(given: Given, lists: Pick<Given, 'allow' | 'ask' | 'deny'>): RuleSet {
  const rules = rulesSoFar.get(given) ?? ruleSetOf(PermissionRules.parse(lists))
  rulesSoFar.set(given, rules)
  return rules
}

let last: { readonly command: string; readonly cwd: string; readonly line: CommandLine } | undefined

/** The tables decide about each line under several rules, one after the other. */
function lineOf(command: string, cwd: string): CommandLine {
  if (last?.command !== command || last.cwd !== cwd)
    last = { command, cwd, line: readCommandLine(command, { parser, cwd, homes: [HOME] }) }
  return last.line
}
