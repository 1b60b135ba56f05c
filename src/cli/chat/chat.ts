/** The interactive chat: connects the screen with the conversation that is shown. */
import type { ConversationView } from '../../contract/conversation.ts'
import type { ProjectSettings } from '../../contract/project/project-settings.ts'
import type { ChatOptions } from '../chat-seam.ts'
import { SIGNAL_CODES } from '../terminal/end-signals.ts'
import type { ChatContext } from './commands/command.ts'
import { allCommands, readCommand } from './commands/slash-commands.ts'
import { nextMode } from './commands/facts.ts'
import { rewind } from './commands/rewinding.ts'
import { AnswerPanels } from './input/answer-panels.ts'
import { CallEditing } from './input/call-editing.ts'
import { Completion } from './input/completion.ts'
import { FileCompletion } from './input/file-completion.ts'
import { editText } from './input/edit-text.ts'
import { QueuedMessages } from './input/queued-messages.ts'
import { Outbox } from './input/outbox.ts'
import { PressedTwice } from './input/pressed-twice.ts'
import { isRemembered, PromptHistory } from './input/prompt-history.ts'
import { ShellCommands } from './input/shell-commands.ts'
import type { Choice } from './render/choice-panel.ts'
import { ChoicePanel } from './render/choice-panel.ts'
import type { Panel } from './render/panel.ts'
import { changeStyles, createTheme } from './render/theme.ts'
import type { Theme } from './render/theme.ts'
import { Screen } from './screen.ts'
import { ChatSession } from './chat-session.ts'
import { farewell, greet } from './greeting.ts'
import { StatusFacts } from './status-facts.ts'
import { takeBack } from './input/take-back.ts'
import { isBusy } from './state/chat-state.ts'
import type { ChatEvent } from './state/reduce.ts'

export class Chat {
  readonly #options: ChatOptions
  readonly #theme: Theme
  readonly #screen: Screen
  readonly #exit = Promise.withResolvers<number>()
  #session: ChatSession
  #answers: AnswerPanels
  #outbox: Outbox
  #shell: ShellCommands
  readonly #history: PromptHistory
  readonly #queued = new QueuedMessages({
    send: (text) => this.#guard(this.#send(text)),
    restore: (text) => this.#screen.draft === '' && this.#unqueue(text),
  })
  #project: ProjectSettings | undefined
  /** A list that a command shows. */
  #picking: Panel | undefined
  readonly #editing: CallEditing
  readonly #cancels = new PressedTwice()
  readonly #escapes = new PressedTwice()
  #hasHistory = false
  readonly #facts: StatusFacts

  constructor(options: ChatOptions) {
    this.#options = options
    this.#theme = createTheme(options.color, options.settings.theme)
    this.#session = this.#createSession(options.view, options)
    this.#answers = this.#createAnswers()
    this.#outbox = new Outbox(this.#session, this.#options.directory)
    this.#shell = new ShellCommands(this.#session)
    this.#history = new PromptHistory(options.historyPath)
    const handlers = {
      onSubmit: (text: string, typedText: string) => this.#guard(this.#submit(text, typedText)),
      onEscape: () => this.#guard(this.#escape()),
      onEditor: () => this.#guard(this.#openEditor()),
      onQueue: (text: string, typedText: string) => this.#queue(text, typedText),
      onUnqueue: () => this.#unqueue(this.#queued.takeLast()) || takeBack(this.#session, this.#screen),
      onNextMode: () => this.#guard(nextMode(this.#session)),
      onCancel: () => this.#cancel(),
      onEnd: () => this.leave(0),
    }
    this.#facts = new StatusFacts(options, () => this.#redraw())
    const facts = () => this.#facts.of(this.#session)
    this.#screen = new Screen({ ...options, theme: this.#theme, facts, handlers, queued: this.#queued })
    this.#screen.complete(this.#completion())
    this.#editing = new CallEditing(this.#theme, this.#screen)
  }

  /** Returns the exit code when the user leaves. */
  async run(): Promise<number> {
    for (const prompt of await this.#history.read()) this.#screen.remember(prompt)
    this.#screen.start()
    greet(this.#session, this.#options)
    this.#open()
    if (this.#options.prompt !== undefined) this.#guard(this.#send(this.#options.prompt))
    return await this.#exit.promise
  }

  /** Keys of the editor are signals for all programs of the terminal. */
  onSignal(exitCode: number): void {
    const isKey = exitCode === SIGNAL_CODES.SIGINT || exitCode === SIGNAL_CODES.SIGQUIT
    if (!isKey || !this.#screen.isLent) this.leave(exitCode)
  }

  leave(exitCode: number): void {
    this.#exit.resolve(exitCode)
  }

  fail(error: unknown): void {
    this.#exit.reject(error)
  }

  /** Gives the terminal back at once; safe at any time. Resolves when others can know that the chat is gone. */
  close(isOrderly = false): Promise<void> {
    this.#screen.stop(isOrderly ? farewell(this.#session, this.#options) : undefined)
    return this.#session.close()
  }

  #createSession(view: ConversationView, { names = {}, forcesTool = false }: Partial<ChatOptions>): ChatSession {
    const { client, maxSteps } = this.#options
    return new ChatSession({
      client,
      view,
      names,
      maxSteps,
      forcesTool,
      onChange: (session, event) => this.#onChange(session, event),
      onStored: (key) => this.#onStored(key),
    })
  }

  #createAnswers(): AnswerPanels {
    return new AnswerPanels({
      session: this.#session,
      theme: this.#theme,
      onEdit: (approval) => this.#edit(() => this.#editing.editInput(approval, this.#answers)),
      onReason: (approval) => this.#edit(() => this.#editing.writeReason(approval, this.#answers)),
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

  #onChange(session: ChatSession, event: ChatEvent): void {
    if (session !== this.#session) return
    this.#editing.update(session.state)
    if (event.type === 'StatusUpdate') this.#queued.afterStatus(event.status)
    void this.#facts.update(session, event)
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
    return this.#editing.panel ?? this.#answers.panel() ?? this.#picking
  }

  #redraw(): void {
    this.#screen.show(this.#session.state, this.#panel())
  }

  /** Reports what fails. */
  #guard(work: Promise<void>): void {
    work.catch((error: unknown) => this.#session.fail(error))
  }

  async #submit(text: string, typedText: string): Promise<void> {
    if (this.#editing.isActive) return this.#editing.submit(text)
    if (text === '') return
    this.#remember(text)
    const panel = this.#panel()
    if (panel?.takeText) return panel.takeText(text)
    this.#history.add(text, typedText)
    if (text.startsWith('!')) return await this.#shell.run(text.slice(1).trim())
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
    if (this.#editing.isActive) return this.#edit(() => this.#editing.cancel())
    if (this.#picking && !this.#answers.panel()) return this.#pick(undefined)
    if (this.#shell.interrupt()) return
    if (isBusy(this.#session.state)) await this.#session.interrupt()
    else if (this.#screen.draft === '' && this.#escapes.press()) await rewind(this.#context())
  }

  #queue(text: string, typedText: string): void {
    if (!isBusy(this.#session.state) || this.#editing.isActive) return this.#guard(this.#submit(text, typedText))
    if (text === '') return
    this.#remember(text)
    this.#history.add(text, typedText)
    this.#queued.add(text)
    this.#redraw()
  }

  #unqueue(text: string | undefined): boolean {
    if (text === undefined) return false
    this.#screen.restore(text)
    return true
  }

  async #openEditor(): Promise<void> {
    const text = await this.#screen.lend(() => editText(this.#screen.draft, this.#options.directory))
    this.#screen.restore(text)
  }

  #cancel(): void {
    if (this.#cancels.press()) return this.leave(0)
    const hint = isBusy(this.#session.state) ? ' Esc interrupts the agent.' : ''
    this.#session.say(`Ctrl+C again leaves the chat.${hint}`)
  }

  /** Changes what is written about a call, and reports what fails. */
  #edit(change: () => void): void {
    try {
      change()
      this.#redraw()
    } catch (error) {
      this.#session.fail(error)
    }
  }

  #pick(choice: Choice | undefined): void {
    const close = (chosenRows: readonly number[]) => {
      this.#pick(undefined)
      choice?.onChoose(chosenRows)
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
      send: (text) => this.#send(text),
      copy: (text) => this.#screen.copy(text),
      openEditor: () => this.#openEditor(),
      setTheme: (name) => {
        changeStyles(this.#theme, name)
        this.#screen.drawAgain()
      },
    }
  }

  #switchTo(view: ConversationView, names?: ChatOptions['names']): void {
    const before = this.#session
    void before.close()
    this.#session = this.#createSession(view, names ? { names } : {})
    this.#answers = this.#createAnswers()
    this.#outbox = new Outbox(this.#session, this.#options.directory)
    this.#shell = new ShellCommands(this.#session)
    this.#editing.cancel()
    this.#queued.giveBack()
    greet(this.#session, this.#options)
    const does = before.state.status === 'running' ? 'continues' : 'waits for an answer'
    if (isBusy(before.state))
      this.#session.say(`The agent of the other conversation ${does}: /resume ${before.view.id}`)
    this.#open()
  }

  #completion(): Completion {
    const files = new FileCompletion(this.#options.server === undefined)
    return new Completion({
      commands: () => allCommands(this.#project),
      findFiles: (part, signal) => files.find(this.#session.conversation, part, signal),
      // What runs then is exactly what was typed.
      isOff: () => this.#editing.isActive,
    })
  }
}
