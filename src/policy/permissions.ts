/** The permission gate: the one place that decides whether a tool call runs, is asked about first, or is denied. */
import type { AskedToolUse } from '../contract/values/permission.ts'
import type { GateDecision } from './decide.ts'
import { changesSomething, decide } from './decide.ts'
import type { GatedAction, Question } from './gated-call.ts'
import { programOfGit } from './git/repository.ts'
import { createDisk } from './disk.ts'
import { Places } from './places.ts'
import type { GatedCall, GateRules, HookVerdict } from './rules/gate-rules.ts'
import { hashInput } from './rules/input-hash.ts'
import { holdsLinks, isDirectory, realPath } from './links/real-path.ts'
import type { CommandLine } from './shell/command-line.ts'
import type { ShellParser } from './shell/read-command-line.ts'
import { readCommandLine } from './shell/read-command-line.ts'
import type { ToolAccess } from './tool-access.ts'

/** `ask`: what is asked about the call. */
export type CallVerdict =
  | Exclude<GateDecision, { behavior: 'ask' }>
  | { readonly behavior: 'ask'; readonly ask: AskedToolUse }

export type GateOptions = {
  readonly workdir: () => string
  /** They count as the workdir, except where a rule allows. */
  readonly additionalDirectories?: () => readonly string[]
  /** What `~` may stand for in its shells and in rules. */
  readonly homes: readonly string[]
  /** Returns what a call would do; asked for only where it matters. */
  readonly accessOf: (call: Pick<GatedCall, 'name' | 'input'>) => ToolAccess
  /** The hash of the present definition of a tool that may change. */
  readonly definitionOf?: (name: string) => string | undefined
}

const ALLOW: CallVerdict = { behavior: 'allow' }

/** The gate of one conversation. */
export class PermissionGate {
  readonly #options: GateOptions
  #parser: ShellParser | undefined
  #lastRead: { readonly key: readonly (string | undefined)[]; readonly line: CommandLine } | undefined

  constructor(options: GateOptions) {
    this.#options = options
  }

  /** Must be awaited before a decision by these rules; a command line is only read when its parser is there. */
  async prepare(rules: GateRules): Promise<void> {
    if (!letsAllRun(rules)) await this.loadParser()
  }

  /** The strictest of these rules counts. The verdict holds for now: a link may lead elsewhere the next moment. */
  judge(call: GatedCall, rules: readonly GateRules[]): CallVerdict {
    const { name, hook } = call
    if (!hook?.decision && rules.every(letsAllRun)) return ALLOW
    const question = this.#questionOf(name, this.#options.accessOf(call))
    const verdicts = rules.map((each) => decide(question, each, { approved: call.approved, hook }))
    const denial = verdicts.findLast((verdict) => verdict.behavior === 'deny')
    if (denial) return denial
    const askVerdict = verdicts.findLast((verdict) => verdict.behavior === 'ask')
    return askVerdict ? { behavior: 'ask', ask: this.#callToDecide(call, askVerdict) } : ALLOW
  }

  /** Must be awaited before `mayChange`, whatever the rules are. */
  async loadParser(): Promise<void> {
    this.#parser ??= await import('unbash')
  }

  get hasParser(): boolean {
    return this.#parser !== undefined
  }

  /** True unless it is certain that the call changes nothing, whatever rules allow. */
  mayChange({ name, input }: Pick<GatedCall, 'name' | 'input'>): boolean {
    const access = this.#options.accessOf({ name, input })
    if (access.kind === 'none' || access.kind === 'read') return access.runsCommands === true
    if (access.kind !== 'command') return access.kind !== 'fetch'
    return changesSomething(this.#questionOf(name, access))
  }

  verdictOn(tool: string, access: ToolAccess, rules: GateRules, isApproved: boolean, hook?: HookVerdict): GateDecision {
    return decide(this.#questionOf(tool, access), rules, { approved: isApproved, hook })
  }

  #callToDecide(
    { toolUseId, name, input }: GatedCall,
    { reason, rules }: Extract<GateDecision, { behavior: 'ask' }>,
  ): AskedToolUse {
    const definition = this.#options.definitionOf?.(name)
    const hashes = { input_hash: hashInput(name, input), ...(definition && { definition_hash: definition }) }
    return { tool_use_id: toolUseId, name, input, ...hashes, reason, ...(rules && { rules: [...rules] }) }
  }

  #questionOf(tool: string, access: ToolAccess): Question {
    const { workdir, additionalDirectories, homes } = this.#options
    const places = new Places({
      workdir: workdir(),
      additionalDirectories: additionalDirectories?.(),
      homes,
      realPath,
      isDirectory,
      holdsLinks,
      programOfGit,
      disk: createDisk(),
      ...(access.kind === 'command' && { path: access.path }),
    })
    return { tool, action: this.#read(access), places }
  }

  #read(access: ToolAccess): GatedAction {
    if (access.kind !== 'command') return access
    const { command, cwd, evaluates } = access
    const { homes } = this.#options
    if (this.#parser) {
      const key = [command, cwd, ...(evaluates ?? [])]
      // The same call is asked about until it runs. What a line says does not depend on files, as the verdict does.
      if (!this.#lastRead || !isSame(this.#lastRead.key, key))
        this.#lastRead = { key, line: readCommandLine(command, { parser: this.#parser, cwd, evaluates, homes }) }
      return { kind: 'command', line: this.#lastRead.line }
    }
    // GateRules that came after `prepare`: in doubt, ask.
    const hiddenReason = 'the parser of command lines is not loaded yet'
    return {
      kind: 'command',
      line: { commands: [], redirections: [], values: [], hidden: hiddenReason, unusual: undefined },
    }
  }
}

const isSame = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  one.length === other.length && one.every((each, index) => each === other[index])

/** Returns true if nothing has to be looked into. */
export function letsAllRun({ mode, confirmation, rules }: GateRules): boolean {
  return mode === 'bypass' && !confirmation && rules.deny.length === 0 && rules.ask.length === 0
}
