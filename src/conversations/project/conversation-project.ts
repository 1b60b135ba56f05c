/**
 * The skills and slash commands of one conversation, as its agent and its users use them. The texts are read at that
 * time; everything that gives rights was stored when the conversation was created.
 */
import { realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { ProjectEntry, ProjectSettings } from '../../contract/project/project-settings.ts'
import { bodyOf } from '../../project/frontmatter.ts'
import type { CommandCall } from '../../state/command-text.ts'
import { parseCommandCall } from '../../state/command-text.ts'
import { withoutHidden } from '../../project/one-line.ts'
import { offeredEntries } from '../../project/project-prompt.ts'
import { ReadBudget, SettingsReader } from '../../project/settings-reader.ts'
import type { PermissionGate } from '../../policy/permissions.ts'
import type { ToolAccess } from '../../policy/tool-access.ts'
import type { ProjectAccess } from '../../tools/project/project-access.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import { failure } from '../../state/tool-call.ts'
import type { ConversationShells } from '../../workspace/exec/conversation-shells.ts'
import type { LiveState } from '../live/live-state.ts'
import { rulesOf } from '../../state/state.ts'
import { findEntry } from '../../state/used-entries.ts'
import type { CommandUser } from './expand-command.ts'
import { expandCommand } from './expand-command.ts'

export type ConversationProjectDeps = {
  readonly state: LiveState
  readonly gate: PermissionGate
  readonly shells: ConversationShells
  readonly hooks: CommandUser['hooks']
  readonly workdir: () => string
  /** The directory of the operator. */
  readonly userSettings: string | undefined
  /** Files of the server. */
  readonly forbidden: () => readonly string[]
}

/** The text of an entry, or the reason why it has no text. */
export type EntryText = { readonly body: string; readonly file: string } | { readonly fault: string }

export class ConversationProject implements ProjectAccess {
  readonly #deps: ConversationProjectDeps
  readonly #main: CommandUser

  constructor(deps: ConversationProjectDeps) {
    this.#deps = deps
    const { state, shells, hooks } = deps
    this.#main = { state, rules: () => [rulesOf(state.current)], shells: shells.ofAgent(), hooks }
  }

  /** Returns the access of a subagent: what its slash commands do is done by its own rules, in its own shells. */
  forAgent(user: CommandUser): ProjectAccess {
    const { accessOfSkill, accessOfCommand, useSkill } = this
    const useCommand = (text: string, signal: AbortSignal) => this.#useCommand(text, signal, user)
    return { accessOfSkill, accessOfCommand, useSkill, useCommand }
  }

  readonly accessOfSkill = (name: string): ToolAccess => this.#accessOf(findEntry(this.#skills, name))

  readonly accessOfCommand = (text: string): ToolAccess => {
    const call = parseCommandCall(text)
    return { ...this.#accessOf(call && this.#find(call.name)), runsCommands: true }
  }

  readonly useSkill = async (name: string, args: string): Promise<ToolOutcome> => {
    const entry = findEntry(this.#skills, name)
    if (!entry || entry.user_only) return refusal(unknownEntry('skill', name, offeredEntries(this.#skills)))
    const entryText = await this.read(entry)
    return 'fault' in entryText ? refusal(entryText.fault) : { output: skillText(entryText, args) }
  }

  readonly useCommand = (text: string, signal: AbortSignal): Promise<ToolOutcome> =>
    this.#useCommand(text, signal, this.#main)

  async #useCommand(text: string, signal: AbortSignal, user: CommandUser): Promise<ToolOutcome> {
    const call = parseCommandCall(text)
    if (!call) return refusal('Write the command as `/name arguments`.')
    const entry = this.#find(call.name)
    if (!entry || entry.user_only)
      return refusal(unknownEntry('slash command', call.name, offeredEntries(this.#commands)))
    const expansion = await this.expand(entry, call, { session: AGENT_SESSION, signal }, user)
    return 'fault' in expansion ? refusal(expansion.fault) : { output: expansion.text }
  }

  /** The command or the skill that a user means; undefined if the name is unknown. */
  entryOf(call: CommandCall): ProjectEntry | undefined {
    return this.#find(call.name)
  }

  /** The whole text of an entry with the arguments. */
  async expand(
    entry: ProjectEntry,
    { args }: CommandCall,
    run: { readonly session: string; readonly signal: AbortSignal },
    user = this.#main,
  ): Promise<{ readonly text: string } | { readonly fault: string }> {
    const { gate } = this.#deps
    const entryText = await this.read(entry)
    if ('fault' in entryText) return entryText
    if (this.#skills.includes(entry)) return { text: skillText(entryText, args) }
    const reader = this.#readerFor('project', await realpath(this.#deps.workdir()))
    const expandedText = await expandCommand(entryText.body, args, { entry, gate, reader, ...user, ...run })
    return { text: `[The text of the slash command /${entry.name}, from ${entry.path}:]\n\n${expandedText}` }
  }

  async read(entry: ProjectEntry): Promise<EntryText> {
    const directory = await this.#directoryOf(entry)
    if (directory === undefined) return { fault: `The directory of ${entry.path} does not exist any more.` }
    const foundText = await this.#readerFor(entry.source, directory).read(entry.path)
    if (foundText.kind === 'text')
      return { body: withoutHidden(bodyOf(foundText.text)).trim(), file: foundText.realPath }
    return {
      fault:
        foundText.kind === 'missing' ? `${entry.path} does not exist any more.` : `${entry.path}: ${foundText.reason}`,
    }
  }

  get #settings(): ProjectSettings | undefined {
    return this.#deps.state.current.settings.project_settings
  }

  get #skills(): readonly ProjectEntry[] {
    return this.#settings?.skills ?? []
  }

  get #commands(): readonly ProjectEntry[] {
    return this.#settings?.commands ?? []
  }

  #find(name: string): ProjectEntry | undefined {
    return findEntry(this.#commands, name) ?? findEntry(this.#skills, name)
  }

  /** The files of the operator are for every agent; those of a project are subject to rules. */
  #accessOf(entry: ProjectEntry | undefined): Extract<ToolAccess, { kind: 'none' | 'read' }> {
    if (!entry || entry.source === 'user') return { kind: 'none' }
    return { kind: 'read', paths: [entry.path] }
  }

  async #directoryOf({ source }: ProjectEntry): Promise<string | undefined> {
    const path = source === 'user' ? this.#deps.userSettings : this.#deps.workdir()
    return path === undefined ? undefined : await realpath(path).catch(() => undefined)
  }

  /** The gate has decided about the path: by now, a link in it may lead to another file. */
  #refusalOf(path: string): string | undefined {
    const { gate, state } = this.#deps
    const { deny } = rulesOf(state.current).rules
    const rules = { mode: 'bypass', confirmation: false, rules: { allow: [], ask: [], deny } } as const
    const verdict = gate.verdictOn('Read', { kind: 'read', paths: [path] }, rules, false)
    return verdict.behavior === 'allow' ? undefined : `A rule keeps it from being read: ${verdict.reason}`
  }

  #readerFor(source: ProjectEntry['source'], directory: string): SettingsReader {
    const isOperators = source === 'user'
    return new SettingsReader({
      directory,
      forbidden: isOperators ? [] : this.#deps.forbidden(),
      refusalOf: (path) => (isOperators ? undefined : this.#refusalOf(path)),
      budget: new ReadBudget(),
    })
  }
}

/** The session of the agent's own commands. */
const AGENT_SESSION = 'agent'

const skillText = ({ body, file }: Exclude<EntryText, { fault: string }>, args: string) =>
  `Base directory of this skill: ${dirname(file)}\n\n${body}${args === '' ? '' : `\n\nARGUMENTS: ${args}`}`

/** Names in a message at most. */
const MAX_NAMED = 20

function unknownEntry(what: string, name: string, entries: readonly ProjectEntry[]): string {
  const names = entries.slice(0, MAX_NAMED).map((entry) => entry.name)
  return `There is no ${what} ${JSON.stringify(name.slice(0, 100))} that you can use. There are: ${names.join(', ') || 'none'}.`
}

const refusal = (message: string): ToolOutcome => failure('invalid_input', message)
