/** The interactive chat: connects the screen with the conversation that is shown. */
import type { ConversationView } from '../../contract/conversation.ts'
import type { ProjectSettings } from '../../contract/project/project-settings.ts'
import type { ChatOptions } from '../chat-seam.ts'
import type { ChatContext } from './commands/command.ts'
import { allCommands, readCommand } from './commands/commands.ts'
import { nextMode } from './commands/facts.ts'
import { AnswerPanels, cached, isWaiting } from './input/answer-panels.ts'
import { approvalLines, editableText, editedInput } from './input/approval-text.ts'
import { Completion } from './input/completion.ts'
import { FileCompletion } from './input/file-completion.ts'
import { Outbox } from './input/outbox.ts'
import { isRemembered, PromptHistory } from './input/prompt-history.ts'
import type { Choice } from './render/choice-panel.ts'
import { ChoicePanel } from './render/choice-panel.ts'
import { DecisionPanel } from './render/decision-panel.ts'
import type { Panel } from './render/panel.ts'
import { createTheme } from './render/theme.ts'
import type { Theme } from './render/theme.ts'
import { Screen } from './screen.ts'
import { ChatSession } from './chat-session.ts'
import { greet } from './greeting.ts'
import type { Approval } from './state/chat-state.ts'
import { isBusy } from './state/chat-state.ts'
import { cleanText, revealText } from './state/clean-text.ts'
import { approvalId } from './state/pending.ts'

/** A second Ctrl+C within this time leaves the chat. */
const TWICE_MS = 2000

export class Chat {
  readonly #options: ChatOptions
  readonly #theme: Theme
  readonly #screen: Screen
  readonly #left = Promise.withResolvers<number>()
  #session: ChatSession
  #answers: AnswerPanels
  #outbox: Outbox
  readonly #history: PromptHistory
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
    this.#session = this.#createSession(options.view, options)
    this.#answers = this.#createAnswers()
    this.#outbox = this.#createOutbox()
    this.#history = new PromptHistory(options.historyPath)
    const facts = { isSandboxed: options.info.isolation !== 'none', server: options.server }
    const handlers = {
      onSubmit: (text: string, typed: string) => this.#guard(this.#submit(text, typed)),
      onEscape: () => this.#guard(this.#escape()),
      onNextMode: () => this.#guard(nextMode(this.#session)),
      onCancel: () => this.#cancel(),
      onEnd: () => this.leave(0),
    }
    this.#screen = new Screen({ theme: this.#theme, facts, handlers })
    this.#screen.complete(this.#completion())
  }

  /** Returns the exit code when the user leaves. */
  async run(): Promise<number> {
    for (const prompt of await this.#history.read()) this.#screen.remember(prompt)
    this.#screen.start()
    greet(this.#session, this.#options)
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
    return cleanText(`Continue this conversation:\n${command} -r ${this.#session.view.id}`)
  }

  #createSession(view: ConversationView, { names = {}, forcesTool = false }: Partial<ChatOptions>): ChatSession {
    const { client, maxSteps } = this.#options
    return new ChatSession({
      client,
      view,
      names,
      maxSteps,
      forcesTool,
      onChange: (session) => this.#onChange(session),
      onStored: (key) => this.#onStored(key),
    })
  }

  #createOutbox(): Outbox {
    return new Outbox({ session: this.#session, directory: this.#options.directory })
  }

  #createAnswers(): AnswerPanels {
    return new AnswerPanels({
      session: this.#session,
      theme: this.#theme,
      onEdit: (approval) => this.#guard(this.#editInput(approval)),
      onReason: (approval) => this.#writeReason(approval),
    })
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

  /** What was reported as not sent, and was. */
  #onStored(key: string): void {
    const text = this.#outbox.onStored(key)
    if (text !== undefined && this.#screen.draft === text) this.#screen.draft = ''
  }

  /** The messages of a resumed conversation can be sent again. */
  #readHistory(): void {
    this.#hasHistory = true
    for (const item of this.#session.state.items) if (item.kind === 'user') this.#remember(item.text)
  }

  #remember(text: string): void {
    if (isRemembered(text)) this.#screen.remember(text)
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

  async #submit(text: string, typed: string): Promise<void> {
    if (this.#editing) return this.#submitEdited(this.#editing, text)
    if (text === '') return
    this.#remember(text)
    const panel = this.#panel()
    if (panel?.takeText) return panel.takeText(text)
    this.#history.add(text, typed)
    const command = readCommand(text, allCommands(this.#project))
    if (!command) return await this.#send(text)
    if ('command' in command) return await command.command.run(this.#context(), command.argument)
    const hint = command.nearest === undefined ? '/help lists them.' : `did you mean /${command.nearest}?`
    throw new Error(`There is no command /${command.unknown}; ${hint}`)
  }

  async #send(text: string): Promise<void> {
    try {
      await this.#outbox.send(text)
    } catch (error) {
      // What was written is not lost.
      if (this.#screen.draft === '') this.#screen.restore(text)
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

  async #editInput(approval: Approval): Promise<void> {
    const title = `Edit the call of ${revealText(approval.call.name)}: Enter runs it, Esc goes back`
    const submit = (text: string) => {
      const input = editedInput(approval.call, text)
      this.#editing = undefined
      this.#answers.allow(approval, input)
    }
    this.#edit({ approval, title, draft: editableText(approval.call), submit })
  }

  #writeReason(approval: Approval): void {
    const title = `Why not ${revealText(approval.call.name)}? Enter denies it with this reason, Esc goes back`
    const submit = (text: string) => {
      this.#editing = undefined
      this.#answers.deny(approval, text)
    }
    this.#edit({ approval, title, draft: '', submit })
  }

  #edit({ approval, title, draft, submit }: Edited): void {
    const body = cached((width) => approvalLines(approval.call, width, this.#theme))
    this.#editing = { approval, submit, panel: new DecisionPanel({ title, body, keys: [] }, this.#theme) }
    this.#screen.draft = draft
    this.#redraw()
  }

  /** Also when another client has answered in the meantime. */
  #endEditing(isCancelled = false): void {
    const edited = this.#editing && approvalId(this.#editing.approval)
    if (edited === undefined) return
    if (!isCancelled && isWaiting(this.#session.state, edited)) return
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
      switchTo: (view, names) => this.#switchTo(view, names),
      pick: (choice) => this.#pick(choice),
      exit: () => this.leave(0),
    }
  }

  #switchTo(view: ConversationView, names?: ChatOptions['names']): void {
    const before = this.#session
    before.close()
    this.#session = this.#createSession(view, names ? { names } : {})
    this.#answers = this.#createAnswers()
    this.#outbox = this.#createOutbox()
    this.#editing = undefined
    greet(this.#session, this.#options)
    if (isBusy(before.state))
      this.#session.say(`The agent of the other conversation continues: /resume ${before.view.id}`)
    this.#open()
  }

  #completion(): Completion {
    const files = new FileCompletion()
    return new Completion({
      commands: () => allCommands(this.#project),
      findFiles: (part, signal) => files.find(this.#session.conversation, part, signal),
      // What runs then is exactly what was typed.
      isOff: () => this.#editing !== undefined,
    })
  }
}

type Edited = {
  readonly approval: Approval
  readonly title: string
  readonly draft: string
  readonly submit: (text: string) => void
}
