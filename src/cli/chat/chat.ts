/** The interactive chat: connects the screen with the conversation that is shown. */
import type { AutocompleteProvider } from '@earendil-works/pi-tui'
import type { ConversationView } from '../../contract/conversation.ts'
import type { ProjectSettings } from '../../contract/project/project-settings.ts'
import type { ChatOptions } from '../chat-seam.ts'
import type { ChatContext } from './commands/command.ts'
import { allCommands, readCommand } from './commands/commands.ts'
import { sandboxText } from './commands/facts.ts'
import { AnswerPanels } from './input/answer-panels.ts'
import { approvalLines, editableText, editedInput } from './input/approval-text.ts'
import { Completion } from './input/completion.ts'
import { withImages } from './input/images.ts'
import type { Choice } from './render/choice-panel.ts'
import { ChoicePanel } from './render/choice-panel.ts'
import { DecisionPanel } from './render/decision-panel.ts'
import type { Panel } from './render/panel.ts'
import { createTheme } from './render/theme.ts'
import type { Theme } from './render/theme.ts'
import { Screen } from './screen.ts'
import { ChatSession } from './chat-session.ts'
import type { Approval, Tone } from './state/chat-state.ts'
import { isBusy } from './state/chat-state.ts'
import { approvalId } from './state/pending.ts'

/** A second Ctrl+C within this time leaves the chat. */
const TWICE_MS = 2000
const FOUND_FILES = 20

export class Chat {
  readonly #options: ChatOptions
  readonly #theme: Theme
  readonly #screen: Screen
  readonly #left = Promise.withResolvers<number>()
  #session: ChatSession
  #answers: AnswerPanels
  #project: ProjectSettings | undefined
  /** A list that a command shows. */
  #picking: Panel | undefined
  /** What is written in the prompt about a call that waits. */
  #editing: (Pick<Edited, 'approval' | 'submit'> & { readonly panel: Panel }) | undefined
  #cancelledAt = 0
  #hasHistory = false

  constructor(options: ChatOptions) {
    this.#options = options
    this.#theme = createTheme(options.color)
    this.#session = this.#createSession(options.view, options.forcesTool)
    this.#answers = this.#createAnswers()
    const facts = { isSandboxed: options.info.isolation !== 'none', server: options.server }
    const handlers = {
      onSubmit: (text: string) => this.#guard(this.#submit(text)),
      onEscape: () => this.#guard(this.#escape()),
      onCancel: () => this.#cancel(),
      onEnd: () => this.leave(0),
    }
    this.#screen = new Screen({ theme: this.#theme, facts, handlers })
    this.#screen.complete(this.#completion())
  }

  /** Returns the exit code when the user leaves. */
  async run(): Promise<number> {
    this.#screen.start()
    this.#greet()
    this.#open()
    if (this.#options.prompt !== undefined) this.#guard(this.#send(this.#options.prompt))
    return await this.#left.promise
  }

  leave(exitCode: number): void {
    this.#left.resolve(exitCode)
  }

  fail(error: unknown): void {
    this.#left.reject(error)
  }

  /** Gives the terminal back; safe at any time. */
  close(isOrderly = false): void {
    this.#session.close()
    this.#screen.stop(isOrderly ? this.#closing() : undefined)
  }

  #closing(): string {
    const { server } = this.#options
    const command = server === undefined ? 'agent-server chat' : `agent-server connect ${server}`
    return `Continue this conversation:\n${command} -r ${this.#session.view.id}`
  }

  #createSession(view: ConversationView, forcesTool = false): ChatSession {
    const { client, maxSteps, runWithTool } = this.#options
    return new ChatSession({
      client,
      view,
      maxSteps,
      forcesTool,
      runWithTool,
      onChange: (session) => this.#onChange(session),
    })
  }

  #createAnswers(): AnswerPanels {
    return new AnswerPanels({
      session: this.#session,
      theme: this.#theme,
      onEdit: (approval) => this.#editInput(approval),
      onReason: (approval) => this.#writeReason(approval),
    })
  }

  #greet(): void {
    const { info, notices, server } = this.#options
    const { view } = this.#session
    const where = server === undefined ? view.workdir : `${view.workdir} on ${server}`
    this.#session.say(`agent-server ${info.version} in ${where}. /help lists the commands.`)
    const isSaid = notices.some((notice) => /sandbox/i.test(notice))
    const tone = info.isolation === 'none' ? 'warning' : 'info'
    if (!isSaid) this.#session.dispatch({ type: 'Notice', tone, text: `Sandbox: ${sandboxText(info.isolation)}.` })
    for (const text of notices) this.#session.dispatch({ type: 'Notice', tone: toneOf(text), text })
  }

  #open(): void {
    const session = this.#session
    void session.open()
    session.conversation.agentInfo().then(
      ({ project_settings }) => (this.#project = project_settings),
      () => {}, // completion works without the commands of the project, and other requests report what is wrong
    )
  }

  #onChange(session: ChatSession): void {
    if (session !== this.#session) return
    this.#endEditing()
    if (session.state.isLive && !this.#hasHistory) this.#readHistory()
    this.#screen.show(session.state, this.#panel())
  }

  /** The messages of a resumed conversation can be sent again. */
  #readHistory(): void {
    this.#hasHistory = true
    for (const item of this.#session.state.items) if (item.kind === 'user') this.#screen.remember(item.text)
  }

  #panel(): Panel | undefined {
    return this.#editing?.panel ?? this.#answers.panel() ?? this.#picking
  }

  #redraw(): void {
    this.#screen.show(this.#session.state, this.#panel())
  }

  /** Reports what fails. */
  #guard(work: Promise<void>): void {
    work.catch((error: unknown) => this.#session.fail(error))
  }

  async #submit(text: string): Promise<void> {
    if (this.#editing) return this.#submitEdited(this.#editing, text)
    if (text === '') return
    this.#screen.remember(text)
    const panel = this.#panel()
    if (panel?.takeText) return panel.takeText(text)
    const typed = readCommand(text, allCommands(this.#project))
    if (!typed) return await this.#send(text)
    if ('command' in typed) return await typed.command.run(this.#context(), typed.argument)
    const hint = typed.nearest === undefined ? '/help lists them' : `did you mean /${typed.nearest}`
    throw new Error(`There is no command /${typed.unknown}; ${hint}?`.replace('them?', 'them.'))
  }

  async #send(text: string): Promise<void> {
    const session = this.#session
    try {
      const { parts, notes } = await withImages(text, process.cwd())
      for (const note of notes) session.say(note)
      await session.send(parts.length > 1 ? parts : text)
    } catch (error) {
      // What was written is not lost.
      if (this.#screen.draft === '') this.#screen.draft = text
      throw error
    }
  }

  async #escape(): Promise<void> {
    if (this.#editing) return this.#endEditing(true)
    if (this.#picking && !this.#answers.panel()) return this.#pick(undefined)
    if (isBusy(this.#session.state)) await this.#session.interrupt()
  }

  #cancel(): void {
    const now = Date.now()
    if (now - this.#cancelledAt < TWICE_MS) return this.leave(0)
    this.#cancelledAt = now
    const hint = isBusy(this.#session.state) ? ' Esc interrupts the agent.' : ''
    this.#session.say(`Ctrl+C again leaves the chat.${hint}`)
  }

  #editInput(approval: Approval): void {
    const title = `Edit the call of ${approval.call.name}: Enter runs it, Esc goes back`
    const submit = (text: string) => {
      const input = editedInput(approval.call, text)
      this.#editing = undefined
      this.#answers.allow(approval, input)
    }
    this.#edit({ approval, title, draft: editableText(approval.call), submit })
  }

  #writeReason(approval: Approval): void {
    const title = `Why not ${approval.call.name}? Enter denies it with this reason, Esc goes back`
    const submit = (text: string) => {
      this.#editing = undefined
      this.#answers.deny(approval, text)
    }
    this.#edit({ approval, title, draft: '', submit })
  }

  #edit({ approval, title, draft, submit }: Edited): void {
    const body = (width: number) => approvalLines(approval.call, width, this.#theme)
    this.#editing = { approval, submit, panel: new DecisionPanel({ title, body, keys: [] }, this.#theme) }
    this.#screen.draft = draft
    this.#redraw()
  }

  /** Also when another client has answered in the meantime. */
  #endEditing(isCancelled = false): void {
    const edited = this.#editing && approvalId(this.#editing.approval)
    if (edited === undefined) return
    if (!isCancelled && this.#session.state.approvals.some((approval) => approvalId(approval) === edited)) return
    this.#editing = undefined
    this.#screen.draft = ''
    this.#redraw()
  }

  #submitEdited({ submit }: Pick<Edited, 'submit'>, text: string): void {
    try {
      submit(text)
    } catch (error) {
      this.#screen.draft = text
      throw error
    }
  }

  #pick(choice: Choice | undefined): void {
    const close = (chosen: readonly number[]) => {
      this.#pick(undefined)
      choice?.onChoose(chosen)
    }
    this.#picking = choice && new ChoicePanel({ ...choice, onChoose: close }, this.#theme)
    this.#redraw()
  }

  #context(): ChatContext {
    return {
      options: this.#options,
      session: this.#session,
      switchTo: (view) => this.#switchTo(view),
      pick: (choice) => this.#pick(choice),
      exit: () => this.leave(0),
    }
  }

  #switchTo(view: ConversationView): void {
    this.#session.close()
    this.#session = this.#createSession(view)
    this.#answers = this.#createAnswers()
    this.#editing = undefined
    this.#greet()
    this.#open()
  }

  #completion(): AutocompleteProvider {
    return new Completion({
      commands: () => allCommands(this.#project),
      findFiles: async (part, signal) => {
        const { files } = this.#session.conversation
        const options = { signal }
        if (part !== '' && !part.endsWith('/')) {
          const { items } = await files.search(
            { q: part.includes('/') ? `${part}*` : part, limit: FOUND_FILES },
            options,
          )
          return items.map(nameOf)
        }
        const { items } = await files.list({ path: part, limit: FOUND_FILES }, options)
        return items.map(nameOf)
      },
    })
  }
}

type Edited = {
  readonly approval: Approval
  readonly title: string
  readonly draft: string
  readonly submit: (text: string) => void
}

/** A warning says so. */
const toneOf = (notice: string): Tone => (/^warning|without a sandbox/i.test(notice) ? 'warning' : 'info')

const nameOf = ({ path, type }: { path: string; type: string }): string => (type === 'directory' ? `${path}/` : path)
