/** A run without the chat: prompts in, answers out, and an exit code. Waits for a person only with `--ask`. */
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { Info } from '../../contract/server.ts'
import type { StoppedSession } from '../../sdk/session/stopped-session.ts'
import { readStopped } from '../../sdk/session/stopped-session.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import { UsageError } from '../command-line/usage-error.ts'
import type { BeforeOpening } from '../conversation/open-conversation.ts'
import { describeWeakMode, refuseDisturbance } from '../conversation/refuse-resume.ts'
import { Interrupts } from '../terminal/interrupts.ts'
import type { AgentHost } from '../conversation/open-host.ts'
import type { OpenedRun } from '../conversation/open-run.ts'
import { describeSandbox, openRun } from '../conversation/open-run.ts'
import { withSettingNames } from '../settings/refused-settings.ts'
import { runOverrides } from '../settings/conversation-settings.ts'
import type { RunSettings } from '../settings/run-settings.ts'
import { readRunSettings } from '../settings/run-settings.ts'
import type { OverrideOptions } from '../settings/conversation-settings.ts'
import { SettingNames } from '../settings/setting-names.ts'
import { DONE, exitCodeOf, explainEnd, FAILED } from './exit-code.ts'
import type { InputLine, TurnLine } from './input-lines.ts'
import { emptyAnswer, readNamedFiles } from './named-files.ts'
import type { PromptInput } from './read-prompts.ts'
import { readPrompts, requireFitting } from './read-prompts.ts'
import type { TurnEnd, TurnRequest } from './run-turn.ts'
import { requireWork, runTurn } from './run-turn.ts'
import { nextMessage, turnsAmongAnswers, turnsIn } from './stdin-answers.ts'
import { Waits } from './waits.ts'
import { HeadlessOutput } from './write-output.ts'

/** Returns the exit code. Throws what prevented the run, a `UsageError` before anything was sent. */
export async function runHeadless(invocation: RunInvocation): Promise<number> {
  const output = new HeadlessOutput(invocation.outputFormat)
  using interrupts = new Interrupts(() => output.note('interrupting; once more leaves at once.'))
  try {
    const { signal } = interrupts
    const files = await readNamedFiles(invocation)
    const settings = await readRunSettings(invocation, signal)
    const prompts = await readPrompts({ ...invocation, images: files.images }, process.stdin, signal)
    // A program that answers on stdin may write nothing before it knows what the conversation waits for.
    const first = answersOnStdin(invocation) ? undefined : await prompts.readFirst()
    const check = ({ limits }: Info) => first && requireFitting(first, limits.max_body_bytes)
    emptyAnswer(files.answer)
    output.answerFile = files.answer
    const before = beforeOpening(invocation, prompts, first)
    const openedRun = await openRun({ server: invocation.server, settings, check, before }, signal)
    await using host = openedRun.host
    await using _deletion = invocation.isEphemeral
      ? deletion(host.client.conversation(openedRun.view.id), output)
      : null
    output.names = new SettingNames(openedRun.names)
    sayStart(openedRun, invocation, output)
    const code = await new HeadlessRun({ invocation, settings }, openedRun, output, interrupts).runAll(prompts.lines)
    await output.flush()
    return interrupts.code ?? output.lostCode ?? code
  } catch (error) {
    if (interrupts.code !== undefined) return interrupts.code
    if (output.isLost) return output.lostCode ?? FAILED
    throw withSettingNames(output.names, error)
  }
}

/** Returns true if stdin can answer approvals and questions of an earlier run. */
const answersOnStdin = ({ resume, ask }: RunInvocation) => resume !== undefined && ask === 'stdin'

function beforeOpening(
  invocation: RunInvocation,
  { readFirst }: PromptInput,
  first: InputLine | undefined,
): BeforeOpening {
  return {
    async onNone() {
      const line = await readFirst()
      if (!line || !('content' in line)) {
        const where = invocation.resume === 'latest' ? ' in this directory (--all looks in every one)' : ''
        throw new UsageError(`there is no conversation to continue${where}; give a prompt to begin one.`)
      }
    },
    async onResume(foundView, conversation) {
      if (!invocation.forks) refuseDisturbance(foundView, first !== undefined && !('run' in first))
      if (answersOnStdin(invocation) || (first && !('run' in first))) return
      await requireWork(conversation, await readStopped(conversation, foundView))
    },
  }
}

/** Deletes the conversation when it is disposed of: before the host, which may run its agents. */
const deletion = (conversation: ConversationHandle, output: HeadlessOutput): AsyncDisposable => ({
  async [Symbol.asyncDispose]() {
    await conversation.delete().catch((error: unknown) => {
      output.note(`the conversation could not be deleted: ${error instanceof Error ? error.message : String(error)}`)
    })
  },
})

function sayStart(
  { view, isResumed, info, notices }: OpenedRun,
  { server, permissionMode }: RunInvocation,
  output: HeadlessOutput,
): void {
  output.note(describeSandbox(info, server))
  output.note(`${isResumed ? 'resumed ' : ''}conversation ${view.id} in ${view.workdir}`)
  const weak = describeWeakMode(permissionMode ?? view.state.permission_mode)
  if (weak !== undefined) output.note(`warning: ${weak}`)
  for (const notice of notices) output.note(notice)
}

class HeadlessRun {
  readonly #invocation: RunInvocation
  readonly #conversation: ConversationHandle
  readonly #host: AgentHost
  readonly #waits: Waits
  readonly #output: HeadlessOutput
  readonly #interrupts: Interrupts
  readonly #isResumed: boolean
  readonly #overrides: OverrideOptions
  /** Seq of the last event that was printed, if the last turn did not end. */
  #unseen: number | undefined
  #turns = 0

  constructor(
    { invocation, settings }: { readonly invocation: RunInvocation; readonly settings: RunSettings },
    { host, view, isResumed }: OpenedRun,
    output: HeadlessOutput,
    interrupts: Interrupts,
  ) {
    this.#invocation = invocation
    this.#isResumed = isResumed
    // The events of a new conversation are printed from its `SystemInit` on.
    this.#unseen = isResumed ? undefined : 0
    // A new conversation has been created with them.
    this.#overrides = isResumed ? runOverrides(settings.conversation) : {}
    this.#host = host
    this.#conversation = host.client.conversation(view.id)
    this.#waits = new Waits(this.#conversation, invocation.ask !== 'nobody')
    this.#output = output
    this.#interrupts = interrupts
  }

  /** Runs one after the other, and ends with the first that fails. */
  async runAll(lines: AsyncIterable<InputLine>): Promise<number> {
    const turns = this.#turnsIn(lines)
    const stoppedSession = await this.#readAsked()
    let { line, code } = stoppedSession
      ? await this.#continueUntilMessage(stoppedSession, turns)
      : { line: turns.next(), code: DONE }
    while (code !== FAILED && !this.#isStopped) {
      const { value: turn, done } = await line
      if (done) return code
      const exitCode = await this.#runOne({
        content: 'content' in turn ? turn.content : undefined,
        after: this.#unseen,
      })
      if (exitCode === FAILED || this.#isStopped) return exitCode
      code = Math.max(code, exitCode)
      line = turns.next()
    }
    return code
  }

  /** A message takes the place of the answers: it is sent at once. */
  async #continueUntilMessage(stoppedSession: StoppedSession, turns: AsyncGenerator<TurnLine, void>) {
    const message = nextMessage(turns)
    this.#unseen = stoppedSession.after
    const code = await this.#runOne({ content: undefined, stopped: stoppedSession, until: message.signal })
    return { line: message.line, code }
  }

  /** Undefined if the conversation waits for nothing that stdin can answer. */
  async #readAsked(): Promise<StoppedSession | undefined> {
    if (!this.#isResumed || !answersOnStdin(this.#invocation)) return undefined
    const stoppedSession = await readStopped(this.#conversation, await this.#conversation.get())
    return stoppedSession.waiting.length > 0 ? stoppedSession : undefined
  }

  /** Continues a resumed conversation where it stopped, if there are no lines. */
  async *#turnsIn(lines: AsyncIterable<InputLine>): AsyncGenerator<TurnLine, void> {
    let hasSome = false
    for await (const turn of this.#givenTurns(lines)) {
      hasSome = true
      yield turn
    }
    if (this.#isResumed && !hasSome) yield { run: true }
  }

  #givenTurns(lines: AsyncIterable<InputLine>): AsyncIterable<TurnLine> {
    if (this.#invocation.ask !== 'stdin') return turnsIn(lines)
    return turnsAmongAnswers(lines, {
      conversation: this.#conversation,
      onAnswered: (frame) => this.#output.frame(frame),
      onEnd: () => this.#waits.leave(),
    })
  }

  /** Returns the exit code: that of success if `until` has ended it. */
  async #runOne(turn: Pick<TurnRequest, 'content' | 'stopped' | 'after' | 'until'>): Promise<number> {
    const { maxSteps, toolChoice, includesDeltas } = this.#invocation
    using _ = this.#pausesWhenStopped()
    const end = await runTurn({
      ...turn,
      conversation: this.#conversation,
      waits: this.#waits,
      maxSteps,
      waitsForSubagents: this.#invocation.inputFormat === 'text',
      overrides: this.#overrides,
      forcesTool: this.#turns++ === 0 && toolChoice === 'required',
      continuesRuns: this.#host.continuesRuns,
      onEvent: (event) => {
        this.#unseen = Math.max(this.#unseen ?? 0, event.seq)
        this.#output.event(event)
      },
      onDelta: includesDeltas ? (delta) => this.#output.frame(delta) : undefined,
      isStopped: () => this.#isStopped,
    })
    if (!end) return DONE
    this.#unseen = undefined
    return await this.#report({ ...end, error: end.error && this.#output.names.inEvent(end.error) })
  }

  get #isStopped(): boolean {
    return this.#interrupts.code !== undefined || this.#output.isLost
  }

  /** Pauses the run with the first signal, and when nobody reads the output any more. */
  #pausesWhenStopped(): Disposable {
    const pause = () => {
      // The run may have ended, or not begun: `isStopped` ends it then.
      this.#conversation.pause({ interrupt: true }).catch(() => {})
    }
    const { signal } = this.#interrupts
    signal.addEventListener('abort', pause, { once: true })
    this.#output.onLost = pause
    return { [Symbol.dispose]: () => signal.removeEventListener('abort', pause) }
  }

  async #report(end: TurnEnd): Promise<number> {
    const code = this.#interrupts.code ?? exitCodeOf(end)
    const isKept = !this.#invocation.isEphemeral
    await this.#output.end(end, this.#conversation.id, code)
    const why =
      this.#interrupts.code === undefined
        ? explainEnd(end, isKept)
        : `interrupted.${isKept ? ` Continue with --resume ${this.#conversation.id}` : ''}`
    if (why !== undefined) this.#output.note(`agent-server: ${why}`)
    return code
  }
}
