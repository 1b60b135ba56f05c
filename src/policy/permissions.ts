/** The permission gate: the one place that decides whether a tool call runs, is asked about first, or is denied. */
import { createHash } from 'node:crypto'
import type { AskedToolUse } from '../contract/permission.ts'
import { canonicalJson } from '../lib/json/canonical-json.ts'
import type { GateDecision } from './decide.ts'
import { decide } from './decide.ts'
import type { Deed, GateRules, HookVerdict } from './gated-call.ts'
import { programOfGit } from './git/repository.ts'
import { Places } from './places.ts'
import { holdsLinks, isDirectory, realPath } from './real-path.ts'
import type { ShellParser } from './shell/read-command-line.ts'
import { readCommandLine } from './shell/read-command-line.ts'
import type { ToolAccess } from './tool-access.ts'

/** The properties of a call that the gate needs. */
export type GatedCall = {
  readonly toolUseId: string
  readonly name: string
  readonly input: unknown
  /** True if exactly this input was approved. */
  readonly approved: boolean
  readonly hook?: HookVerdict | undefined
}

/** Of calls that have not begun: those that must be decided before any of them begins, and why others will not run. */
export type Gated = { readonly asks: readonly AskedToolUse[]; readonly denials: ReadonlyMap<string, string> }

export type GateOptions = {
  readonly workdir: () => string
  /** What `~` may stand for in its shells and in rules. */
  readonly homes: readonly string[]
  /** What a call would do; asked for only where it matters. */
  readonly accessOf: (call: Pick<GatedCall, 'name' | 'input'>) => ToolAccess
  /** The hash of the present definition of a tool that may change. */
  readonly definitionOf?: (name: string) => string | undefined
}

const NOTHING: Gated = { asks: [], denials: new Map() }

/** The gate of one conversation. */
export class PermissionGate {
  readonly #options: GateOptions
  #parser: ShellParser | undefined

  constructor(options: GateOptions) {
    this.#options = options
  }

  /** To be awaited before a decision by these rules; a command line is only read when its parser is there. */
  async prepare(rules: GateRules): Promise<void> {
    if (!letsAllRun(rules)) this.#parser ??= await import('unbash')
  }

  /** The answer holds for the rules as given, so ask again before each call. */
  decide(calls: readonly GatedCall[], rules: GateRules): Gated {
    if (letsAllRun(rules) && !calls.some(({ hook }) => hook?.decision)) return NOTHING
    const asks: AskedToolUse[] = []
    const denials = new Map<string, string>()
    for (const call of calls) {
      const { name, input, toolUseId } = call
      const verdict = this.verdictOn(name, this.#options.accessOf(call), rules, call.approved, call.hook)
      if (verdict.behavior === 'deny') denials.set(toolUseId, verdict.reason)
      if (verdict.behavior === 'ask') {
        const { reason, rules: remembered } = verdict
        const definition = this.#options.definitionOf?.(name)
        const hashes = { input_hash: hashInput(name, input), ...(definition && { definition_hash: definition }) }
        const shown = { tool_use_id: toolUseId, name, input, ...hashes, reason }
        asks.push({ ...shown, ...(remembered && { rules: [...remembered] }) })
      }
    }
    return { asks, denials }
  }

  verdictOn(tool: string, access: ToolAccess, rules: GateRules, isApproved: boolean, hook?: HookVerdict): GateDecision {
    const { workdir, homes } = this.#options
    const places = new Places({ workdir: workdir(), homes, realPath, isDirectory, holdsLinks, programOfGit })
    return decide({ tool, deed: this.#read(access), places }, rules, { approved: isApproved, hook })
  }

  #read(access: ToolAccess): Deed {
    if (access.kind !== 'command') return access
    const { command, cwd } = access
    const { homes } = this.#options
    if (this.#parser) return { kind: 'command', line: readCommandLine(command, { parser: this.#parser, cwd, homes }) }
    // GateRules that came after `prepare`: in doubt, ask.
    const hidden = 'the parser of command lines is not loaded yet'
    return { kind: 'command', line: { commands: [], redirections: [], hidden, unusual: undefined } }
  }
}

/** Then nothing has to be looked into. */
function letsAllRun({ mode, confirmation, rules }: GateRules): boolean {
  return mode === 'bypass' && !confirmation && rules.deny.length === 0 && rules.ask.length === 0
}

/** Hashes the call as shown, to which an approval is bound. */
export function hashInput(name: string, input: unknown): string {
  return createHash('sha256').update(canonicalJson({ name, input })).digest('hex')
}
