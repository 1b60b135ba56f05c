/** A way to use the product, as the one story needs it. Each action waits until it is possible, and for nothing else. */
import type { Event } from '../../../src/contract/events/event.ts'

export type Entrance = AsyncDisposable & {
  readonly name: string
  /** The directory of the agent. */
  readonly place: string
  /** Opens a new conversation. */
  readonly open: () => Promise<void>
  readonly say: (text: string) => Promise<void>
  /** Resolves when it asks about this command. */
  readonly asks: (command: string) => Promise<void>
  /** Allows the next call that waits, which is this command. */
  readonly approve: (command: string) => Promise<void>
  readonly reject: (command: string, reason: string) => Promise<void>
  /** Chooses an option of the next question, which has these labels. */
  readonly answer: (label: string) => Promise<void>
  /** Resolves when it shows the text that the model is writing. */
  readonly sees: (text: string) => Promise<void>
  readonly interrupt: () => Promise<void>
  /** Resolves when the run has ended with this answer; without one, when it was interrupted. */
  readonly ended: (answer?: string) => Promise<void>
  /** Kills the process that runs the agent with SIGKILL, and opens the conversation again. A run `isWaiting`, or is cut off. */
  readonly kill: (isWaiting: boolean) => Promise<void>
  /** The log of the conversation. Nothing else is called after it. */
  readonly events: () => Promise<Event[]>
}

/** What all of them get. */
export type EntrancePlace = {
  readonly modelUrl: string
  /** An empty directory, in which `place` and the data are. */
  readonly home: string
  readonly place: string
}
