/** A run without the chat: prompts in, answers out, and an exit code. Waits for a person only with `--ask`. */
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { Info } from '../../contract/server.ts'
import type { UserInput } from '../../contract/message.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import { Interrupts } from '../interrupts.ts'
import type { AgentHost } from '../open-host.ts'
import type { Opened } from '../open-run.ts'
import { describeSandbox, openRun } from '../open-run.ts'
import { withSettingNames } from '../conversation/refused-settings.ts'
import { readRunSettings } from '../settings/run-settings.ts'
import { SettingNames } from '../settings/setting-names.ts'
import { DONE, exitCodeOf, explainEnd, FAILED } from './exit-code.ts'
import type { InputLine } from './input-lines.ts'
import { readPrompts, requireFitting } from './read-prompts.ts'
import type { TurnEnd } from './run-turn.ts'
import { runTurn } from './run-turn.ts'
import { messagesIn, promptsAmongAnswers } from './stdin-answers.ts'
import { Waits } from './waits.ts'
import { HeadlessOutput } from './write-output.ts'

/** Returns the exit code. Throws what prevented the run, a `UsageError` before anything was sent. */
export async function runHeadless(invocation: RunInvocation): Promise<number> {
  const output = new HeadlessOutput(invocation.outputFormat)
  using interrupts = new Interrupts(() => output.note('interrupting; once more leaves at once.'))
  try {
    const { signal } = interrupts
    const settings = await readRunSettings(invocation, signal)
    const { first, lines } = await readPrompts(invocation, process.stdin, signal)
    const check = ({ limits }: Info) => requireFitting(first, limits.max_body_bytes)
    const opened = await openRun({ server: invocation.server, settings, check }, signal)
    await using _host = opened.host
    output.names = new SettingNames(opened.names)
    sayStart(opened, invocation, output)
    const code = await new HeadlessRun(invocation, opened, output, interrupts).runAll(lines)
    await output.flush()
    return interrupts.code ?? output.lostCode ?? code
  } catch (error) {
    if (interrupts.code !== undefined) return interrupts.code
    if (output.isLost) return output.lostCode ?? FAILED
    throw withSettingNames(output.names, error)
  }
}

function sayStart({ view, isResumed, info, notices }: Opened, { server }: RunInvocation, output: HeadlessOutput): void {
  output.note(describeSandbox(info, server))
  output.note(`${isResumed ? 'resumed ' : ''}conversation ${view.id} in ${view.workdir}`)
  for (const notice of notices) output.note(notice)
}

class HeadlessRun {
  readonly #invocation: RunInvocation
  readonly #conversation: ConversationHandle
  readonly #host: AgentHost
  readonly #waits: Waits
  readonly #output: HeadlessOutput
  readonly #interrupts: Interrupts

  constructor(invocation: RunInvocation, { host, view }: Opened, output: HeadlessOutput, interrupts: Interrupts) {
    this.#invocation = invocation
    this.#host = host
    this.#conversation = host.client.conversation(view.id)
    this.#waits = new Waits(this.#conversation, invocation.ask !== 'nobody')
    this.#output = output
    this.#interrupts = interrupts
  }

  /** Runs one after the other, and ends with the first that fails. */
  async runAll(lines: AsyncIterable<InputLine>): Promise<number> {
    let code = DONE
    let isFirst = true
    for await (const content of this.#promptsIn(lines)) {
      const ended = await this.#runOne(content, isFirst)
      isFirst = false
      code = Math.max(code, ended)
      if (ended === FAILED || this.#isStopped) return ended
    }
    return code
  }

  #promptsIn(lines: AsyncIterable<InputLine>): AsyncIterable<UserInput['content']> {
    if (this.#invocation.ask !== 'stdin') return messagesIn(lines)
    return promptsAmongAnswers(lines, {
      conversation: this.#conversation,
      onAnswered: (frame) => this.#output.frame(frame),
      onEnd: () => this.#waits.leave(),
    })
  }

  async #runOne(content: UserInput['content'], isFirst: boolean): Promise<number> {
    const { maxSteps, toolChoice } = this.#invocation
    using _ = this.#pausesWhenStopped()
    const end = await runTurn({
      conversation: this.#conversation,
      waits: this.#waits,
      content,
      maxSteps,
      forcesTool: isFirst && toolChoice === 'required',
      continuesRuns: this.#host.continuesRuns,
      onEvent: (event) => this.#output.event(event),
      isStopped: () => this.#isStopped,
    })
    return this.#report({ ...end, error: end.error && this.#output.names.inEvent(end.error) })
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

  #report(end: TurnEnd): number {
    const code = this.#interrupts.code ?? exitCodeOf(end)
    this.#output.end(end, this.#conversation.id, code)
    const why =
      this.#interrupts.code === undefined
        ? explainEnd(end)
        : `interrupted. Continue with --resume ${this.#conversation.id}`
    if (why !== undefined) this.#output.note(`agent-server: ${why}`)
    return code
  }
}
