/** What a panel above the prompt is: a question that a key answers. */

export type Panel = {
  /**
   * Returns at most `rows` lines, except in a very small terminal. `isReady` is false while keys go to the prompt: then
   * `NOT_READY` is shown instead of the keys.
   */
  readonly render: (width: number, rows: number, isReady: boolean) => string[]
  /** Returns false for a key that it does not use: that one goes to the prompt. */
  readonly handleKey: (key: string) => boolean
  /** Takes a text that was typed as an answer. Absent: the text is a message to the agent. */
  readonly takeText?: ((text: string) => void) | undefined
}

export const NOT_READY = 'The keys answer while the prompt is empty.'
