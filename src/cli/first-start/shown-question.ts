/** One question on the screen. */
export type ShownQuestion = {
  /** Returns at most `rows` lines, except in a very small terminal. */
  readonly render: (width: number, rows: number) => string[]
  readonly handleKey: (key: string) => void
  readonly handlePaste: (text: string) => void
}
